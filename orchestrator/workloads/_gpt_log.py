"""Reader of the logs of OneFlow's GPT: arguments, the use of the GPUs once, and a table.

Neither lines nor rows have a time; a row says how long a step took on average.
Source: OneFlow-Benchmark, LanguageModeling/GPT; DLPerf, OneFlow/LanguageModeling/GPT/README.md.
"""

import re
from collections.abc import Iterable
from math import isfinite

from orchestrator.model.log import TrainingLog
from orchestrator.workloads import _gpt_arguments, _gpt_table, _lines, _nccl
from orchestrator.workloads._dll_notes import Notes
from orchestrator.workloads._gpt_run import Run
from orchestrator.workloads._gpt_table import Row
from orchestrator.workloads._lines import Line, Lines
from orchestrator.workloads._order import Place

UNIT = "samples/s"

_WORDS = (b"|", b" MiB", b" ..", b"padded vocab", b" arguments ")
_MEMORY = re.compile(rb"^" + _lines.TAG + rb"(?:\d{1,3} %|\[[^\]]{1,30}\]), (\d{1,9}) MiB[ \t]*$")


class _Reader:
    """A log that is being read, from its first line to its last."""

    def __init__(self, window: tuple[int, int] | None) -> None:
        self._window = window
        self._notes = Notes()
        self._run = Run(window, self._notes)
        self._runs_before = 0
        self._libraries = _nccl.Listener()

    def see(self, line: Line) -> None:
        """Read one line; a last one that nothing ends is no row, for its end may be missing."""
        row = _gpt_table.row(line.text, line.number)
        if not line.whole:
            if row or _gpt_table.is_broken(line.text):
                seen = f"the log ends in the middle of a row, in line {line.number}"
                self._notes.add("TRUNCATED", seen, sort="record")
            return
        if _nccl.concerns(line.text):
            self._libraries.hear(line.text, line.number)
        if row:
            self._row(row)
        elif _gpt_table.is_broken(line.text):
            seen = f"line {line.number} begins or ends as a row but does not match"
            self._run.damage(seen)
        elif found := _MEMORY.match(line.text):
            self._run.memory_mib = max(self._run.memory_mib or 0, int(found[1]))
        else:
            self._header(line)

    def _header(self, line: Line) -> None:
        """Read a line that belongs to the arguments, if it does."""
        if padded := _gpt_arguments.vocabulary(line.text):
            self._open(line.number)
            self._run.padded = padded
        elif _gpt_arguments.opens(line.text):
            self._open(line.number)
        elif said := _gpt_arguments.argument(line.text):
            key, value = said
            if self._run.order.steps or key in self._run.header.keys:
                self._open(line.number)
            if key in _gpt_arguments.TABLE:
                self._run.header.add(key, value, line.number)

    def _open(self, line: int) -> None:
        """Begin another run, if this one has begun."""
        if self._run.has_begun:
            self._restart(f"line {line}: another header")

    def _row(self, row: Row) -> None:
        order = self._run.order
        relation = order.relation(Place(0, row.number))
        if relation == "again":
            self._run.repeat(row)
            return
        if relation == "back":
            self._restart(f"line {row.line}: step {row.number} after {order.where}")
        self._run.add(row)

    def _restart(self, seen: str) -> None:
        self._notes.add("SEVERAL-RUNS", seen)
        self._runs_before += 1
        self._run = Run(self._window, self._notes)

    def log(self, lines: Lines) -> TrainingLog:
        """What has been read."""
        run, first, last = self._run, self._run.order.first, self._run.order.last
        runs = self._runs_before + run.has_begun
        run.close()
        if not run.header.keys:
            self._notes.add("NO-HEADER", "no line of the arguments before the table")
        if not run.order.steps:
            self._notes.add("NO-STEPS", "no row of a table")
        span = run.span() if runs == 1 else None
        return TrainingLog(
            runs=runs,
            steps=run.order.steps,
            first_iteration=first.number if first else None,
            last_iteration=last.number if last else None,
            config=_gpt_arguments.config(run.header),
            start=None,
            end=None,
            rate=run.order.rate,
            window_rate=span.rate if span else None,
            unit=UNIT,
            reported={},
            digest=span.digest if span else "",
            size_bytes=lines.size_bytes,
            sha256=lines.sha256,
            fabric=self._libraries.fabric(),
            problems=self._notes.problems(),
            rule="latency",
            window=span.ends if span else self._window,
            window_mean=span.rate_mean if span else None,
            latency_s=span.latency_s if span else None,
            memory_mib=run.memory_mib,
            lines=span.lines if span else None,
        )


def read(chunks: Iterable[bytes], window: tuple[int, int] | None) -> TrainingLog:
    """What a log says of its last ``ROWS`` rows, or of those in the window, both ends included."""
    reader = _Reader(window)
    lines = Lines(chunks, _concerns)
    for line in lines:
        reader.see(line)
    return reader.log(lines)


def _concerns(text: bytes) -> bool:
    return any(word in text for word in _WORDS) or _nccl.concerns(text)


def progress(block: bytes) -> tuple[int, float] | None:
    """Step and printed samples/s of the last whole row in ``block``; None without one."""
    for text in _lines.backwards(block, b"|"):
        row = _gpt_table.row(text, 0)
        if row and isfinite(row.rate):
            return row.number, row.rate
    return None
