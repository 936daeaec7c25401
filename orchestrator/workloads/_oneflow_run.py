"""One run of OneFlow's ResNet-50 or BERT: its steps, and what they say of the asked window."""

import hashlib
from collections import deque
from math import isfinite
from statistics import median
from typing import NamedTuple

from orchestrator.model.log import SECOND_NS, Moment
from orchestrator.workloads import _clock
from orchestrator.workloads._arguments import Arguments, Table
from orchestrator.workloads._dll_notes import Notes
from orchestrator.workloads._dll_rates import Rates
from orchestrator.workloads._order import Order, Place

_RECENT = 100_000


class Step(NamedTuple):
    """A step as it was printed; ``words`` are all of it, ``clock_ns`` is None in old versions."""

    place: Place
    rate: float
    clock_ns: int | None
    line: int
    words: bytes


class Window:
    """What lies between the two asked iterations, in the first epoch of a run."""

    def __init__(self, ends: tuple[int, int], notes: Notes) -> None:
        self.first, self.last = ends
        self._notes = notes
        self._start: Step | None = None
        self._end: Step | None = None
        self._hash = hashlib.sha256()
        self._origin_ns: int | None = None
        self._before: Step | None = None
        self._gaps = deque[float](maxlen=_RECENT)
        self._widest = (0.0, 0, 0)
        self._rates = Rates()
        self._rated = 0
        self._times = 0.0

    def add(self, step: Step) -> None:
        """Take the next step of the first epoch, if it lies inside; clocks count from the first."""
        number = step.place.number
        if self._origin_ns is None:
            self._origin_ns = step.clock_ns
        if not self.first <= number <= self.last:
            return
        self._hash.update(step.words + b"\n")
        self._rates.append(step.rate)
        if number == self.first:
            self._start = step
        else:
            self._rated += 1
            usable = isfinite(step.rate) and step.rate > 0
            self._times += 1 / step.rate if usable else float("nan")
        if number == self.last:
            self._end = step
        self._gap(step)
        self._before = step

    def _gap(self, step: Step) -> None:
        """Take the time of an iteration since the step before."""
        before = self._before
        if before is None or before.clock_ns is None or step.clock_ns is None:
            return
        iterations = step.place.number - before.place.number
        gap = (step.clock_ns - before.clock_ns) / (iterations * SECOND_NS)
        self._gaps.append(gap)
        if gap >= self._widest[0]:
            self._widest = (gap, step.place.number, step.line)

    def repeat(self, step: Step) -> None:
        """Give up an end of the window that is printed again with other words."""
        if self._start and step.place == self._start.place and step.words != self._start.words:
            self._start = None
        if self._end and step.place == self._end.place and step.words != self._end.words:
            self._end = None

    def judge(self) -> None:
        """Note iterations of more than 5 times the last ones' median, and a coarse clock."""
        _clock.judge(self.start, self.end, self._origin_ns, self._notes)
        gap, number, line = self._widest
        usual = median(self._gaps) if self._gaps else 0.0
        if usual > 0 and gap > 5 * usual:
            self._notes.add(
                "GAP",
                f"line {line}: up to iteration {number}, inside the window, an iteration took"
                f" {gap:.3f} s; the median is {usual:.3f} s",
            )

    @property
    def start(self) -> Moment | None:
        return self._moment(self._start)

    @property
    def end(self) -> Moment | None:
        return self._moment(self._end)

    def _moment(self, step: Step | None) -> Moment | None:
        if step is None or step.clock_ns is None:
            return None
        return Moment(step.place.number, step.clock_ns - (self._origin_ns or 0), step.line)

    @property
    def rate(self) -> float | None:
        """Harmonic mean of the rates after the first iteration up to the last."""
        return self._rated / self._times if self._is_whole and self._times > 0 else None

    @property
    def mean(self) -> float | None:
        """Arithmetic mean of the rates from the first iteration to the last."""
        said = self._rates.summary()
        return said.mean if self._is_whole and said and isfinite(said.mean) else None

    @property
    def _is_whole(self) -> bool:
        return self._start is not None and self._end is not None

    @property
    def digest(self) -> str:
        return self._hash.hexdigest() if self._before else ""


class Run:
    """One run of the program: what its header and its steps say."""

    def __init__(self, ends: tuple[int, int], base: int, table: Table, notes: Notes) -> None:
        self._notes = notes
        self.header = Arguments(table, notes)
        self.order = Order(base, notes)
        self.window = Window(ends, notes)
        self.loaded: set[str] = set()
        self._clock_ns: int | None = None
        self._damage = ("", 0)

    @property
    def has_begun(self) -> bool:
        return bool(self.order.steps or self.header.keys)

    def damage(self, seen: str) -> None:
        """Remember a broken record until the next step tells where it was."""
        first, times = self._damage
        self._damage = (first or seen, times + 1)

    def add(self, step: Step) -> None:
        """Take the next step."""
        self.order.add(step.place, step.rate, step.line)
        if step.clock_ns is None:
            seen = f"line {step.line}: iteration {step.place.number} without the time of its print"
            self._notes.add("NO-CLOCK", seen)
        elif self._clock_ns is not None and step.clock_ns < self._clock_ns:
            seen = f"line {step.line}: iteration {step.place.number}: the clock goes backwards"
            self._notes.add("CLOCK-STEP", seen)
        self._clock_ns = self._clock_ns if step.clock_ns is None else step.clock_ns
        inside = self.window.first < step.place.number <= self.window.last
        self._blame(inside=inside and self.order.in_first_epoch)
        if self.order.in_first_epoch:
            self.window.add(step)

    def _blame(self, *, inside: bool) -> None:
        """Note the records that were broken since the last step."""
        (seen, times), self._damage = self._damage, ("", 0)
        if times:
            code = "MALFORMED" if inside else "MALFORMED-OUTSIDE"
            where = "inside the window" if inside else "outside the window"
            self._notes.add(code, f"{seen}, {where}", sort="record", times=times)

    def close(self) -> None:
        """Note what the records were that no step follows: outside, if the window is complete."""
        self._blame(inside=self.window.end is None)

    def repeat(self, step: Step) -> None:
        """Take a step that was printed before."""
        number, epoch = step.place.number, step.place.epoch
        seen = f"line {step.line}: iteration {number} of epoch {epoch} is there again"
        self._notes.add("DUP-STEPS", seen)
        if self.order.in_first_epoch:
            self.window.repeat(step)
