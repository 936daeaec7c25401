"""Reader of the logs that NVIDIA's DLLogger writes: header, one line a step, summary."""

import hashlib
from collections.abc import Iterable
from math import isfinite

from orchestrator.launchers import tagged
from orchestrator.model.log import TrainingLog
from orchestrator.workloads import Reader, _dll_block, _dll_header, _dll_line, _nccl, _pieces
from orchestrator.workloads._dll_line import Step
from orchestrator.workloads._dll_notes import Notes
from orchestrator.workloads._dll_run import Run
from orchestrator.workloads._dll_window import Window

UNIT = "images/s"

_LONGEST = 1024 * 1024
_SOME = 16


class _Reader:
    """A log that is being read, from its first byte to its last."""

    def __init__(self, window: tuple[int, int]) -> None:
        self._window = window
        self._notes = Notes()
        self._run = Run(window, self._notes)
        self._libraries = _nccl.Listener()
        self._runs_before = 0
        self._doubtful: Step | None = None
        self._any_steps = False
        self._line = 1
        self._rest = b""

    def feed(self, piece: bytes) -> None:
        """Read what ``piece`` makes whole lines of."""
        cut = piece.rfind(b"\n") + 1 or piece.rfind(b"\r") + 1
        if cut:
            self._take(b"".join((self._rest, memoryview(piece)[:cut])))
            self._rest = piece[cut:]
            return
        self._rest += piece
        if len(self._rest) > _LONGEST:  # such as the hole of zeros that copytruncate leaves
            self._take(self._rest[: -_dll_line.LONGEST_RECORD] + b"\r")
            self._rest = self._rest[-_dll_line.LONGEST_RECORD :]

    def close(self) -> None:
        """Read the last line, which no line feed ends, and settle what is open.

        A step counts if the unit behind its rate is there, for then its numbers are whole; of any
        other record it cannot be known what is missing.
        """
        last = self._rest  # up to a carriage return it has been taken
        if _dll_line.match(_dll_line.plain(last)):
            self._take(last + b"\n")
        elif b"DLL" in last:
            self._notes.add(
                "TRUNCATED",
                f"the log ends in the middle of a record, in line {self._line}",
                sort="record",
            )
        self._settle(None)

    def log(self, size_bytes: int, sha256: str) -> TrainingLog:
        """What has been read."""
        run, notes = self._run, self._notes
        runs = self._runs_before + bool(run.steps or run.header.keys)
        run.judge()
        if not self._any_steps:
            notes.add("NO-STEPS", "no line of an iteration")
        only = run.window if runs == 1 else Window(self._window, notes)
        only.judge()
        return TrainingLog(
            runs=runs,
            steps=run.steps,
            first_iteration=run.first.number if run.first else None,
            last_iteration=run.last.number if run.last else None,
            config=run.header.config(),
            start=only.start,
            end=only.end,
            rate=run.rate,
            window_rate=only.rate,
            unit=UNIT,
            reported=run.reported,
            digest=only.digest,
            size_bytes=size_bytes,
            sha256=sha256,
            fabric=self._libraries.fabric(),
            problems=notes.problems(),
            window=self._window,
            window_mean=only.rate_mean,
        )

    def _take(self, lines: bytes) -> None:
        """Read whole lines; what ends in a carriage return is read like a line of its own."""
        text = _dll_line.plain(lines)
        if b"\r" in text:  # to look for one byte takes a tenth of the time of looking for two
            text = text.replace(b"\r\n", b"\n")
        if b"\r" in text:
            self._see_all(text)
            return
        shaped, at = _dll_block.shapes(text), 0
        while at < len(text):
            course = None if self._doubtful else self._run.course
            block = course and _dll_block.read(text, shaped, at, course)
            if block:
                self._run.add_block(block, self._line)
                self._line += len(block.rates)
                at = block.end
            else:
                at = self._see_some(text, at)

    def _see_some(self, text: bytes, at: int) -> int:
        """Read ``_SOME`` lines from ``at`` on, and return where they end."""
        end = at
        for _ in range(_SOME):
            end = text.find(b"\n", end) + 1
            if not end:
                end = len(text)
                break
        self._see_all(text[at:end])
        return end

    def _see_all(self, lines: bytes) -> None:
        """Read lines one by one; few of them concern libraries, and one search tells of many."""
        attentive = _nccl.concerns(lines)
        for line in lines.splitlines(keepends=True):
            if attentive and _nccl.concerns(line):
                self._libraries.hear(line, self._line)
            self._see(line)

    def _see(self, line: bytes) -> None:
        """Read one line with its end."""
        if b"DLL" in line or b"Iteration:" in line:
            step = _dll_line.step(line, self._line)
            if step:
                self._step(step)
                if _dll_line.is_lost(line):
                    seen = f"line {step.line}: iteration {step.number}: the loss is not finite"
                    self._notes.add("LOSS-NOT-FINITE", seen)
            else:
                self._other(line)
        self._line += line.endswith(b"\n")

    def _other(self, line: bytes) -> None:
        kind = _dll_line.kind(line)
        if kind == "header":
            self._header(line)
        elif kind == "summary":
            self._run.reported.update(_dll_header.summary(line))
        elif kind == "malformed":
            self._malformed()

    def _step(self, step: Step) -> None:
        self._any_steps = True
        if self._doubtful:
            self._settle(step)
        run, last = self._run, self._run.last
        if last and step.rank != last.rank and step.rank and last.rank:
            seen = f"line {step.line}: steps of ranks {int(last.rank)} and {int(step.rank)}"
            self._notes.add("DUP-STEPS", seen, sort="ranks")
        if last and step.place <= last.place:
            self._back(step, last)
            return
        if last and step.stamp < last.stamp:
            seen = f"line {step.line}: iteration {step.number}: the clock goes backwards"
            self._notes.add("CLOCK-STEP", seen)
        run.add(step)

    def _back(self, step: Step, last: Step) -> None:
        """Tell a second run from a repeated step, or leave it to the next step to tell."""
        begins = self._run.first and step.number <= self._run.first.number
        if step.place == last.place:
            self._repeat(step)
        elif step.epoch < last.epoch or begins:
            self._restart_at(step, last)
        else:
            self._doubtful = step

    def _settle(self, following: Step | None) -> None:
        """Judge a step that went back: a run goes on from it, or it was an earlier one's copy."""
        step, self._doubtful = self._doubtful, None
        if step is None:
            return
        last = self._run.last
        if last and following and following.follows(step, self._run.stride or 1):
            self._restart_at(step, last)
        else:
            self._repeat(step)

    def _repeat(self, step: Step) -> None:
        seen = f"line {step.line}: iteration {step.number} of epoch {step.epoch} is there again"
        self._notes.add("DUP-STEPS", seen)
        if self._run.in_first_epoch:
            self._run.window.repeat(step)

    def _restart_at(self, step: Step, last: Step) -> None:
        here, before = (f"{each.number} of epoch {each.epoch}" for each in (step, last))
        self._restart(f"line {step.line}: iteration {here} after {before}")
        self._run.add(step)

    def _restart(self, seen: str) -> None:
        self._notes.add("SEVERAL-RUNS", seen)
        self._runs_before += 1
        self._run = Run(self._window, self._notes)

    def _header(self, line: bytes) -> None:
        self._settle(None)
        said = _dll_header.items(line)
        opens = {"data", "arch"} & {name for name, _ in said}  # the other part says model.*
        if opens and (self._run.steps or self._run.header.keys):
            self._restart(f"line {self._line}: another header")
        self._run.header.add(self._line, said)

    def _malformed(self) -> None:
        run, (first, last) = self._run, self._window
        at = run.last.number if run.last else 0
        inside = run.in_first_epoch and first - 1 <= at < last
        where = "inside the window" if inside else "outside the window"
        self._notes.add(
            "MALFORMED" if inside else "MALFORMED-OUTSIDE",
            f"line {self._line}, {where}, begins as a record but does not match",
            sort=where,
        )


def read(chunks: Iterable[bytes], window: tuple[int, int]) -> TrainingLog:
    """What a log says, the same however its bytes are cut into chunks.

    Holds at most ``HELD`` rates and a few blocks of the log in memory.

    Args:
        window: first and last iteration, by the log's own numbers, in its first epoch.
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


def reader(usual: tuple[int, int]) -> Reader:
    """A reader that takes the ``usual`` window where none is asked for."""

    def read_usual(chunks: Iterable[bytes], window: tuple[int, int] | None) -> TrainingLog:
        return read(chunks, window or usual)

    return read_usual


def progress(block: bytes) -> tuple[int, float] | None:
    """Iteration and printed rate of the last whole step line in ``block``; None without one."""
    text = _dll_line.plain(block).replace(b"\r", b"\n")
    end = len(text)
    while (at := text.rfind(b"Iteration: ", 0, end)) >= 0:
        end = text.rfind(b"\n", 0, at) + 1
        found = _dll_line.match(text[end:].partition(b"\n")[0])
        if found and isfinite(rate := float(found["rate"])):
            return int(found["iteration"]), rate
    return None
