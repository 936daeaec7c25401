"""Every format of a log: the numbers of recorded logs, and what changes none of them."""

import csv
import re
from dataclasses import replace
from statistics import fmean, harmonic_mean, median

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator import workloads
from orchestrator.logs import text
from orchestrator.logs.window import compute_mean
from orchestrator.model.log import TrainingLog
from tests import SAMPLES, TESTS
from tests.doctored.honest import BASES, Base, Log, S, truth
from tests.logs.recorded import KINDS, LOGS, Recorded, codes, problems

every_kind = pytest.mark.parametrize("log", KINDS.values(), ids=KINDS)


def read(base: Base) -> TrainingLog:
    window = tuple(map(int, base.window.split(":"))) if base.window else None
    found = workloads.require(base.workload).read([base.bytes()], window)  # type: ignore[arg-type] # two ends
    return found


@pytest.mark.parametrize("base", BASES, ids=lambda base: f"{base.source}-{base.rule}")
def test_a_second_reader_gives_the_same_numbers(base: Base) -> None:
    """The second reader is ``tests/doctored/honest.py``, which shares no code with the first."""
    log, second = read(base), base.log()
    rates = [second.rate(step) for step in second.all]
    assert (log.runs, log.steps, log.unit) == (1, len(second), log.unit)
    assert (log.first_iteration, log.last_iteration) == (second.number(0), second.number(-1))
    assert log.rate
    assert log.rate.count == len(rates)
    assert log.rate.mean == pytest.approx(fmean(rates), rel=1e-12)
    assert log.rate.median == pytest.approx(median(rates), rel=1e-12)
    if base.rule == "none":
        assert codes(log) == {"NO-CLOCK", "NO-HEADER"}
        assert log.window_rate == pytest.approx(harmonic_mean(rates[1:6]), rel=1e-12)
        return
    assert codes(log) == set(filter(None, [base.marks]))
    assert Recorded(base, None).measure(log) in [
        pytest.approx(it, rel=1e-12) for it in truth(base, base.bytes())
    ]
    lines = base.bytes().split(b"\n")
    begin, end = log.evidence or (0, 0)
    if base.rule == "reported":
        assert begin == end
        assert re.search(rb"throughput :|Average total_ips:", lines[begin - 1])
        return
    first, last = second.window(base)
    inside = rates[first : last + 1]
    assert log.window_mean == pytest.approx(fmean(inside), rel=1e-12)
    timed = inside if base.rule == "latency" else inside[1:]
    assert log.window_rate == pytest.approx(harmonic_mean(timed), rel=1e-12)
    assert lines[begin - 1] in second[first].split(b"\n")
    assert lines[end - 1] in second[last].split(b"\n")
    if base.rule == "clock":
        assert log.measured_s == (second.clock(last) - second.clock(first)) / S
        assert log.origin_ns == second.clock(0)
        assert (log.start and log.start.line, log.end and log.end.line) == (begin, end)


def _published(folder: str) -> list[dict[str, str]]:
    with (SAMPLES / folder / "expected.csv").open(encoding="ascii") as file:
        return [*csv.DictReader(file)]


@pytest.mark.parametrize("row", _published("logs-pytorch-rn50"), ids=lambda row: row["file"])
def test_a_log_of_pytorch_gives_the_numbers_that_its_source_counted(row: dict[str, str]) -> None:
    raw = (SAMPLES / "logs-pytorch-rn50" / row["file"]).read_bytes()
    log = workloads.require("ngc_pytorch_rn50").read([raw], (20, 60))
    samples = int(row["world_size"]) * int(row["batch_size"])
    assert log.rate
    assert log.measured_s
    assert log.steps == int(row["n_iter_lines"])
    assert log.rate.mean == pytest.approx(float(row["mean_total_ips"]), abs=0.01)
    assert log.rate.median == pytest.approx(float(row["median_total_ips"]), abs=0.01)
    assert samples * 40 / log.measured_s == pytest.approx(
        float(row["time_based_iter20_to_iter60"]), abs=0.01
    )
    assert log.reported["train_throughput"] == float(row["summary_total_ips"])
    assert [log.config[name] for name in ("micro_batch_size", "world_size", "iterations")] == [
        int(row[name]) for name in ("batch_size", "world_size", "prof")
    ]
    assert log.config["precision"] == ("amp" if row["amp"] == "True" else "fp32")


