"""`inspect` on the real command line: exact documents and exit codes."""

import csv
import json
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean, harmonic_mean

import pytest

from tests import SAMPLES, warm
from tests.verbs.inspecting import CUT, EIGHT, LOGS, PROGRAM, inspect, inspect_log, without_header

with (LOGS / "expected.csv").open(encoding="ascii") as file:
    EXPECTED = tuple(csv.DictReader(file))

LOG_KEYS = [
    "workload",
    "runs",
    "steps",
    "first_iteration",
    "last_iteration",
    "config",
    "window",
    "throughput",
    "unit",
    "rate",
    "reported",
    "problems",
]


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, warm.Ended]:
    """What `inspect log` says of each log over 20 to 60, each in a process of its own."""
    files = [row["file"] for row in EXPECTED]
    words = ("--workload", "ngc_pytorch_rn50", "--window", "20:60")
    lines = [("inspect", "log", str(LOGS / file), *words) for file in files]
    ended = warm.commands(lines, tmp_path_factory.mktemp("inspect"))
    return dict(zip(files, ended, strict=True))


@pytest.mark.parametrize("row", EXPECTED, ids=[row["file"] for row in EXPECTED])
def test_a_real_log_says_what_was_worked_out_by_hand(
    answers: Mapping[str, warm.Ended], row: dict[str, str]
) -> None:
    """Every key in its place, numbers to 0.01; a run that ended early says so, and exit 3."""
    code, out, _ = answers[row["file"]]
    document = json.loads(out)
    cut = row["last_iter"] != "99"
    assert list(document) == LOG_KEYS
    assert code == (3 if cut else 0)
    assert [problem["code"] for problem in document["problems"]] == ["SHORT-RUN"] * cut
    assert (document["workload"], document["unit"]) == ("ngc_pytorch_rn50", "images/s")
    assert (document["runs"], document["window"]) == (1, [20, 60])
    ends = ("n_iter_lines", "first_iter", "last_iter")
    steps = ("steps", "first_iteration", "last_iteration")
    assert [document[key] for key in steps] == [int(row[key]) for key in ends]
    assert document["config"]["micro_batch_size"] == int(row["batch_size"])
    assert document["config"]["world_size"] == int(row["world_size"])
    assert document["config"]["precision"] == ("amp" if row["amp"] == "True" else "fp32")
    expected = float(row["time_based_iter20_to_iter60"])
    assert document["throughput"] == pytest.approx(expected, abs=0.01)
    assert list(document["rate"]) == ["count", "mean", "median"]
    rates = (int(row["n_iter_lines"]), float(row["mean_total_ips"]), float(row["median_total_ips"]))
    assert tuple(document["rate"].values()) == pytest.approx(rates, abs=0.01)


def test_the_log_of_the_interface_description_comes_out_as_written() -> None:
    """Every value of one log, as a person reads them in it."""
    document = json.loads(inspect_log(EIGHT, "--window", "20:60").stdout)
    assert document["config"] == {
        "data": "/imagenet",
        "data_backend": "dali-cpu",
        "arch": "resnet50",
        "num_classes": 1000,
        "micro_batch_size": 128,
        "optimizer_batch_size": -1,
        "iterations": 100,
        "memory_format": "nchw",
        "world_size": 8,
        "precision": "amp",
        "loss_scale": 256.0,
    }
    assert round(document["throughput"], 2) == 6098.37
    assert round(document["rate"]["mean"], 2) == 6011.64
    assert document["rate"]["median"] == 6275.76
    assert document["reported"]["train_throughput"] == 6014.71


def test_a_log_can_come_by_standard_input() -> None:
    """``-`` gives the same document as the file, byte for byte."""
    by_name = inspect_log(EIGHT, "--window", "20:60")
    by_stdin = inspect_log("-", "--window", "20:60", stdin=EIGHT.read_bytes())
    assert (by_stdin.returncode, by_stdin.stdout) == (0, by_name.stdout)


def test_the_default_window_off_the_log_gives_null() -> None:
    """25 to 125 is upstream's window; a log of 99 steps says which end it lacks."""
    done = inspect_log(EIGHT)
    document = json.loads(done.stdout)
    (problem,) = document["problems"]
    assert (done.returncode, document["window"], document["throughput"]) == (3, [25, 125], None)
    assert list(problem) == ["code", "message"]
    assert problem["code"] == "WINDOW"
    assert "needs iteration 125; the log has 99 steps, from 1 to 99" in problem["message"]


def test_a_log_without_header_needs_its_batch() -> None:
    """Null without ``--global-batch-size``, the number with it; the header's lack stays named."""
    log = without_header(EIGHT)
    alone = inspect_log("-", "--window", "20:60", stdin=log)
    document = json.loads(alone.stdout)
    codes = [problem["code"] for problem in document["problems"]]
    assert (alone.returncode, document["throughput"]) == (3, None)
    assert codes == ["NO-HEADER", "NO-BATCH"]
    assert document["rate"]["median"] == 6275.76
    words = ("--window", "20:60", "--global-batch-size", "1024")
    helped = inspect_log("-", *words, stdin=log)
    document = json.loads(helped.stdout)
    assert (helped.returncode, round(document["throughput"], 2)) == (3, 6098.37)
    assert [problem["code"] for problem in document["problems"]] == ["NO-HEADER"]


