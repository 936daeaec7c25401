"""The steps of a log, summed up as they come: a log may be larger than the memory."""

import hashlib
from array import array
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from math import fsum, isfinite
from typing import NamedTuple

LAST_ROWS = 5
TRACE_POINTS = 120
HELD = 2_000_000
"""Rates that are held at once, and steps of a log that is drawn."""
AVERAGED = ("train: ", "step: ")
"""How steps begin whose rate is the mean since the line before."""
LAST_MADE = 2000
"""Last steps whose clock is held against their rates."""
RECENT = 100_000
"""Last iterations of a window that say how long one usually takes."""


class PlainStep(NamedTuple):
    """One step that a log prints.

    Args:
        clock_ns: nanoseconds since 1970; None where no time is printed.
        latency: seconds of one step, exact; None likewise.
        lasted_s: seconds of one step, as they are printed; None likewise.
        decimals: of its time, as printed.
        said: losses and rate, whatever time stands beside them.
    """

    line: int
    iteration: int
    clock_ns: int | None
    rate: float
    latency: Fraction | None
    lasted_s: float | None = None
    said: str = ""
    decimals: int = 0

    @property
    def words(self) -> bytes:
        """What the same step of another run does not have."""
        if self.clock_ns is None:
            return self.said.encode() + b"\n"
        return b"%d %d;" % (self.iteration, self.clock_ns)


@dataclass(slots=True)
class Rates:
    """The sum of rates that are positive numbers, as exact as if all were held."""

    count: int = 0
    held: "array[float]" = field(default_factory=lambda: array("d"))
    _sums: list[float] = field(default_factory=list)

    def take(self, rate: float) -> None:
        """Take the next one."""
        if len(self.held) == HELD:
            self._sums.append(fsum(self.held))
            del self.held[:]
        self.count += 1
        self.held.append(rate)

    @property
    def mean(self) -> float | None:
        """None without any."""
        return fsum([*self._sums, fsum(self.held)]) / self.count if self.count else None

    def trace(self, first: int, stride: int, steps: int) -> dict[tuple[int, ...], float]:
        """The mean of each piece of so many steps; empty where they are not held any more."""
        if self._sums:
            return {}
        width = -(-steps // TRACE_POINTS)
        pieces = ((at, self.held[at : min(at + width, steps)]) for at in range(0, steps, width))
        return {
            (first + at * stride, first + (at + len(piece) - 1) * stride): fsum(piece) / len(piece)
            for at, piece in pieces
        }


@dataclass(slots=True)
class Stretch:
    """Steps that follow one another, from the first that counts to the last.

    Args:
        slowness: the sum of what one sample took by each printed rate.
        slowness_after: the same without the first step.
        took: nanoseconds of the last iterations.
        widest: the longest of all, with its iteration, line and rate.
    """

    count: int = 0
    first: PlainStep | None = None
    last: PlainStep | None = None
    rates: Rates = field(default_factory=Rates)
    slowness: float = 0.0
    slowness_after: float = 0.0
    latency: Fraction = Fraction(0)
    took: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT))
    widest: tuple[float, int, int, float] = (0.0, 0, 0, 0.0)
    _said: "hashlib._Hash" = field(default_factory=hashlib.sha256)
    _hashed: "hashlib._Hash" = field(default_factory=hashlib.sha256)

    @classmethod
    def of(cls, steps: Iterable[PlainStep]) -> "Stretch":
        """These steps."""
        found = cls()
        for step in steps:
            found.take(step)
        return found

    def take(self, step: PlainStep) -> None:
        """Take the next step."""
        self._hashed.update(step.words)
        self._said.update(step.said.encode())
        if isfinite(step.rate) and step.rate > 0:
            self.rates.take(step.rate)
            self.slowness += 1 / step.rate
            self.slowness_after += 1 / step.rate if self.count else 0
        if step.latency is not None:
            self.latency += step.latency
        self._time(self.last or step, step)
        self.count += 1
        self.first, self.last = self.first or step, step

    def _time(self, before: PlainStep, step: PlainStep) -> None:
        """Take how long an iteration took: by the clock, as printed, or one over its rate."""
        ahead = step.iteration - before.iteration
        if step.clock_ns is not None:
            if ahead <= 0 or before.clock_ns is None:
                return
            took = (step.clock_ns - before.clock_ns) / ahead
        elif step.lasted_s is not None:
            took = step.lasted_s * 1e9
        elif step.rate > 0 and (self.count or not step.said.startswith(AVERAGED)):
            took = 1 / step.rate
        else:
            return
        self.took.append(took)
        if took >= self.widest[0]:
            self.widest = (took, step.iteration, step.line, step.rate)

    @property
    def weighed(self) -> float | None:
        """The harmonic mean of the rates of steps inside; a mean of steps before is none."""
        is_averaged = self.first is not None and self.first.said.startswith(AVERAGED)
        return self.rate_after_first if is_averaged else self.rate

    @property
    def words(self) -> str:
        """The same beside its times; empty where all rates are equal, which proves nothing."""
        return self._said.hexdigest() if len({*self.rates.held}) > 1 else ""

    @property
    def digest(self) -> str:
        """What no other trial may have; empty where there is nothing."""
        return self._hashed.hexdigest() if self.count else ""

    @property
    def rate(self) -> float | None:
        """The harmonic mean of its rates; None where one is no positive number, or without any."""
        whole = self.rates.count == self.count and self.count
        return self.count / self.slowness if whole else None

    @property
    def rate_after_first(self) -> float | None:
        """The same without the first step, whose time lies before the stretch."""
        if self.rate is None or self.first is None or self.count < 2:
            return None
        return (self.count - 1) / self.slowness_after


