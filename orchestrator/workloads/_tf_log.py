"""Reader of the logs of NVIDIA's TensorFlow ResNet-50: header, steps, the program's own result."""

import hashlib
from collections.abc import Iterable
from math import isfinite

from orchestrator.launchers import tagged
from orchestrator.model.log import TrainingLog
from orchestrator.workloads import _dll_header, _dll_line, _nccl, _pieces, _tf_block, _tf_line
from orchestrator.workloads._dll_line import Step
from orchestrator.workloads._dll_notes import Notes
from orchestrator.workloads._tf_line import Part, Printed
from orchestrator.workloads._tf_run import RESULT, Run
from orchestrator.workloads._tf_runs import Runs

UNIT = "images/s"

_LONGEST = 1024 * 1024


class _Reader:
    """A log that is being read, from its first byte to its last."""

    def __init__(self, ends: tuple[int, int] | None) -> None:
        self._notes = Notes()
        self._runs = Runs(ends, self._notes)
        self._libraries = _nccl.Listener()
        self._half: Part | None = None
        self._any_steps = False
        self._line = 1
        self._rest = b""

    def feed(self, piece: bytes) -> None:
        """Read what ``piece`` makes whole lines of."""
        text = self._rest + piece
        cut = text.rfind(b"\n") + 1 or text.rfind(b"\r") + 1
        self._take(text[:cut])
        self._rest = text[cut:]
        if len(self._rest) > _LONGEST:  # such as the hole of zeros that copytruncate leaves
            self._take(self._rest[: -_dll_line.LONGEST_RECORD] + b"\r")
            self._rest = self._rest[-_dll_line.LONGEST_RECORD :]

    def close(self) -> None:
        """Read the last line, which no line feed ends, and settle what is open."""
        before, end, last = self._rest.rpartition(b"\r")
        self._take(before + end)
        if _tf_line.is_whole(_dll_line.plain(last)):
            self._take(last + b"\n")
        elif self._half or b"DLL" in last or b":::NVLOG" in last:
            self._notes.add(
                "TRUNCATED",
                f"the log ends in the middle of a record, in line {self._line}",
                sort="record",
            )
        self._runs.settle(None)

    def log(self, size_bytes: int, sha256: str) -> TrainingLog:
        """What has been read."""
        run, is_one = self._runs.last, self._runs.count == 1
        self._judge(run, is_one)
        window = run.window if is_one else None
        return TrainingLog(
            runs=self._runs.count,
            steps=run.steps,
            first_iteration=run.first.number if run.first else None,
            last_iteration=run.last.number if run.last else None,
            config=run.header.config(),
            start=window.start if window else None,
            end=window.end if window else None,
            rate=run.rate,
            window_rate=window.rate if window else None,
            unit=UNIT,
            reported=run.reported,
            digest=run.digest if is_one else "",
            size_bytes=size_bytes,
            sha256=sha256,
            fabric=self._libraries.fabric(),
            problems=self._notes.problems(),
            rule="clock" if run.ends else "reported",
            window=run.ends,
            window_mean=window.rate_mean if window else None,
            tells=run.header.tells,
        )

    def _judge(self, run: Run, is_one: bool) -> None:
        run.judge()
        if not self._any_steps:
            self._notes.add("NO-STEPS", "no line of an iteration")
        if is_one and run.ends is None and RESULT not in run.reported:
            seen = f"no {RESULT}, which the program reports at its end; the log lacks that end"
            self._notes.add("NO-RESULT", seen)
        if is_one and run.window:
            run.window.judge()

    def _take(self, lines: bytes) -> None:
        """Read whole lines; what ends in a carriage return is read like a line of its own."""
        text, at = _dll_line.plain(lines).replace(b"\r\n", b"\n"), 0
        while at < len(text):
            block = None if self._half else self._runs.add_block(text, at, self._line)
            if block:
                self._line += len(block.rates)
                at = block.end
            else:
                at = self._see_some(text, at)

    def _see_some(self, text: bytes, at: int) -> int:
        """Read some lines from ``at`` on one by one, and return where they end."""
        end = at
        for _ in range(_tf_block.LEAST):
            end = text.find(b"\n", end) + 1 or len(text)
        attentive = _nccl.concerns(text[at:end])  # one search tells of many lines
        for line in text[at:end].splitlines(keepends=True):
            if attentive and _nccl.concerns(line):
                self._libraries.hear(line, self._line)
            self._see(line.lstrip(b"\x00"))
            self._line += line.endswith(b"\n")
        return end

    def _see(self, line: bytes) -> None:
        """Read one line with its end."""
        if b"DLL" in line:
            self._dll(line)
        elif b":::NVLOG" in line:
            self._nvlog(line)
        elif b"_ips" in line or b"imgs_per" in line or b"throughput" in line:
            if _tf_line.is_suspect(line):
                self._malformed()
        elif b"Num GPUs" in line or b"Per-GPU" in line or b"Total Steps" in line:
            self._count(line)
        elif b"Starting Model Training" in line:
            self._start()

    def _dll(self, line: bytes) -> None:
        said = _tf_line.whole_step(line)
        if said:
            self._step(said)
            if _tf_line.is_lost(line):
                self._lost(said.number)
            return
        kind = _tf_line.kind(line)
        if kind == "header":
            self._runs.begin(f"line {self._line}: another header")
            self._runs.last.header.add(self._line, _dll_header.items(line))
        elif kind == "result":
            self._runs.last.conclude(self._line, _dll_header.summary(line))
        elif kind == "malformed":
            self._malformed()

    def _nvlog(self, line: bytes) -> None:
        """Bring the two halves of a step together, the number and then its rate."""
        said = _tf_line.part(line)
        if said is None:
            self._malformed()
        elif said.average is not None:
            self._runs.last.conclude(self._line, {RESULT: said.average})
        elif said.number is not None:
            if self._half:
                self._malformed()
            self._half = said
        elif said.metric is not None:
            self._second_half(said, said.metric)
        else:
            self._told_by_nvlog(line)

    def _second_half(self, said: Part, metric: str) -> None:
        half, self._half = self._half, None
        if half and half.number is not None and said.rate is not None and half.rank == said.rank:
            self._step(Printed(half.rank, half.stamp, half.number, metric, said.rate))
        else:
            self._malformed()

    def _told_by_nvlog(self, line: bytes) -> None:
        run = self._runs.last
        if b" XLA is activated" in line:
            run.header.tell(self._line, "xla", True)
        elif b" TF AMP is activated" in line:
            run.header.tell(self._line, "amp", True)
        elif b" Starting Model Training" in line:
            self._start()
        elif _tf_line.is_lost(line) and run.last:
            self._lost(run.last.number)
        else:
            self._count(line)

    def _start(self) -> None:
        if self._runs.last.steps:
            self._runs.begin(f"line {self._line}: another training is started")

    def _count(self, line: bytes) -> None:
        found = _tf_line.count(line)
        if found:
            self._runs.last.header.tell(self._line, *found)

    def _step(self, said: Printed) -> None:
        self._any_steps = True
        step = Step(said.rank, said.stamp, 0, said.number, said.rate, self._line)
        self._runs.add(said.metric, step)

    def _lost(self, iteration: int) -> None:
        seen = f"line {self._line}: iteration {iteration}: the loss is not finite"
        self._notes.add("LOSS-NOT-FINITE", seen)

    def _malformed(self) -> None:
        run = self._runs.last
        at = run.last.number if run.last else 0
        window = run.window
        inside = window is not None and window.first - 1 <= at < window.last
        where = "inside the window" if inside else "outside the window"
        self._notes.add(
            "MALFORMED" if inside else "MALFORMED-OUTSIDE",
            f"line {self._line}, {where}, begins as a record but does not match",
            sort=where,
        )


