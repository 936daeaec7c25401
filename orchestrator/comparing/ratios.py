"""The difference of two samples as a ratio, with its distribution-free interval."""

import math
import statistics
from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise

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

    Source: Hodges and Lehmann, Annals of Mathematical Statistics 34 (1963), 598-611, for
        differences by any rank test; here of logarithms.
    """
    low, below = _lowest(first, second)
    inverse, above = _lowest(second, first)
    coverage = 1 - 2 * max(below, above)
    if coverage <= 0:
        return None
    middle = difference(first, second)
    return Interval(min(low - 1, middle), max(1 / inverse - 1, middle), coverage)


def _lowest(first: Sequence[float], second: Sequence[float]) -> tuple[float, float]:
    """The lowest ratio of the interval, and how improbable every lower one is.

    The test changes only where a ratio of two values is passed; between them it is asked.
    """
    ratios = sorted({after / before for before in first for after in second})
    between = [ratios[0] / 2, *(math.sqrt(low * high) for low, high in pairwise(ratios))]

    def improbable(place: int) -> float:
        return rank_test.tails([value * between[place] for value in first], second)[1]

    beyond = bisect_right(range(len(ratios)), (1 - COVERAGE) / 2, key=improbable)
    place = max(0, beyond - 1)
    return ratios[place], improbable(place)