@pytest.mark.parametrize("row", _published("logs-tf-rn50"), ids=lambda row: row["file"])
def test_a_benchmark_of_tensorflow_gives_its_own_result(row: dict[str, str]) -> None:
    """To its last digit; a log without a result has no throughput and shows why."""
    raw = (SAMPLES / "logs-tf-rn50" / row["file"]).read_bytes()
    log = workloads.require("ngc_tensorflow_rn50").read([raw], None)
    assert (log.rule, log.window, log.start, log.window_mean) == ("reported", None, None, None)
    assert (log.runs, log.steps) == (int(row["runs_in_file"]), int(row["n_total_ips_lines"]))
    assert log.rate
    assert log.rate.mean == pytest.approx(float(row["mean_total_ips"]), abs=0.005)
    if row["reported_train_throughput"]:
        assert log.reported == {"train_throughput": float(row["reported_train_throughput"])}
    else:
        assert (log.reported, codes(log)) == ({}, {"HEADERLESS", "NO-RESULT"})
        assert (log.evidence, len(problems(log, "NO-RESULT"))) == (None, 1)


def test_the_reports_numbers_come_from_the_reports_logs() -> None:
    """DLPerf: 5915.6 samples/s for the two lines of OneFlow; 13117.188 ms and 11958 MiB for GPT."""
    two_lines = SAMPLES / "logs-oneflow-rn50/of_2n8g_b128_with_timestamp_excerpt.txt"
    log = workloads.require("oneflow_rn50").read([two_lines.read_bytes()], None)
    assert (log.problems, log.measured_s) == ((), 34.6200511)
    assert (log.start and log.start.clock_ns, log.end and log.end.clock_ns) == (0, 34_620_051_100)
    assert LOGS["gpt"].whole.latency_s == 13.117188
    assert LOGS["gpt"].whole.memory_mib == 11958
    bert = SAMPLES / "logs-oneflow-bert/of_1n1g_b24_with_timestamp_excerpt.txt"
    log = workloads.require("oneflow_bert").read([bert.read_bytes()], None)
    assert log.measured_s == pytest.approx(24 * 100 / 140.20, rel=1e-4)


@settings(max_examples=8)
@given(size=st.integers(1, 700), cut=st.integers(1, 5000))
@pytest.mark.parametrize("log", LOGS.values(), ids=LOGS)
def test_pieces_and_chunks_of_any_size_make_no_difference(
    log: Recorded, size: int, cut: int
) -> None:
    raw = b"noise\xff\x00\r" + log.raw.replace(b"\n", b"\r\n", 40)
    read = workloads.require(log.base.workload).read
    whole = read([raw], log.window)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "PIECE", size)  # else every recorded log is one piece
        assert read([raw[at : at + cut] for at in range(0, len(raw), cut)], log.window) == whole


@pytest.mark.parametrize("raw", [b"", b"\n", b"Experiment ended\n", b"\xff\x00\xfe" * 9])
@every_kind
def test_a_log_without_steps_has_no_numbers(log: Recorded, raw: bytes) -> None:
    found = log.read(raw)
    assert (found.runs, found.steps, found.digest, found.reported) == (0, 0, "", {})
    assert (found.rate, found.window_rate, found.window_mean, found.latency_s) == (None,) * 4
    assert (found.first_iteration, found.last_iteration, found.start, found.end) == (None,) * 4
    assert codes(found) - {"NO-RESULT"} == {
        "NO-STEPS",
        "HEADERLESS" if "tensorflow" in log.base.workload else "NO-HEADER",
    }


NOISE = (
    *(TESTS / "doctored" / "chatter.txt").read_bytes().splitlines(keepends=True),
    b"\xe9t\xe9 \x00\xff\n",
    b" 10%|#         |\r 20%|##        |\x1b[K\r",
    b"\x1b[32m 5 %\x1b[0m\r\x1b[K",
    b"\x1b]0;train\x07",
    b"".join(b"NCCL WARN channel %02d closed\n" % channel for channel in range(40)),
)


@pytest.mark.parametrize("noise", NOISE)
@every_kind
def test_text_between_steps_changes_nothing(log: Recorded, noise: bytes) -> None:
    """Prompts, progress bars, libraries, other ranks, validation, and what only looks alike."""
    changed = log.log()
    for step in changed.all:
        changed[step] = noise + changed[step]
    assert log.compare(changed.text()) == []


EVERYWHERE = {
    "line ends of Windows": (rb"\n", b"\r\n"),
    "carriage returns for line feeds": (rb"\n", b"\r"),
    "empty lines": (rb"\n", b"\n\n"),
    "colored lines": (rb"^(.+)$", b"\x1b[1;37m\\1\x1b[0m"),
    "tags of mpirun": (rb"^(?!.*<std)(?=.)", b"[1,0]<stdout>:"),
    "tags with a time": (rb"^(?!.*<std)(?=.)", b"Thu Dec 17 18:27:52 2020[1,0]<stdout>:"),
}


@pytest.mark.parametrize(
    ("log", "before", "after"),
    [
        pytest.param(log, *EVERYWHERE[how], id=f"{kind}-{how}")
        for kind, log in KINDS.items()
        for how in EVERYWHERE
        if kind != "all-reduce" or "tags" not in how  # torchrun starts it
    ],
)
def test_what_a_terminal_or_a_launcher_adds_changes_nothing(
    log: Recorded, before: bytes, after: bytes
) -> None:
    text = re.sub(before, after, log.raw, flags=re.MULTILINE)
    assert log.compare(text) == []
    if after == b"\r\n":
        assert log.read(text).lines == log.whole.lines


