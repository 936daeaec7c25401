"""The rates that a log prints, one a step, summed up exactly."""

from array import array
from collections.abc import Sequence
from math import fsum, nan
from statistics import median

from orchestrator.model.log import Rate
from orchestrator.model.trace import Trace

HELD = 2_000_000
"""Rates that are held at a time: 16 MB; of more of them a median is not given."""
_MANY = 4096
"""Rates that are summed up at once, lest many logs hold many; of fewer, where it is shown."""


class Rates:
    """Positive numbers, as many as come; the sum does not depend on how they are added."""

    def __init__(self) -> None:
        self._held = array("d")
        self._totals: list[float] = []

    def extend(self, rates: Sequence[float]) -> None:
        """Take the next rates."""
        self._held += array("d", rates)  # a third of the time of extending by a list
        while len(self._held) > HELD:
            self._totals.append(_sum(self._held[:HELD]))
            del self._held[:HELD]

    def trace(self, first: int, stride: int, steps: int) -> Trace | None:
        """The first rates; None where they are no longer held.

        Args:
            first: iteration of the first rate.
            stride: iterations from one rate to the next.
            steps: how many rates to show.
        """
        if self._totals:
            return None
        held = self._held[:steps]
        trace = Trace(first, stride, steps, 1, held, held, held)
        return trace if steps < _MANY else trace.reduced()

    @property
    def mean(self) -> float | None:
        """Of all, nan where they have none, as inf and -inf; None without any."""
        count = len(self._totals) * HELD + len(self._held)
        return _sum([*self._totals, _sum(self._held)]) / count if count else None

    def summary(self) -> Rate | None:
        """What a log's reader knows of them; None without any."""
        mean, held = self.mean, self._held
        if mean is None:
            return None
        middle = () if self._totals else held[:] if len(held) < _MANY else (_middle(held.tolist()),)
        return Rate(len(self._totals) * HELD + len(held), mean, middle)


def _sum(values: Sequence[float]) -> float:
    try:
        return fsum(values)
    except (ValueError, OverflowError):  # inf and -inf, or more than a float can be
        return nan


def _middle(values: Sequence[float]) -> float:
    """The exact median of many; only those near it are sorted, in a fifth of the time."""
    sample = sorted(values[:: len(values) // 1000])
    low, high = sample[len(sample) * 9 // 20], sample[len(sample) * 11 // 20]
    near = sorted([value for value in values if low <= value <= high])
    below = len([value for value in values if value < low])
    left, right = (len(values) - 1) // 2 - below, len(values) // 2 - below
    if left >= 0 and right < len(near):
        return (near[left] + near[right]) / 2
    return median(values)
