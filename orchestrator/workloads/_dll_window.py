"""What a DLLogger log says between the two iterations of the asked window."""

import hashlib
from collections import deque
from datetime import datetime
from math import isfinite
from statistics import median

from orchestrator.model.log import Moment
from orchestrator.workloads._dll_line import Step
from orchestrator.workloads._dll_notes import Notes
from orchestrator.workloads._dll_rates import Rates

_RECENT = 100_000
_EPOCH = datetime(1970, 1, 1)


def _clock_s(stamp: bytes) -> float | None:
    """Seconds since 1970 of a timestamp read as UTC; None if there is no such time."""
    try:
        return (datetime.fromisoformat(stamp.decode("ascii")) - _EPOCH).total_seconds()
    except ValueError:
        return None


class Window:
    """What lies between the two asked iterations, in the first epoch of a run."""

    def __init__(self, ends: tuple[int, int], notes: Notes) -> None:
        self.first, self.last = ends
        self.start: Moment | None = None
        self.end: Moment | None = None
        self._notes = notes
        self._hash = hashlib.sha256()
        self._steps = 0
        self._before: float | None = None
        self._gaps = deque[float](maxlen=_RECENT)
        self._widest = (0.0, 0, 0)
        self._rated = 0
        self._times = 0.0
        self._rates = Rates()

    def add(self, step: Step) -> None:
        """Take the next step of the first epoch, if it lies inside."""
        if not self.first <= step.number <= self.last:
            return
        self._steps += 1
        self._hash.update(b"%d %s\n" % (step.number, step.stamp))
        clock_s = _clock_s(step.stamp)
        if clock_s is None:
            self._notes.add("MALFORMED", f"line {step.line}: there is no such date or time")
        else:
            self._at(step, clock_s)
        self._before = clock_s
        self._rates.append(step.rate)
        if step.number > self.first:
            self._rated += 1
            usable = isfinite(step.rate) and step.rate > 0
            self._times += 1 / step.rate if usable else float("nan")

    def _at(self, step: Step, clock_s: float) -> None:
        if step.number == self.first:
            self.start = Moment(step.number, clock_s, step.line)
        if step.number == self.last:
            self.end = Moment(step.number, clock_s, step.line)
        if self._before is not None:
            gap = clock_s - self._before
            self._gaps.append(gap)
            if gap >= self._widest[0]:
                self._widest = (gap, step.number, step.line)

    def repeat(self, step: Step) -> None:
        """Give up an end of the window that is printed again with another time."""
        clock_s = _clock_s(step.stamp)
        if self.start and step.number == self.first and clock_s != self.start.clock_s:
            self.start = None
        if self.end and step.number == self.last and clock_s != self.end.clock_s:
            self.end = None

    def judge(self) -> None:
        """Note a step that took more than 5 times the median of the last ``_RECENT``."""
        gap, number, line = self._widest
        usual = median(self._gaps) if self._gaps else 0.0
        if usual > 0 and gap > 5 * usual:
            self._notes.add(
                "GAP",
                f"line {line}: iteration {number}, inside the window, took {gap:.3f} s;"
                f" the median step takes {usual:.3f} s",
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
