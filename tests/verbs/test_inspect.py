"""inspect: recorded logs and outputs of nodes, as documents with exit codes."""

import csv
import re
from collections.abc import Callable
from pathlib import Path
from statistics import fmean, harmonic_mean
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from tests import SAMPLES
from tests.cli.here import Here
from tests.verbs.logs import CUT, EIGHT, LOGS

with (LOGS / "expected.csv").open(encoding="ascii") as file:
    EXPECTED = tuple(csv.DictReader(file))
LOG_KEYS = (
    "workload runs steps first_iteration last_iteration config window throughput unit rate"
    " reported problems"
)
LOG = EIGHT.read_bytes()
WITHOUT_HEADER = b"".join(
    line for line in LOG.splitlines(keepends=True) if b"PARAMETER" not in line
)


def inspect_log(
    bare: Here,
    *words: str,
    stdin: bytes = LOG,
    code: int = 3,
    workload: str = "ngc_pytorch_rn50",
    window: str = "20:60",
) -> tuple[Any, list[str]]:
    """Return the document of a log on standard input, and the codes of its problems."""
    on = ("--workload", workload, "--window", window, *words)
    document = bare("inspect", "log", "-", *on, stdin=stdin, code=code).document
    return document, [problem["code"] for problem in document["problems"]]


@pytest.mark.parametrize("row", EXPECTED, ids=[row["file"] for row in EXPECTED])
def test_a_real_log_gives_what_was_worked_out_by_hand(bare: Here, row: dict[str, str]) -> None:
    """Numbers to 0.01; a run that ended early says so, with exit 3."""
    cut = row["last_iter"] != "99"
    stdin = (LOGS / row["file"]).read_bytes()
    document, codes = inspect_log(bare, stdin=stdin, code=3 if cut else 0)
    assert " ".join(document) == LOG_KEYS
    assert codes == ["SHORT-RUN"] * cut
    assert (document["workload"], document["unit"]) == ("ngc_pytorch_rn50", "images/s")
    assert (document["runs"], document["window"]) == (1, [20, 60])
    ends = ("n_iter_lines", "first_iter", "last_iter")
    steps = ("steps", "first_iteration", "last_iteration")
    assert [document[key] for key in steps] == [int(row[key]) for key in ends]
    config = document["config"]
    assert config["micro_batch_size"] == int(row["batch_size"])
    assert config["world_size"] == int(row["world_size"])
    assert config["precision"] == ("amp" if row["amp"] == "True" else "fp32")
    expected = float(row["time_based_iter20_to_iter60"])
    assert document["throughput"] == pytest.approx(expected, abs=0.01)
    rate = {"count": row["n_iter_lines"], "mean": row["mean_total_ips"]}
    rate["median"] = row["median_total_ips"]
    numbers = {key: float(value) for key, value in rate.items()}
    assert document["rate"] == pytest.approx(numbers, abs=0.01)


def test_a_file_and_standard_input_give_one_document(bare: Here) -> None:
    """Every value of one log, as a person reads it there."""
    words = ("--workload", "ngc_pytorch_rn50", "--window", "20:60")
    by_name = bare("inspect", "log", str(EIGHT), *words, code=0)
    assert by_name == bare("inspect", "log", "-", *words, stdin=LOG, code=0)
    document = by_name.document
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


def cut(log: bytes) -> bytes:
    return log.partition(b"Iteration: 70 ")[0].rpartition(b"\n")[0] + b"\n"


def test_the_default_window_off_the_log_gives_null(bare: Here) -> None:
    """25 to 125 is upstream's window; a log of 99 steps says which end it lacks."""
    words = ("--workload", "ngc_pytorch_rn50")
    document = bare("inspect", "log", str(EIGHT), *words, code=3).document
    (problem,) = document["problems"]
    assert (document["window"], document["throughput"]) == ([25, 125], None)
    assert (list(problem), problem["code"]) == (["code", "message"], "WINDOW")
    assert "needs iteration 125; the log has 99 steps, from 1 to 99" in problem["message"]


