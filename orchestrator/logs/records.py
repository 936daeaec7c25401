"""The records of a log without a clock, which say how long a step took on average."""

from collections import deque
from math import isfinite, isnan, nan
from typing import TYPE_CHECKING

from orchestrator.logs.format import Format, Step
from orchestrator.logs.notes import Notes
from orchestrator.logs.window import Window
from orchestrator.model.log import SECOND_NS

if TYPE_CHECKING:
    from orchestrator.logs.run import Run


class Records(Window):
    """The records inside a window, or the last ones of a run: all of them are evidence."""

    def __init__(self, ends: tuple[int, int] | None, form: Format, notes: Notes) -> None:
        super().__init__(ends, form, notes)
        self._newest = deque[Step](maxlen=form.tail)
        self._inside: tuple[Step, Step] | None = None
        self._latencies_ns: float = 0
        self._doubtful: int | None = None

    def add(self, step: Step) -> None:
        """Take the next record."""
        if self.ends is None:
            self._newest.append(step)
        elif self._first <= step.number <= self._last:
            self._include(step)

    def _include(self, step: Step) -> None:
        self._count(step)
        self._time(step, None)
        self._rates.add(step.rate)
        self._rated += 1
        first, _ = self._inside or (step, step)
        self._inside = (first, step)
        self.used, self.lines = (first.number, step.number), (first.line, step.line)
        self._times += 1 / step.rate if isfinite(step.rate) and step.rate else nan
        lasted = step.latency_ns is not None and step.latency_ns > 0
        self._latencies_ns += step.latency_ns if step.latency_ns and lasted else nan
        mean_s = self._latencies_ns / (self._rated * SECOND_NS)  # rounded only here
        self.latency_s = None if isnan(mean_s) else mean_s

    def misses(self, before: int | None, after: int | None, behind: int) -> bool | None:
        """Whether a lost record could lie inside; None where only the end of the log tells it.

        Args:
            behind: how many records came after it.
        """
        if self.ends is not None:
            return super().misses(before, after, behind)
        return behind < self._form.tail if after is None else None

    def repeat(self, step: Step, last: Step) -> None:
        """Doubt a record that is printed again, unless it says the same."""
        inside = self.ends is None or self._first <= step.number <= self._last
        if inside and step.text != last.text:
            self._doubtful = step.number

    def judge(self, run: "Run", stride: int, _batch: float | None) -> None:
        """Note a window of which the log lacks a record, or does not tell one for certain."""
        for step in self._newest:
            self._include(step)
        if run.first is None or run.last is None or self._reaches(run.last, stride):
            self._judge_gap()
            return
        self._inside, self._steps = None, 0
        self.used, self.lines, self.latency_s = self.ends, None, None
        seen = f"the log has {run.steps} records, from {run.first.number} to {run.last.number}"
        if self.ends is None:
            seen = f"{seen}; needed its last {self._form.tail}, one every {stride} iterations"
        else:
            window = f"the window {self._first}-{self._last}"
            seen = f"{window}: {seen}; needed one every {stride} iterations, up to {self._last}"
        self._notes.add("WINDOW", seen)

    def _reaches(self, last: Step, stride: int) -> bool:
        """Whether the records follow each other from one end of the window to the other."""
        if self._inside is None:
            return False
        begin, end = (step.number for step in self._inside)
        if self._doubtful is not None and begin <= self._doubtful <= end:
            return False
        if end - begin != (self._rated - 1) * stride:
            return False
        if self.ends is None:
            return self._rated == self._form.tail
        covers = begin - stride < self._first and self._last < end + stride
        return covers and self._last <= last.number

    @property
    def rate_weighed(self) -> float | None:
        """Harmonic mean of the rates of all records."""
        return self.rate

    @property
    def is_whole(self) -> bool:
        return self._inside is not None