def read(chunks: Iterable[bytes], window: tuple[int, int] | None) -> TrainingLog:
    """What a log says, the same however its bytes are cut into chunks.

    Args:
        window: first and last iteration, by the log's own numbers. Without one, a log of mode train
            is measured over ``USUAL``, and of a benchmark the program's own result counts.
    """
    reader, sha256, size_bytes = _Reader(window), hashlib.sha256(), 0
    ranks = tagged.Rejoined()
    for piece in _pieces.even(chunks):
        sha256.update(piece)
        size_bytes += len(piece)
        reader.feed(ranks.feed(piece))
    reader.feed(ranks.close())
    reader.close()
    return reader.log(size_bytes, sha256.hexdigest())


def progress(block: bytes) -> tuple[int, float] | None:
    """Iteration and printed rate of the last whole step in ``block``; None without one."""
    *lines, last = _dll_line.plain(block).replace(b"\r", b"\n").split(b"\n")
    rate: float | None = None
    for line in (*([last] if _tf_line.is_whole(last) else []), *reversed(lines)):
        said = _tf_line.whole_step(line) or _tf_line.part(line)
        if said is None:
            continue
        rate = said.rate if said.rate is not None else rate
        if said.number is not None and rate is not None and isfinite(rate):
            return said.number, rate
    return None
