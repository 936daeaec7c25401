"""What the one reader promises of every format: recorded logs, and these with one fault put in."""

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from orchestrator.logs import (
    DLLOGGER,
    ONEFLOW_BERT,
    ONEFLOW_GPT,
    ONEFLOW_RN50,
    TENSORFLOW,
    Format,
    reader,
)
from orchestrator.model.log import TrainingLog
from tests import SAMPLES
from tests.logs.said import codes, problems

FOLDERS = {
    "logs-pytorch-rn50": DLLOGGER,
    "logs-tf-rn50": TENSORFLOW,
    "logs-oneflow-rn50": ONEFLOW_RN50,
    "logs-oneflow-bert": ONEFLOW_BERT,
    "logs-oneflow-gpt": ONEFLOW_GPT,
}
FILES = {
    path.name: (form, path.read_bytes())
    for folder, form in FOLDERS.items()
    for path in sorted((SAMPLES / folder).glob("*.txt"))
}


@dataclass(frozen=True)
class Recorded:
    """A recorded log without a problem, and patterns of the line of its window's last step.

    Args:
        step: what that line has, and no other.
        rate, loss, evidence: what stands before its rate and loss, and before its time or latency.
    """

    name: str
    window: tuple[int, int]
    step: bytes
    rate: bytes
    loss: bytes
    evidence: bytes

    @property
    def form(self) -> Format:
        return FILES[self.name][0]

    @property
    def raw(self) -> bytes:
        return FILES[self.name][1]

    @property
    def line(self) -> bytes:
        """The last step's own."""
        (found,) = re.findall(rb"(?m)^.*" + self.step + rb".*\n", self.raw)
        return bytes(found)

    @property
    def whole(self) -> TrainingLog:
        return self.read(self.raw)

    def read(self, raw: bytes) -> TrainingLog:
        return reader(self.form)([raw], self.window)

    def with_line(self, line: bytes) -> TrainingLog:
        """The log with another line in the last step's place."""
        return self.read(self.raw.replace(self.line, line))

    def changed(self, before: bytes, after: bytes) -> bytes:
        """The last step's line with another number behind that pattern, or one of these digits."""
        (found,) = re.finditer(rb"(" + before + rb")([\d.]+)", self.line)
        number = re.sub(rb"\d", after, found[2]) if after.isdigit() else after
        return self.line.replace(found[0], found[1] + number)


NVIDIA = (rb"total_ips : ", rb"train.loss : ", rb"DLL \S+ \d\d:\d\d:")
LOGS = (
    Recorded(
        "paddleperf_2020-12-18_be362d9_pytorch_gpu8_amp_bs128.txt",
        *((20, 60), rb"Iteration: 60 ", *NVIDIA),
    ),
    Recorded(
        "paddleperf_2022-11-21_b150233_pytorch_gpu32_amp_bs256.txt",
        *((20, 60), rb"Iteration: 60 ", *NVIDIA),
    ),
    Recorded(
        "paddleperf_2020-12-18_be362d9_tf_gpu1_fp32_bs128.txt",
        *((200, 300), rb"\(0, 300\) ", NVIDIA[0], b"", NVIDIA[2]),  # a benchmark prints no loss
    ),
    Recorded(
        "of_2n8g_b128_with_timestamp_excerpt.txt",
        *((20, 120), rb"iter 120,", rb"samples/s: ", rb" loss: ", rb"samples/s: \S+ "),
    ),
    Recorded(
        "of_1n1g_b24_with_timestamp_excerpt.txt",
        *((19, 119), rb"step: 119,", rb"throughput: ", rb"total_loss: ", rb"throughput: \S+ "),
    ),
    Recorded(
        "of_gpt_4n8d_dp2_mp4_pp4_full_README.txt",
        *((60, 100), rb"\| 100 +\| 3200 ", rb"51200 +\| ", rb"13.12494 +\| ", rb"39.00969 +\| "),
    ),
)
every_log = pytest.mark.parametrize("log", LOGS, ids=lambda log: log.name)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("window", [None, (20, 60), (210, 300)])
def test_chunks_make_no_difference(name: str, window: tuple[int, int] | None) -> None:
    """Bytes that come one by one, seven by seven or cut anywhere give the same log."""
    form, raw = FILES[name]
    raw, dice = raw.replace(b"\n", b"\r\n", 40), random.Random(name)

    def pieces(sizes: range) -> Iterator[bytes]:
        at = 0
        while at < len(raw):
            size = dice.choice(sizes)
            yield raw[at : at + size]
            at += size

    whole = reader(form)([raw], window)
    for sizes in (range(1, 2), range(7, 8), range(300)):
        assert reader(form)(pieces(sizes), window) == whole


