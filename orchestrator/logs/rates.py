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
"""Rates from which on a trace is reduced at once, lest many logs hold many."""


class Rates:
    """Positive numbers, as many as come; the sum does not depend on how they are added."""

    def __init__(self) -> None:
        self._held = array("d")
        self._totals: list[float] = []

    def add(self, rate: float) -> None:
        """Take the next rate."""
        if len(self._held) == HELD:
            self._totals.append(_sum(self._held))
            del self._held[:]
        self._held.append(rate)

    def trace(self, first: int, stride: int, steps: int) -> Trace | None:
        """Return the first rates, None where they are no longer held.

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
        """Return the mean rate, NaN if it is undefined (inf and -inf), None without any rate."""
        count = len(self._totals) * HELD + len(self._held)
        return _sum([*self._totals, _sum(self._held)]) / count if count else None

    def summary(self) -> Rate | None:
        """Return count, mean and median, None without any rate."""
        mean = self.mean
        if mean is None:
            return None
        count = len(self._totals) * HELD + len(self._held)
        return Rate(count, mean, None if self._totals else median(self._held))


def _sum(values: Sequence[float]) -> float:
    try:
        return fsum(values)
    except (ValueError, OverflowError):  # inf and -inf, or more than a float can be
        return nan