@dataclass(slots=True)
class Steps:
    """The steps of a log's first epoch.

    Args:
        window: between which iterations they are looked at one by one.
        series: what the program calls its rates.
        rates: of all epochs.
        later: how many steps the epochs after the first have.
        jumps: how often an iteration came so far behind the one before.
        jumped: of each such jump, the first line that made it, and what it says.
        back: the first line whose clock goes back; 0 without one.
        timeless: how many have no time.
        made: time of iterations by the clock, in nanoseconds, times their rates.
    """

    window: tuple[int, int] | None = None
    series: str = ""
    rates: Rates = field(default_factory=Rates)
    is_positive: bool = True
    count: int = 0
    later: int = 0
    first: PlainStep | None = None
    last: PlainStep | None = None
    jumps: Counter[int] = field(default_factory=Counter)
    jumped: dict[int, tuple[int, str]] = field(default_factory=dict)
    back: int = 0
    timeless: int = 0
    inside: Stretch = field(default_factory=Stretch)
    rows: deque[PlainStep] = field(default_factory=lambda: deque(maxlen=LAST_ROWS))
    made: deque[float] = field(default_factory=lambda: deque(maxlen=LAST_MADE))
    _epoch: int = 0
    _hashed: "hashlib._Hash" = field(default_factory=hashlib.sha256)
    _said: "hashlib._Hash" = field(default_factory=hashlib.sha256)

    def take(self, step: PlainStep, series: str, epoch: int) -> None:
        """Take the next step of a log."""
        self.is_positive = self.is_positive and isfinite(step.rate) and step.rate > 0
        if self.is_positive:
            self.rates.take(step.rate)
        if not self.count:
            self.series, self._epoch = series, epoch
        elif epoch != self._epoch:
            self.later += 1
            return
        if self.last:
            self._compare(self.last, step)
        self.count += 1
        self.first, self.last = self.first or step, step
        self.timeless += step.clock_ns is None
        self.rows.append(step)
        self._hashed.update(step.words)
        self._said.update(step.said.encode())
        if self.window and self.window[0] <= step.iteration <= self.window[1]:
            self.inside.take(step)

    def _compare(self, before: PlainStep, step: PlainStep) -> None:
        jump = step.iteration - before.iteration
        if jump not in self.jumps:
            self.jumped[jump] = (step.line, f"step {step.iteration} after {before.iteration}")
        self.jumps[jump] += 1
        if before.clock_ns is not None and step.clock_ns is not None:
            took = (step.clock_ns - before.clock_ns) / (jump or 1)
            self.made.append(took * step.rate)
            self.back = self.back or (step.line if step.clock_ns < before.clock_ns else 0)

    @property
    def stride(self) -> int:
        """By how much iterations mostly go on; 1 where nothing tells it."""
        return max(self.jumps, key=lambda jump: self.jumps[jump], default=1) or 1

    @property
    def digest(self) -> str:
        """What no other trial may have; empty where there is nothing."""
        return self._hashed.hexdigest() if self.count else ""

    @property
    def words(self) -> str:
        """The same beside its times; empty where all rates are equal, which proves nothing."""
        return self._said.hexdigest() if len({*self.rates.held}) > 1 else ""
