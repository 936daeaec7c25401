"""What a case's trials show one after another: a trend, and trials far from the others."""

from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from math import sqrt
from statistics import median

TREND_FROM = 5  # of 4 values one order in twelve rises or falls throughout
TREND_DEVIATIONS = 1.96
OUTLIER_FROM = 5  # of 3 values of a normal distribution one in ten would be called an outlier
OUTLIER_MADS = 14.826  # ten standard deviations of a normal distribution


def trend(values: Sequence[float]) -> float | None:
    """Return how far values rise from the first to the last, as a share of their median.

    None of fewer than 5 values, and where the number of rising pairs less that of falling ones is
    within two standard deviations of chance.

    Source: Mann (1945) and Kendall for that number and its deviation; Sen (1968) for the slope.
    """
    n = len(values)
    if n < TREND_FROM:
        return None
    falls, rises, before = 0, 0, list[float]()
    for value in values:
        rises += bisect_left(before, value)
        falls += len(before) - bisect_right(before, value)
        insort(before, value)
    variance = _variance(n) - sum(map(_variance, Counter(values).values()))
    if abs(rises - falls) - 1 <= TREND_DEVIATIONS * sqrt(variance):
        return None
    slope = median(
        (values[later] - values[earlier]) / (later - earlier)
        for earlier, later in combinations(range(n), 2)
    )
    return slope * (n - 1) / median(values)


def _variance(n: int) -> float:
    return n * (n - 1) * (2 * n + 5) / 18


def outliers(values: Sequence[float]) -> dict[int, float]:
    """By index of each value that is far from the others, how far, as a share of the median.

    Far is more than 14.826 median absolute deviations from the median; none is of fewer than 5.

    Source: Iglewicz and Hoaglin (1993); the threshold is hyperfine's, src/outlier_detection.rs.
    """
    middle = median(values) if values else 0.0
    spread = median(abs(value - middle) for value in values) if values else 0.0
    if len(values) < OUTLIER_FROM or spread == 0:
        return {}
    return {
        index: value / middle - 1
        for index, value in enumerate(values)
        if abs(value - middle) / spread > OUTLIER_MADS
    }