@pytest.mark.parametrize(
    ("stdin", "words", "codes", "throughput"),
    [
        pytest.param(WITHOUT_HEADER, [], ["NO-HEADER", "NO-BATCH"], None, id="no header, no batch"),
        pytest.param(
            WITHOUT_HEADER,
            ["--global-batch-size", "1024"],
            ["NO-HEADER"],
            6098.37,
            id="no header, the batch given",
        ),
        pytest.param(
            LOG, ["--global-batch-size", "2048"], ["BATCH-MISMATCH"], None, id="another batch"
        ),
        pytest.param(cut(LOG), [], ["TRUNCATED"], None, id="cut behind the window"),
    ],
)
def test_a_log_gives_a_number_or_its_problems(
    bare: Here, stdin: bytes, words: list[str], codes: list[str], throughput: float | None
) -> None:
    document, seen = inspect_log(bare, *words, stdin=stdin)
    found = document["throughput"]
    assert (seen, found and round(found, 2)) == (codes, throughput)
    assert document["rate"]["median"] == 6275.76 or codes == ["TRUNCATED"]
    message = document["problems"][-1]["message"]
    assert "TRUNCATED" not in codes or message == "have 69 of 99 steps"
    assert "BATCH-MISMATCH" not in codes or {"1024", "2048"} <= {*re.findall(r"\d+", message)}


def test_a_batch_that_the_printed_rates_contradict_is_a_problem(bare: Here) -> None:
    words = ("--global-batch-size", "2048")
    assert "RATE-MISMATCH" in inspect_log(bare, *words, stdin=WITHOUT_HEADER)[1]


def test_several_runs_in_a_file_give_null(bare: Here) -> None:
    """``runs`` counts them; steps, config and rates are those of the last one."""
    document, codes = inspect_log(bare, stdin=LOG + b"\n" + CUT.read_bytes())
    assert (document["runs"], document["throughput"], document["steps"]) == (2, None, 63)
    assert "SEVERAL-RUNS" in codes
    assert document["config"]["micro_batch_size"] == 256
    rate = {"count": 63, "mean": 5736.27, "median": 5919.86}
    assert document["rate"] == pytest.approx(rate, abs=0.01)


