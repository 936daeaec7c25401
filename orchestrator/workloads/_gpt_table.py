"""The table that OneFlow's GPT prints: a row every few steps, and what the rows of a window say.

Source: OneFlow-Benchmark, LanguageModeling/GPT, oneflow_gpt/util.py.
"""

import hashlib
import re
from collections import deque
from decimal import Decimal
from math import isfinite, nan
from typing import NamedTuple

from orchestrator.workloads import _lines

ROWS = 5
"""Rows at a table's end that the published latencies are means of."""

_NUMBER = _lines.NUMBER % 5
_ROW = re.compile(
    rb"^[^|]*\| *(?P<number>\d{1,15}) *\| *\d{1,15} *\| *\d{1,15} *"
    rb"\| *(?P<rate>" + _NUMBER + rb") *\| *(?P<latency>" + _NUMBER + rb") *\|"
    rb"(?P<losses>(?: *" + _NUMBER + rb" *\|){0,20})[ \t]*$"
)
_BROKEN = re.compile(rb"^[^|]*\| *\d+ *(?:\||$)|\d\.\d{5} *\|[ \t]*$")


class Row(NamedTuple):
    """A row as it was printed: means over the steps since the row before.

    Args:
        number: of the last of these steps.
        words: all of it without the width of its columns.
        is_lost: whether its loss is not finite.
    """

    number: int
    rate: float
    latency_s: Decimal
    line: int
    words: bytes
    is_lost: bool


def row(text: bytes, line: int) -> Row | None:
    """The row that a line is; None for all other lines."""
    found = _ROW.match(text)
    if not found:
        return None
    cells = found[0].partition(b"|")[2]
    return Row(
        number=int(found["number"]),
        rate=float(found["rate"]),
        latency_s=_seconds(found["latency"]),
        line=line,
        words=b" ".join(cells.split()),
        is_lost=b"n" in found["losses"],
    )


def _seconds(text: bytes) -> Decimal:
    """A latency, exactly; NaN for all that is not a positive number."""
    return Decimal(text.decode("ascii")) if re.search(rb"[1-9]", text) else Decimal("NaN")


def is_broken(text: bytes) -> bool:
    """Whether a line that is no row begins or ends as one."""
    return b"|" in text and _BROKEN.search(text) is not None


class Span:
    """Rows that follow each other, summed up; ``ends`` are the steps of the first and the last."""

    def __init__(self) -> None:
        self.rows = 0
        self.ends = (0, 0)
        self.lines = (0, 0)
        self._latency_s = Decimal(0)
        self._rates = 0.0
        self._times = 0.0
        self._hash = hashlib.sha256()

    def add(self, row: Row) -> None:
        """Take the next row."""
        self.ends = (self.ends[0] if self.rows else row.number, row.number)
        self.lines = (self.lines[0] if self.rows else row.line, row.line)
        self.rows += 1
        self._latency_s += row.latency_s
        self._rates += row.rate
        self._times += 1 / row.rate if isfinite(row.rate) and row.rate else nan
        self._hash.update(row.words + b"\n")

    @property
    def latency_s(self) -> float | None:
        """Mean of the latencies, rounded only in the end; None with one that cannot be."""
        mean = self._latency_s / self.rows
        return None if mean.is_nan() else float(mean)

    @property
    def rate_mean(self) -> float | None:
        """Arithmetic mean of the rates."""
        mean = self._rates / self.rows
        return mean if isfinite(mean) else None

    @property
    def rate(self) -> float | None:
        """Harmonic mean of the rates."""
        return self.rows / self._times if self._times > 0 else None

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()


class Table:
    """The rows of one run, as far as its window wants them.

    Args:
        window: first and last step, or None for the last ``ROWS`` rows.
    """

    def __init__(self, window: tuple[int, int] | None) -> None:
        self._window = window
        self._newest = deque[Row](maxlen=ROWS)
        self._inside = Span()
        self._last: Row | None = None
        self._doubtful: int | None = None

    def add(self, row: Row) -> None:
        """Take the next row."""
        self._last = row
        if self._window is None:
            self._newest.append(row)
        elif self._window[0] <= row.number <= self._window[1]:
            self._inside.add(row)

    def repeat(self, row: Row) -> None:
        """Take the last row again; with other words nobody knows which of them is right."""
        first, last = self._window or (row.number, row.number)
        if self._last and row.words != self._last.words and first <= row.number <= last:
            self._doubtful = row.number

    def span(self, stride: int) -> Span | None:
        """The rows to measure; None if the table does not have all of them, each for certain.

        Args:
            stride: steps from one row to the next.
        """
        span = self._inside
        if self._window is None:
            span = Span()
            for row in self._newest:
                span.add(row)
        (first, last), doubtful = span.ends, self._doubtful or 0
        if not self._suffices(span, stride) or last - first != (span.rows - 1) * stride:
            return None
        return None if first <= doubtful <= last else span

    def _suffices(self, span: Span, stride: int) -> bool:
        """Whether the rows reach from one end of the window to the other."""
        if self._window is None or self._last is None:
            return span.rows == ROWS
        (begin, end), (first, last) = span.ends, self._window
        return begin - stride < first and last < end + stride and last <= self._last.number