def test_a_batch_that_the_printed_rates_contradict_is_a_problem() -> None:
    """A wrong ``--global-batch-size`` shows: the log's own rates are of another gang."""
    words = ("--window", "20:60", "--global-batch-size", "2048")
    document = json.loads(inspect_log("-", *words, stdin=without_header(EIGHT)).stdout)
    assert "RATE-MISMATCH" in [problem["code"] for problem in document["problems"]]


def test_a_batch_against_the_header_gives_null() -> None:
    """Of two words about the batch neither is believed."""
    done = inspect_log(EIGHT, "--window", "20:60", "--global-batch-size", "2048")
    document = json.loads(done.stdout)
    (problem,) = document["problems"]
    assert (done.returncode, document["throughput"]) == (3, None)
    assert problem["code"] == "BATCH-MISMATCH"
    assert "1024" in problem["message"]
    assert "2048" in problem["message"]


def test_several_runs_in_a_file_give_null() -> None:
    """``runs`` counts them; steps, config and rates are the last one's."""
    done = inspect_log(
        "-", "--window", "20:60", stdin=EIGHT.read_bytes() + b"\n" + CUT.read_bytes()
    )
    document = json.loads(done.stdout)
    codes = [problem["code"] for problem in document["problems"]]
    assert (done.returncode, document["runs"], document["throughput"]) == (3, 2, None)
    assert "SEVERAL-RUNS" in codes
    assert document["config"]["micro_batch_size"] == 256
    rate = (63, pytest.approx(5736.27, abs=0.01), pytest.approx(5919.86, abs=0.01))
    assert (document["steps"], *list(document["rate"].values())[1:]) == rate


def _cut(log: bytes) -> bytes:
    return log.partition(b"Iteration: 70 ")[0].rpartition(b"\n")[0] + b"\n"


def test_a_log_that_covers_its_window_but_breaks_off_gives_null() -> None:
    """As a trial it would not count, so it is no number here either."""
    done = inspect_log("-", "--window", "20:60", stdin=_cut(EIGHT.read_bytes()))
    document = json.loads(done.stdout)
    assert (done.returncode, document["throughput"]) == (3, None)
    (problem,) = document["problems"]
    assert (problem["code"], problem["message"]) == ("TRUNCATED", "have 69 of 99 steps")


BROKEN: dict[str, Callable[[bytes], bytes]] = {
    "cut after the window": _cut,
    "cut inside a record": lambda log: log[: log.index(b"Iteration: 70 ") + 9],
    "a step lost": lambda log: re.sub(rb"DLL .*Iteration: 40 .*\n", b"", log),
    "a step twice": lambda log: re.sub(rb"(DLL .*Iteration: 40 .*\n)", rb"\1\1", log),
    "a step in pieces": lambda log: log.replace(b"Iteration: 40 ", b"Iter\nation: 40 "),
    "a step in pieces, later": lambda log: log.replace(b"Iteration: 90 ", b"Iter\nation: 90 "),
    "a rate that is no number": lambda log: re.sub(rb"(ion: 40 .*ips : )\S+", rb"\1nan", log),
    "another gang's header": lambda log: log.replace(b"world_size : 8", b"world_size : 16"),
    "a clock that goes back": lambda log: re.sub(
        rb"DLL \S+ (\S+ - Epoch: 0 Iteration: 40 )", rb"DLL 2020-12-15 \1", log
    ),
    "a loss that is no number": lambda log: re.sub(rb"(ion: 40 .*loss : )\S+", rb"\1nan", log),
    "words of others": lambda log: log.replace(b"\nDLL", b"\nWarning\nDLL"),
}
MARKS = {
    "a loss that is no number": {"LOSS-NOT-FINITE"},
    "words of others": set[str](),
}


def test_a_clock_without_fractions_is_said_beside_the_number() -> None:
    """35 s by whole seconds are a number that a reader should know more of."""
    log = LOGS / "paddleperf_2020-12-18_be362d9_pytorch_gpu1_fp32_bs128.txt"
    whole = re.sub(rb"(DLL \S+ [\d:]{8})\.\d+", rb"\1", log.read_bytes())
    done = inspect_log("-", "--window", "1:99", stdin=whole)
    document = json.loads(done.stdout)
    (problem,) = document["problems"]
    assert (done.returncode, problem["code"]) == (3, "COARSE-CLOCK")
    assert document["throughput"] == pytest.approx(98 * 128 / 35)


