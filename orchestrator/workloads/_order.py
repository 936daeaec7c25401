"""The steps that one run of OneFlow's programs prints, as they follow each other."""

from math import isfinite
from typing import Literal, NamedTuple

from orchestrator import words
from orchestrator.model.log import Rate
from orchestrator.workloads._dll_notes import Notes
from orchestrator.workloads._dll_rates import Rates

_JUMPS = 1000
Relation = Literal["next", "again", "back"]


class Place(NamedTuple):
    """Where in a run a step is; programs without epochs are in epoch 0."""

    epoch: int
    number: int


class Promise(NamedTuple):
    """What a header says of the steps to come; None where it says nothing.

    Args:
        interval: from one printed step to the next.
        least, most: iterations of an epoch, as far as the header tells.
    """

    interval: int | None = None
    least: int | None = None
    most: int | None = None
    epochs: int | None = None


class Order:
    """How far a run has come, and whether it left anything out.

    Args:
        base: the number of a run's first iteration.
    """

    def __init__(self, base: int, notes: Notes) -> None:
        self._base = base
        self._notes = notes
        self.steps = 0
        self.first: Place | None = None
        self.last: Place | None = None
        self._epochs = 0
        self._jumps: dict[int, tuple[int, str]] = {}
        self._positive = True
        self._rates = Rates()

    @property
    def where(self) -> str:
        """The last step, in words."""
        return f"{self.last.number} of epoch {self.last.epoch}" if self.last else ""

    @property
    def extent(self) -> str:
        """The first and the last step, in words."""
        return f"from {self.first.number} to {self.last.number}" if self.first and self.last else ""

    @property
    def in_first_epoch(self) -> bool:
        return self._epochs <= 1

    def relation(self, place: Place) -> Relation:
        """What a step is to the last one: its successor, its copy, or of another run."""
        if self.last is None or place > self.last:
            return "next"
        return "again" if place == self.last else "back"

    def add(self, place: Place, rate: float, line: int) -> None:
        """Take the next step."""
        before, self.last = self.last, place
        self.first = self.first or place
        self.steps += 1
        self._rates.append(rate)
        if not (isfinite(rate) and rate > 0):
            self._positive = False
            self._notes.add(
                "NOT-FINITE", f"line {line}: iteration {place.number}: rate {rate:g}", sort="rate"
            )
        if before is None or place.epoch > before.epoch:
            self._open(place, before, line)
        else:
            self._jump(place.number - before.number, before, f"line {line}: {place.number}")

    def _open(self, place: Place, before: Place | None, line: int) -> None:
        """Begin an epoch, which counts from where the first one began."""
        self._epochs += 1
        if before is None or self.first is None:
            return
        if place != (before.epoch + 1, self.first.number):
            seen = f"line {line}: iteration {place.number} of epoch {place.epoch}"
            seen = f"{seen} after {before.number} of epoch {before.epoch}"
            self._notes.add("SKIPPED-STEPS", seen, sort="epoch")

    def _jump(self, ahead: int, before: Place, seen: str) -> None:
        """Count how far steps are apart; random numbers must not fill the memory."""
        key = ahead if ahead in self._jumps or len(self._jumps) < _JUMPS else 0
        count, first = self._jumps.get(key, (0, f"{seen} comes after {before.number}"))
        self._jumps[key] = (count + 1, first)

    def stride(self, interval: int | None) -> int:
        """Iterations from one step to the next; what the header says of it, or what is usual."""
        if interval is not None:
            return interval
        usual = max(self._jumps, key=lambda ahead: (self._jumps[ahead][0], -ahead), default=0)
        return usual or self._done(self.first)

    def judge(self, promise: Promise) -> None:
        """Note what only the whole run shows: steps left out, steps missing at the end."""
        if self.first is None or self.last is None:
            return
        stride, begin = self.stride(promise.interval), self._done(self.first)
        for ahead, (times, seen) in self._jumps.items():
            if ahead != stride:
                self._notes.add("SKIPPED-STEPS", seen, times=times)
        if begin > stride or (promise.interval is not None and begin < stride):
            seen = f"the log begins at iteration {self.first.number}, with a step every {stride}"
            self._notes.add("SKIPPED-STEPS", seen, sort="beginning")
        self._end(self.last, stride, promise)

    def _end(self, last: Place, stride: int, promise: Promise) -> None:
        done, epochs = self._done(last), promise.epochs or last.epoch + 1
        seen = f"the log ends at iteration {last.number} of epoch {last.epoch}; its header promises"
        seen = f"{seen} {promise.least} iterations in each of {words.count(epochs, 'epoch')}"
        if done > (promise.most or done) or last.epoch + 1 > epochs:
            self._notes.add("MIXED-CONFIG", seen, sort="end")
        elif (promise.least or 0) - done >= stride or last.epoch + 1 < epochs:
            self._notes.add("TRUNCATED", seen)

    def _done(self, place: Place | None) -> int:
        """Iterations of its epoch that a place has behind it."""
        return place.number + 1 - self._base if place else 1

    @property
    def rate(self) -> Rate | None:
        """The rates of all steps; None with one that is not a positive number."""
        return self._rates.summary() if self._positive else None
