"""What a DLLogger log says between the two iterations of the asked window."""

import hashlib
from collections import deque
from math import inf, isfinite, nan
from statistics import median

from orchestrator.model.log import SECOND_NS, Moment
from orchestrator.workloads import _clock
from orchestrator.workloads._dll_line import Step
from orchestrator.workloads._dll_notes import Notes
from orchestrator.workloads._dll_rates import Rates

_RECENT = 100_000


class Window:
    """What lies between the two asked iterations, in the first epoch of a run."""

    def __init__(self, ends: tuple[int, int], notes: Notes) -> None:
        self.first, self.last = ends
        self.start: Moment | None = None
        self.end: Moment | None = None
        self._notes = notes
        self._hash = hashlib.sha256()
        self._steps = 0
        self._origin_ns: int | None = None
        self._before_ns: int | None = None
        self._gaps_ns = deque[int](maxlen=_RECENT)
        self._widest = (0, 0, 0)
        self._rated = 0
        self._times = 0.0
        self._rates = Rates()

    def add(self, step: Step) -> None:
        """Take the next step of the first epoch, if it lies inside; clocks count from the first."""
        if self._origin_ns is None:
            self._origin_ns = _clock.of_stamp(step.stamp)
        if not self.first <= step.number <= self.last:
            return
        self._steps += 1
        self._hash.update(b"%d %s\n" % (step.number, step.stamp))
        clock_ns = _clock.of_stamp(step.stamp)
        if clock_ns is None:
            self._notes.add("MALFORMED", f"line {step.line}: there is no such date or time")
        else:
            self._at(step, clock_ns)
        self._before_ns = clock_ns
        self._rates.append(step.rate)
        if step.number > self.first:
            self._rated += 1
            self._times += 1 / step.rate if 0 < step.rate < inf else nan

    def _at(self, step: Step, clock_ns: int) -> None:
        if step.number == self.first:
            self.start = self._moment(step, clock_ns)
        if step.number == self.last:
            self.end = self._moment(step, clock_ns)
        if self._before_ns is not None:
            gap = clock_ns - self._before_ns
            self._gaps_ns.append(gap)
            if gap >= self._widest[0]:
                self._widest = (gap, step.number, step.line)

    def _moment(self, step: Step, clock_ns: int) -> Moment:
        return Moment(step.number, clock_ns - (self._origin_ns or 0), step.line)

    def repeat(self, step: Step) -> None:
        """Give up an end of the window that is printed again with another time."""
        clock_ns = _clock.of_stamp(step.stamp)
        again = None if clock_ns is None else self._moment(step, clock_ns).clock_ns
        if self.start and step.number == self.first and again != self.start.clock_ns:
            self.start = None
        if self.end and step.number == self.last and again != self.end.clock_ns:
            self.end = None

    def judge(self) -> None:
        """Note a step of more than 5 times the median of the last ``_RECENT``, a coarse clock."""
        _clock.judge(self.start, self.end, self._origin_ns, self._notes)
        gap, number, line = self._widest
        usual = median(self._gaps_ns) if self._gaps_ns else 0
        if usual > 0 and gap > 5 * usual:
            self._notes.add(
                "GAP",
                f"line {line}: iteration {number}, inside the window, took"
                f" {gap / SECOND_NS:.3f} s; the median step takes {usual / SECOND_NS:.3f} s",
            )

    @property
    def rate(self) -> float | None:
        """Harmonic mean of the rates after the first iteration up to the last."""
        if self.start and self.end and self._times > 0:
            return self._rated / self._times
        return None

    @property
    def rate_mean(self) -> float | None:
        """Arithmetic mean of the rates from the first iteration to the last."""
        said = self._rates.summary()
        if self.start and self.end and said and isfinite(said.mean):
            return said.mean
        return None

    @property
    def digest(self) -> str:
        return self._hash.hexdigest() if self._steps else ""