@pytest.mark.parametrize("raw", [b"", b"\n", b"Experiment ended\n", b"\xff\x00\xfe" * 9])
@pytest.mark.parametrize("form", FOLDERS.values(), ids=FOLDERS)
@pytest.mark.parametrize("window", [None, (200, 300)])
def test_log_without_steps_has_no_numbers(
    raw: bytes, form: Format, window: tuple[int, int] | None
) -> None:
    """Nothing comes back as nothing, never as 0."""
    log = reader(form)([raw], window)
    assert (log.runs, log.steps, log.digest, log.reported) == (0, 0, "", {})
    assert (log.rate, log.window_rate, log.window_mean, log.latency_s) == (None,) * 4
    assert (log.first_iteration, log.last_iteration, log.start, log.end) == (None,) * 4
    assert codes(log) == {"NO-STEPS", form.headerless[0]}


@every_log
def test_repeated_step_is_counted_once(log: Recorded) -> None:
    """The same line twice is named, and changes no number."""
    twice, once = log.with_line(log.line * 2), log.whole
    assert once.problems == ()
    assert (twice.steps, twice.rate, twice.runs) == (once.steps, once.rate, 1)
    for name in ("end", "latency_s", "window_mean"):
        assert getattr(twice, name) == getattr(once, name)
    assert codes(twice) == {"DUP-STEPS"}
    (message,) = problems(twice, "DUP-STEPS")
    number = log.raw[: log.raw.index(log.line)].count(b"\n") + 2
    where = rf"line {number}: iteration {log.window[1]}( of epoch 0)? is there again"
    assert re.fullmatch(where, message)


@every_log
def test_window_end_that_is_printed_twice_is_no_end(log: Recorded) -> None:
    """Of two different records of one step nobody knows which is right."""
    other = log.changed(log.evidence, b"1")
    twice = log.with_line(log.line + other)
    assert (twice.end, twice.latency_s, twice.window_rate, twice.window_mean) == (None,) * 4
    assert "DUP-STEPS" in codes(twice)


@every_log
@pytest.mark.parametrize("rate", [b"nan", b"inf", b"-inf", b"0"])
def test_rate_that_is_no_rate_is_named(log: Recorded, rate: bytes) -> None:
    """No mean is drawn from a rate that is not positive and finite."""
    broken = log.with_line(log.changed(log.rate, rate))
    assert (broken.rate, broken.window_rate, broken.steps) == (None, None, log.whole.steps)
    (message,) = problems(broken, "NOT-FINITE")
    assert message.endswith(f": iteration {log.window[1]}: rate {float(rate):g}")


@pytest.mark.parametrize("log", [log for log in LOGS if log.loss], ids=lambda log: log.name)
def test_loss_that_is_not_finite_is_named_apart(log: Recorded) -> None:
    """Dynamic loss scaling begins with such losses: the rates stand."""
    lost, whole = log.with_line(log.changed(log.loss, b"nan")), log.whole
    assert (lost.rate, lost.end, lost.latency_s) == (whole.rate, whole.end, whole.latency_s)
    (problem,) = lost.problems
    assert problem.code == "LOSS-NOT-FINITE"
    assert problem.message.endswith(f": iteration {log.window[1]}: the loss is not finite")


@every_log
def test_libraries_are_heard(log: Recorded) -> None:
    """NCCL's word for its network, with its line."""
    heard = log.read(log.raw + b"vs002:1:2 [0] NCCL INFO Using network IB\n")
    assert (heard.fabric.networks, heard.problems) == (("IB",), ())
    assert heard.fabric.lines == (log.raw.count(b"\n") + 1,)