@pytest.mark.parametrize("how", BROKEN)
def test_what_keeps_a_trial_out_of_a_median_gives_null(how: str, tmp_path: Path) -> None:
    """`inspect log` and `collect --logs` judge by one rule; marks leave the number."""
    broken = BROKEN[how](EIGHT.read_bytes())
    document = json.loads(inspect_log("-", "--window", "20:60", stdin=broken).stdout)
    codes = {problem["code"] for problem in document["problems"]}
    assert (document["throughput"] is not None) == (how in MARKS), codes
    if how in MARKS:
        assert codes == MARKS[how]
    log = tmp_path / "1n8g" / "r50_b128_amp_1.log"
    log.parent.mkdir()
    log.write_bytes(broken)
    words = ("--logs", str(tmp_path), "--workload", "ngc_pytorch_rn50", "--window", "20:60")
    argv = (PROGRAM, "collect", *words, "--json")
    done = subprocess.run(argv, capture_output=True, check=False)
    (case,) = json.loads(done.stdout)["cases"]
    assert case["median"] == document["throughput"]


def test_a_header_alone_is_read_with_problems() -> None:
    """What the header says is there; there is no rate, and no throughput of 0."""
    header = EIGHT.read_bytes().partition(b"RUNNING EPOCHS")[0]
    done = inspect_log("-", stdin=header)
    document = json.loads(done.stdout)
    assert (done.returncode, document["steps"], document["config"]["world_size"]) == (3, 0, 8)
    assert (document["throughput"], document["rate"], document["first_iteration"]) == (None,) * 3
    assert "NO-STEPS" in [problem["code"] for problem in document["problems"]]


@pytest.mark.parametrize("content", [b"", b"Segmentation fault\n", bytes(range(256)) * 64])
def test_what_is_no_log_cannot_be_read(content: bytes) -> None:
    """Exit 2, with the code in the document and on standard error."""
    done = inspect_log("-", stdin=content)
    document = json.loads(done.stdout)
    assert (done.returncode, document["exit_code"]) == (2, 2)
    assert [error["code"] for error in document["errors"]] == ["NO-STEPS"]
    assert done.stderr.startswith(b"ERROR NO-STEPS: -: ")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("log", "no-such.log", "--workload", "ngc_pytorch_rn50"), "READ"),
        (("log", str(LOGS), "--workload", "ngc_pytorch_rn50"), "READ"),
        (("log", "/proc/self/mem", "--workload", "ngc_pytorch_rn50"), "READ"),
        (("log", str(EIGHT), "--workload", "ngc_pytorch_rn51"), "NO-WORKLOAD"),
        (("topology", "no-such.txt"), "READ"),
        (("ibstat", str(SAMPLES)), "READ"),
    ],
)
def test_a_file_or_a_workload_that_is_not_there_is_named(words: Sequence[str], code: str) -> None:
    """Exit 2 and one line, no traceback; a file whose bytes do not come is named as well."""
    done = inspect(*words)
    assert done.returncode == 2
    assert [error["code"] for error in json.loads(done.stdout)["errors"]] == [code]
    assert b"Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("words", [("--window", "60:20"), ("--global-batch-size", "0")])
def test_an_option_without_sense_is_refused(words: Sequence[str]) -> None:
    """Exit 2, and nothing on standard output."""
    done = inspect_log(EIGHT, *words)
    assert (done.returncode, done.stdout) == (2, b"")


def test_a_rule_that_is_asked_for_is_the_one_that_measures() -> None:
    """Of one window, the clock and the mean of the printed rates; what no log serves is refused."""
    log = LOGS.parent / "logs-tf-rn50/paddleperf_2020-12-18_be362d9_tf_gpu8_amp_bs256.txt"
    words = ("--workload", "ngc_tensorflow_rn50", "--window", "250:450")
    values = {
        rule: json.loads(inspect("log", log, *words, "--rule", rule).stdout)["throughput"]
        for rule in ("clock", "rates", "arithmetic")
    }
    rates = [
        float(line.split()[-1])
        for line in log.read_text().splitlines()
        if "total_ips" in line and 250 <= int(line.partition("(0, ")[2].partition(")")[0]) <= 450
    ]
    assert len(rates) == 201
    assert values["rates"] == pytest.approx(harmonic_mean(rates))
    assert values["arithmetic"] == pytest.approx(fmean(rates))
    assert values["clock"] == pytest.approx(values["rates"], rel=0.005)
    assert values["clock"] != values["rates"]
    refused = inspect("log", log, *words, "--rule", "latency")
    assert refused.returncode == 2
    assert b"NO-RULE" in refused.stderr


def test_a_log_of_ranks_under_mpirun_says_its_whole_header() -> None:
    """As recorded with PYTHONUNBUFFERED=1, and with pieces of another rank in every record."""
    log = "tensorflow_fed7ba99_1n2g_mpirun_tagged_unbuffered_train_r50_b1_amp_1.log"
    path = SAMPLES / "real-upstream" / log
    between = b"[1,1]<stdout>:a warning\n[1,0]<stdout>:"
    text = re.sub(rb"(batch|learni|imgs_)(?=\w* : )", rb"\1" + between, path.read_bytes())
    words = ("--workload", "ngc_tensorflow_rn50", "--window", "21:41")
    for stdin in (text, path.read_bytes()):
        document = json.loads(inspect("log", "-", *words, stdin=stdin).stdout)
        assert document["config"]["micro_batch_size"] == 1
        assert document["config"]["world_size"] == 2
        assert document["problems"] == []
        assert document["throughput"] == pytest.approx(2 * 20 / 114.195983)
