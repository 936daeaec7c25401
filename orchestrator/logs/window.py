"""What a log says between the two iterations of a window, in the first epoch of a run."""

import hashlib
from collections import deque
from math import inf, isfinite, nan
from statistics import median
from typing import TYPE_CHECKING

from orchestrator.logs.format import Format, Step
from orchestrator.logs.notes import Notes
from orchestrator.logs.rates import Rates
from orchestrator.model.log import SECOND_NS, Moment

if TYPE_CHECKING:
    from orchestrator.logs.run import Run

_RECENT = 100_000


class Window:
    """The steps inside a window, summed up.

    Args:
        ends: the first and the last iteration; None where all steps are evidence and none an end.
    """

    def __init__(self, ends: tuple[int, int] | None, form: Format, notes: Notes) -> None:
        self.ends = ends
        self.used = ends
        """The first and the last iteration that count."""
        self.lines: tuple[int, int] | None = None
        """Of these two, where the log has both."""
        self.latency_s: float | None = None
        """Mean seconds per step, where the program prints them."""
        self._form = form
        self._notes = notes
        self._first, self._last = ends or (0, 0)
        self._taken: dict[int, tuple[bytes, int | None, int]] = {}
        """Evidence, clock in ns and line of the ends."""
        self._hash = hashlib.sha256()
        self._steps = 0
        self.origin_ns: int | None = None
        """When the first step of all was printed, by the log's own clock."""
        self._before: tuple[int, int | None] = (0, None)
        self._gaps_ns = deque[float](maxlen=_RECENT)
        self._widest = (0.0, 0, 0, 0)
        self._rates = Rates()
        self._rated = 0
        self._times = 0.0

    def add(self, step: Step) -> None:
        """Take the next step, as far as it lies inside; clocks count from the first of all."""
        inside = self.ends is None or self._first <= step.number <= self._last
        if not (inside or self.origin_ns is None):
            return
        clock = self._form.clock
        clock_ns = clock(step.stamp) if clock and step.stamp else None
        if self.origin_ns is None:
            self.origin_ns = clock_ns
        if inside:
            self._take(step, clock_ns)

    def _take(self, step: Step, clock_ns: int | None) -> None:
        self._steps += 1
        self._hash.update(step.evidence + b"\n")
        if self.ends is None:
            return
        self._rates.add(step.rate)
        if step.number > self._first:
            self._rated += 1
            self._times += 1 / step.rate if 0 < step.rate < inf else nan
        if step.stamp and clock_ns is None:
            self._notes.add("MALFORMED", f"line {step.line}: there is no such date or time")
        if step.stamp:
            self._time(step, clock_ns)
        if step.number in self.ends and (clock_ns is not None or not step.stamp):
            self._taken[step.number] = (step.evidence, clock_ns, step.line)

    def _time(self, step: Step, clock_ns: int | None) -> None:
        """Take the time of an iteration that follows another."""
        number, before_ns = self._before
        if clock_ns is not None and before_ns is not None:
            gap_ns, ahead = clock_ns - before_ns, step.number - number
            self._gaps_ns.append(gap_ns / ahead)
            self._widest = max(self._widest, (gap_ns / ahead, step.number, ahead, step.line))
        self._before = (step.number, clock_ns)

    def misses(self, before: int | None, after: int | None, _behind: int) -> bool | None:
        """Whether a step that was lost between these two, if there are such, could lie inside."""
        if self.ends is None:
            return False
        return (before is None or before < self._last) and (after is None or after > self._first)

    def repeat(self, step: Step, _last: Step) -> None:
        """Give up an end of the window that is printed again with other words or another time."""
        taken = self._taken.get(step.number)
        if taken and taken[0] != step.evidence:
            del self._taken[step.number]

    def judge(self, _run: "Run", _stride: int) -> None:
        """Note iterations of more than 5 times the last ones' median, and a coarse clock."""
        if self._is_whole:
            self.lines = self._taken[self._first][2], self._taken[self._last][2]
        self._judge_clock()
        gap_ns, number, iterations, line = self._widest
        usual_ns = median(self._gaps_ns) if self._gaps_ns else 0
        if not 0 < 5 * usual_ns < gap_ns:
            return
        what = f"iteration {number}, inside the window, took"
        step = "step takes"
        if iterations > 1:
            what = f"up to iteration {number}, inside the window, an iteration took"
            step = "is"
        took, median_s = f"{gap_ns / SECOND_NS:.3f} s", f"{usual_ns / SECOND_NS:.3f} s"
        self._notes.add("GAP", f"line {line}: {what} {took}; the median {step} {median_s}")

    def _judge_clock(self) -> None:
        """Note a window that begins and ends on a whole second: its clock has no fractions.

        A clock with microseconds does so once in 10 ** 12 windows.
        """
        (start, end), origin_ns = self.moments, self.origin_ns
        if not (start and end) or origin_ns is None or end.clock_ns <= start.clock_ns:
            return
        if (start.clock_ns + origin_ns) % SECOND_NS or (end.clock_ns + origin_ns) % SECOND_NS:
            return
        seconds = (end.clock_ns - start.clock_ns) // SECOND_NS
        self._notes.add(
            "COARSE-CLOCK",
            f"lines {start.line} and {end.line}: the clock shows whole seconds; the {seconds} s"
            " between them are good to 1 s",
        )

    @property
    def moments(self) -> tuple[Moment | None, Moment | None]:
        """Of the first and the last iteration."""
        return self._moment(self._first), self._moment(self._last)

    def _moment(self, number: int) -> Moment | None:
        _, clock_ns, line = self._taken.get(number, (b"", None, 0))
        return None if clock_ns is None else Moment(number, clock_ns - (self.origin_ns or 0), line)

    @property
    def rate(self) -> float | None:
        """Harmonic mean of the rates after the first iteration up to the last."""
        return self._rated / self._times if self._is_whole and self._times > 0 else None

    @property
    def rate_mean(self) -> float | None:
        """Arithmetic mean of the rates from the first iteration to the last."""
        mean = self._rates.mean if self._is_whole else None
        return mean if mean is not None and isfinite(mean) else None

    @property
    def _is_whole(self) -> bool:
        return self._first in self._taken and self._last in self._taken

    @property
    def digest(self) -> str:
        return self._hash.hexdigest() if self._steps else ""