BROKEN: dict[str, Callable[[bytes], bytes]] = {
    "cut after the window": cut,
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
MARKS = {"a loss that is no number": ["LOSS-NOT-FINITE"], "words of others": list[str]()}


@pytest.mark.parametrize("how", BROKEN)
def test_what_keeps_a_trial_out_of_a_median_gives_null(bare: Here, how: str) -> None:
    """`inspect log` and `collect --logs` judge by one rule; marks leave the number."""
    broken = BROKEN[how](LOG)
    document, codes = inspect_log(bare, stdin=broken, code=0 if MARKS.get(how) == [] else 3)
    assert (document["throughput"] is not None) == (how in MARKS), codes
    assert codes == MARKS.get(how, codes)
    (bare.folder / "1n8g").mkdir()
    (bare.folder / "1n8g/r50_b128_amp_1.log").write_bytes(broken)
    words = ("--logs", ".", "--workload", "ngc_pytorch_rn50", "--window", "20:60")
    (case,) = bare("collect", *words, "--json").document["cases"]
    assert case["median"] == document["throughput"]


def test_a_clock_without_fractions_is_named_beside_the_number(bare: Here) -> None:
    """35 s by whole seconds: 98 steps of 128 images."""
    log = LOGS / "paddleperf_2020-12-18_be362d9_pytorch_gpu1_fp32_bs128.txt"
    whole = re.sub(rb"(DLL \S+ [\d:]{8})\.\d+", rb"\1", log.read_bytes())
    document, codes = inspect_log(bare, stdin=whole, window="1:99")
    assert codes == ["COARSE-CLOCK"]
    assert document["throughput"] == pytest.approx(98 * 128 / 35)


def test_a_header_alone_is_read_with_problems(bare: Here) -> None:
    """There is no rate, and no throughput of 0."""
    document, codes = inspect_log(bare, stdin=LOG.partition(b"RUNNING EPOCHS")[0])
    assert (document["steps"], document["config"]["world_size"]) == (0, 8)
    assert (document["throughput"], document["rate"], document["first_iteration"]) == (None,) * 3
    assert "NO-STEPS" in codes


@pytest.mark.parametrize("content", [b"", b"Segmentation fault\n", bytes(range(256)) * 64])
def test_what_is_no_log_cannot_be_read(bare: Here, content: bytes) -> None:
    ended = bare("inspect", "log", "-", "--workload", "ngc_pytorch_rn50", stdin=content, code=2)
    assert (ended.document["exit_code"], ended.codes) == (2, ["NO-STEPS"])
    assert ended.err.startswith("ERROR NO-STEPS: -: ")


def test_the_rule_that_is_requested_measures(bare: Here) -> None:
    """The clock of a window, and means of its 201 printed rates; no log serves another rule."""
    log = SAMPLES / "logs-tf-rn50/paddleperf_2020-12-18_be362d9_tf_gpu8_amp_bs256.txt"
    words = ("inspect", "log", str(log), "--workload", "ngc_tensorflow_rn50", "--window", "250:450")
    values = {
        rule: bare(*words, "--rule", rule).document["throughput"]
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
    assert bare(*words, "--rule", "latency", code=2).codes == ["NO-RULE"]


def test_a_log_of_ranks_under_mpirun_shows_its_whole_header(bare: Here) -> None:
    """As recorded with PYTHONUNBUFFERED=1, and with pieces of another rank in every record."""
    log = "tensorflow_fed7ba99_1n2g_mpirun_tagged_unbuffered_train_r50_b1_amp_1.log"
    text = (SAMPLES / "real-upstream" / log).read_bytes()
    between = b"[1,1]<stdout>:a warning\n[1,0]<stdout>:"
    torn = re.sub(rb"(batch|learni|imgs_)(?=\w* : )", rb"\1" + between, text)
    for stdin in (text, torn):
        document, codes = inspect_log(
            bare, stdin=stdin, code=0, workload="ngc_tensorflow_rn50", window="21:41"
        )
        assert (document["config"]["micro_batch_size"], document["config"]["world_size"]) == (1, 2)
        assert codes == []
        assert document["throughput"] == pytest.approx(2 * 20 / 114.195983)


@pytest.mark.parametrize(
    ("kind", "sample", "codes"),
    [
        ("topology", "topo/a800_8gpu_2nic_glued_affinity.txt", ["UNREADABLE"] * 4),
        ("topology", "topo/SOURCES.md", None),
        ("gpu", "nvidia-smi/telegraf_tesla-t4.xml", []),
        ("gpu", "nvidia-smi/telegraf_a100-sxm4-v12.xml", ["ATTACHED-GPUS"]),
        ("gpu", "nvidia-smi/netdata_tesla-p100.csv", None),
        ("ibstat", "topo/SOURCES.md", None),
    ],
)
def test_a_recorded_output_is_read_or_refused(
    bare: Here, kind: str, sample: str, codes: list[str] | None
) -> None:
    """Exit 0, 3 with the problems named, or 2 for what is another kind of text."""
    ended = bare("inspect", kind, str(SAMPLES / sample), code=2 if codes is None else None)
    if codes is None:
        assert ended.document["exit_code"] == 2
        assert Path(sample).name in ended.document["errors"][0]["message"]
    else:
        assert [problem["code"] for problem in ended.document["problems"]] == codes
        assert (ended.code, ended.err) == (3 if codes else 0, "")


@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        ("topology", "gpus hcas links cpu_affinity numa_affinity problems digest"),
        ("gpu", "driver cuda gpus problems"),
    ],
)
def test_a_document_has_its_keys(bare: Here, kind: str, keys: str) -> None:
    samples = {"topology": "topo/superbench_ndv4_a100_9nics.txt"}
    sample = samples.get(kind, "nvidia-smi/telegraf_tesla-t4.xml")
    ended = bare("inspect", kind, str(SAMPLES / sample))
    assert sorted(ended.document) == sorted(keys.split())


def test_ibstat_comes_out_as_printed(bare: Here, snapshot: SnapshotAssertion) -> None:
    """The adapter of the published cluster's second node, with all its keys."""
    text = (SAMPLES / "ibstat/dlperf_seed_vs002_mt4115.txt").read_bytes()
    assert bare("inspect", "ibstat", "-", stdin=text, code=0).out == snapshot
