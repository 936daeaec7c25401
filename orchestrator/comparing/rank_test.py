"""The rank test of Mann, Whitney and Wilcoxon, exact for every pattern of ties."""

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist

MOST_EXACT = 100
"""Values of both samples together above which p comes from the normal approximation: exact ones
would take minutes."""


def two_sided(first: Sequence[float], second: Sequence[float]) -> float:
    """How probable ranks as uneven as these are, if both samples come from one distribution.

    The smaller tail twice; at most 1.
    """
    return min(1.0, 2 * min(tails(first, second)))


def tails(first: Sequence[float], second: Sequence[float]) -> tuple[float, float]:
    """The probability that the second sample's ranks are as low as they are, and as high.

    Under the hypothesis that every way to deal the ranks out is equally probable, given the ties
    that are there. Both tails contain the observed ranks.

    Args:
        first, second: at least one value each.

    Source: Mann and Whitney, Annals of Mathematical Statistics 18 (1947), 50-60; with ties the
        distribution is that of the midranks: Lehmann, Nonparametrics (1975), section 1.4.
    """
    ranks = _doubled_ranks((*first, *second))
    mine = sum(ranks[len(first) :])
    if len(ranks) > MOST_EXACT:
        return _approximate(ranks, len(second), mine)
    smaller, total = (second, mine) if len(second) <= len(first) else (first, sum(ranks) - mine)
    low, high = _exact(tuple(sorted(ranks)), len(smaller), total)
    return (low, high) if smaller is second else (high, low)


def least(size: int, other: int) -> float:
    """The smallest two-sided p that samples of these sizes can give."""
    return 2 / math.comb(size + other, size)


def below(size: int, other: int, pairs: int) -> float:
    """P(U <= pairs) of Mann and Whitney's U without ties: that many pairs of values or fewer are
    the other way round."""
    if size + other > MOST_EXACT:
        deviation = math.sqrt(size * other * (size + other + 1) / 12)
        return NormalDist(size * other / 2, deviation).cdf(pairs + 0.5)
    ranks = tuple(range(2, 2 * (size + other) + 1, 2))
    smaller = min(size, other)
    return _exact(ranks, smaller, smaller * (smaller + 1) + 2 * pairs)[0]


def _doubled_ranks(values: Sequence[float]) -> list[int]:
    """Twice the midranks of the values, from 1 on: whole numbers whatever the ties are."""
    ordered = sorted(values)
    first = {value: place for place, value in reversed(list(enumerate(ordered, 1)))}
    last = {value: place for place, value in enumerate(ordered, 1)}
    return [first[value] + last[value] for value in values]


def _exact(ranks: tuple[int, ...], size: int, total: int) -> tuple[float, float]:
    """The share of subsets of that size whose ranks have at most this sum, and at least."""
    width, ways = _subsets(ranks, size)
    every = math.comb(len(ranks), size)
    at_most = _sum_of_digits(ways & ((1 << width * (total + 1)) - 1), width)
    below_it = _sum_of_digits(ways & ((1 << width * total) - 1), width)
    return at_most / every, (every - below_it) / every


@lru_cache(maxsize=64)
def _subsets(ranks: tuple[int, ...], size: int) -> tuple[int, int]:
    """How many subsets of that size have each sum: digits of one number, and their width in bits.

    Args:
        size: at most half of the ranks, so that no digit of a smaller subset overflows.
    """
    width = math.comb(len(ranks), size).bit_length() + 1
    ways = [1, *[0] * size]
    for rank in ranks:
        for taken in range(size, 0, -1):
            ways[taken] += ways[taken - 1] << width * rank
    return width, ways[size]


def _sum_of_digits(number: int, width: int) -> int:
    """The sum of a number's digits of that many bits, where it is less than the largest digit."""
    return number % ((1 << width) - 1)


def _approximate(ranks: Sequence[int], size: int, total: int) -> tuple[float, float]:
    """Both tails by the normal distribution, corrected for ties and for continuity."""
    count, mean = len(ranks), sum(ranks) / len(ranks)
    variance = sum((rank - mean) ** 2 for rank in ranks) / (count - 1)
    deviation = math.sqrt(size * (count - size) / count * variance)
    if deviation == 0:
        return 1.0, 1.0
    normal = NormalDist(size * mean, deviation)
    return normal.cdf(total + 1), 1 - normal.cdf(total - 1)
