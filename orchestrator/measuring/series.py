"""What a case's trials say one after another: a trend, and trials that are far from the others."""

from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import erfc, sqrt
from statistics import median

ALPHA = 0.05
TREND_FROM = 5  # of 4 values the smallest possible p is 2/4!, which is 0.083
EXACT_UP_TO = 50  # values; of more the exact distribution takes seconds and differs from the normal
# one by less than anybody could use
OUTLIER_FROM = 5  # of 3 values of a normal distribution one in ten would be called an outlier
OUTLIER_MADS = 14.826  # ten standard deviations of a normal distribution


@dataclass(frozen=True, slots=True)
class Trend:
    """A rise or fall over a case's trials.

    Args:
        change: from the first to the last by the median slope, as a share of the median.
        p: of so many ordered pairs by chance, two-sided.
    """

    change: float
    p: float


def trend(values: Sequence[float]) -> Trend | None:
    """The trend of values in their order, if p < 0.05; None without one, and of fewer than 5.

    Source: Mann (1945) and Kendall for S, the number of rising pairs less that of falling ones;
    Sen (1968) for the slope. p is exact up to 50 values, with ties too.
    """
    n = len(values)
    if n < TREND_FROM:
        return None
    falls, rises, before = 0, 0, list[float]()
    for value in values:
        rises += bisect_left(before, value)
        falls += len(before) - bisect_right(before, value)
        insort(before, value)
    p = _two_sided(falls, rises, [*Counter(values).values()])
    if p >= ALPHA:
        return None
    pairs = combinations(range(n), 2)
    slope = median(
        (values[later] - values[earlier]) / (later - earlier) for earlier, later in pairs
    )
    return Trend(slope * (n - 1) / median(values), p)


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


def _two_sided(falls: int, rises: int, ties: Sequence[int]) -> float:
    """The probability of at least so uneven numbers of falls and rises, if every order is alike."""
    n, least = sum(ties), min(falls, rises)
    if n > EXACT_UP_TO:
        variance = _kendall(n) - sum(_kendall(alike) for alike in ties)
        return erfc(max(abs(rises - falls) - 1, 0) / sqrt(2 * variance)) if variance else 1.0
    ways = _orders_by_falls(ties)
    return min(1.0, 2 * sum(ways[: least + 1]) / sum(ways))


def _kendall(n: int) -> float:
    return n * (n - 1) * (2 * n + 5) / 18


def _orders_by_falls(ties: Sequence[int]) -> list[int]:
    """How many orders of the values have 0, 1, 2, ... falling pairs.

    The coefficients of the Gaussian multinomial: values are put in group by group, and those of one
    group among ``before`` smaller ones make the falls of a Gaussian binomial.
    """
    ways, before = [1], 0
    for alike in ties:
        for place in range(1, alike + 1):
            ways = _divided(_times(ways, before + place), place)
        before += alike
    return ways


def _times(ways: Sequence[int], width: int) -> list[int]:
    """The polynomial times 1 - x^width."""
    product = [*ways, *[0] * width]
    for power, way in enumerate(ways):
        product[power + width] -= way
    return product


def _divided(ways: Sequence[int], width: int) -> list[int]:
    """The polynomial over 1 - x^width, which divides it."""
    quotient = list(ways)
    for power in range(width, len(quotient)):
        quotient[power] += quotient[power - width]
    return quotient[: len(quotient) - width]
