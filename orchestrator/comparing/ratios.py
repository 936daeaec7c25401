"""The difference of two samples as a ratio, with its distribution-free interval."""

import statistics
from collections.abc import Sequence

from orchestrator.comparing import rank_test
from orchestrator.model.result import Interval

COVERAGE = 0.95


def difference(first: Sequence[float], second: Sequence[float]) -> float:
    """By how much the second median differs from the first: their ratio - 1."""
    return statistics.median(second) / statistics.median(first) - 1


def interval(first: Sequence[float], second: Sequence[float]) -> Interval | None:
    """The interval of the difference, with what it covers; None where it would cover nothing.

    It holds every ratio by which the first sample can be multiplied without the rank test telling
    it from the second one. The narrowest that covers 95 %; where none does, the widest that the
    samples can give. Where the difference of medians lies outside, it is widened to it.

    Source: Hodges and Lehmann, Annals of Mathematical Statistics 34 (1963), 598-611, and Lehmann,
        Nonparametrics (1975), section 2.6, for differences; here of logarithms.
    """
    ratios = sorted(after / before for before in first for after in second)
    place = _outside(len(first), len(second))
    coverage = 1 - 2 * rank_test.below(len(first), len(second), place)
    if coverage <= 0:
        return None
    middle = difference(first, second)
    low, high = ratios[place] - 1, ratios[len(ratios) - 1 - place] - 1
    return Interval(min(low, middle), max(high, middle), coverage)


def _outside(size: int, other: int) -> int:
    """How many of the ratios lie below the interval: as many as leave it 95 %."""
    beyond = (1 - COVERAGE) / 2
    low, high = 0, size * other // 2
    while low < high:
        middle = (low + high + 1) // 2
        if rank_test.below(size, other, middle) <= beyond:
            low = middle
        else:
            high = middle - 1
    return low