@every_kind
def test_evidence_is_that_of_the_window_and_of_nothing_else(log: Recorded) -> None:
    """Another header, or more text, is the same evidence; another step is other evidence."""
    changed = log.log()
    changed.parts[0] = b"num_nodes : 4\n"
    assert log.read(changed.text()).digest == log.whole.digest != ""
    name = "t" if changed.has("t") else "rate"
    step = log.ends[1]
    digits = changed.get(step, name)
    changed.put(step, name, digits[:-1] + (b"2" if digits[-1:] == b"1" else b"1"))
    assert log.read(changed.text()).digest not in ("", log.whole.digest)


@every_kind
def test_what_libraries_print_is_read_with_the_log(log: Recorded) -> None:
    heard = log.read(log.raw + b"vs002:1:2 [0] NCCL INFO Using network IB\n")
    assert (heard.fabric.networks, codes(heard)) == (("IB",), set())
    assert heard.fabric.lines == (log.raw.count(b"\n") + 1,)


def _before_rate(steps: Log, step: int) -> bytes:
    return steps[step].partition(steps.get(step, "rate"))[0]


@every_kind
def test_progress_is_the_last_whole_step(log: Recorded) -> None:
    """From a block that begins and ends in the middle of a line."""
    progress, steps = workloads.require(log.base.workload).progress, log.log()
    last, inside = steps.all[-1], len(steps) // 2
    assert progress(log.raw) == (steps.number(last), steps.rate(last))
    block = steps[inside][20:] + steps[inside + 1] + _before_rate(steps, inside + 2)
    assert progress(block) == (steps.number(inside + 1), steps.rate(inside + 1))
    assert progress(block.replace(b"\n", b"\r")) == progress(block)
    for nothing in (steps.parts[0], b"", b"\n", b"Iteration: 5\n", _before_rate(steps, inside)):
        assert progress(nothing) is None
    steps.put(inside, "rate", b"nan")
    assert progress(steps[inside]) is None


@settings(max_examples=25)
@given(data=st.data())
@pytest.mark.parametrize("name", ["every tenth", "rn50 amp", "benchmark mpirun", *KINDS])
def test_a_log_cut_anywhere_gives_its_own_number_or_a_reason(
    name: str, data: st.DataObject
) -> None:
    log, steps = LOGS[name], LOGS[name].log()
    end = len(log.raw) - len(steps.parts[-1])
    begin = end - len(steps[len(steps) - 1])
    near_end, anywhere = st.integers(begin - 5, len(log.raw)), st.integers(0, len(log.raw))
    found = log.read(log.raw[: data.draw(st.one_of(near_end, anywhere), label="cut")])
    whole = log.whole
    if not codes(found) & {"TRUNCATED", "NO-STEPS", "NO-RESULT", "HEADERLESS"}:
        behind = replace(whole, reported=found.reported, result_line=found.result_line)
        if name == "gpt":  # the latency of its last row is whole, its loss may be cut
            behind = replace(behind, digest=found.digest)
        assert replace(found, sha256=whole.sha256) == behind
    assert log.measure(found) in (None, log.measure(whole))
    assert not found.steps or found.config.items() <= whole.config.items()
    assert found.reported.items() <= whole.reported.items()


@settings(max_examples=12)
@given(data=st.data())
@every_kind
def test_a_line_torn_anywhere_gives_the_same_number_or_a_reason(
    log: Recorded, data: st.DataObject
) -> None:
    """At the ends of the window and inside; its rest follows, is lost, or is glued to a warning.

    OneFlow's last number in a line is its time: without its last decimals the time is up to 0.1 s
    earlier, which short windows show as up to 1 %.
    """
    changed, (first, last) = log.log(), log.ends
    step = data.draw(st.sampled_from([first, (first + last) // 2, last]), label="step")
    line = changed[step]
    at = data.draw(st.integers(1, len(line) - 2), label="at")
    one, two = line[:at], line[at:]
    texts = [one + b"\n" + two, one + b"\n", two, one + b"Warning: x" + two, one, line[:-1]]
    changed[step] = data.draw(st.sampled_from(texts), label="text")
    found = log.read(changed.text())
    number = log.measure(found)
    assert number in (None, pytest.approx(log.measure(log.whole), rel=0.01)) or codes(found)


@pytest.mark.parametrize("rates", [[float("inf"), float("-inf"), 1.0], [1e308, 1e308]])
def test_rates_without_a_sum_have_no_mean(rates: list[float]) -> None:
    mean = compute_mean(rates)
    assert mean != mean  # NaN
