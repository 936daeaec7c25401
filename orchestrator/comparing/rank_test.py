"""The rank test of van der Waerden, by normal scores; exact for every pattern of ties."""

import itertools
import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist

MOST_EXACT = 60
"""Values of both samples together; beyond, p is approximated, as an exact one takes seconds."""
_STEPS = 100  # a score of 1 as a whole number, so that sums are exact


def two_sided(first: Sequence[float], second: Sequence[float]) -> float:
    """Return the probability of ranks as uneven as these if both samples have one distribution."""
    return min(1.0, 2 * min(tails(first, second)))


def tails(first: Sequence[float], second: Sequence[float]) -> tuple[float, float]:
    """Return the probabilities of ranks of the second sample as low as these, and as high.

    All ways to deal out the ranks are equally probable, given the ties. Both tails contain the
    observed ranks. A rank counts as the value of a normal distribution in its place; equal values
    share their mean.

    Args:
        first, second: at least one value each.

    Source: van der Waerden, Proceedings Koninklijke Nederlandse Akademie van Wetenschappen A 55
        (1952), 453-458.
    """
    scores = _scores((*first, *second))
    mine = sum(scores[len(first) :])
    if len(scores) > MOST_EXACT:
        return _approximate(scores, len(second), mine)
    smaller, total = (second, mine) if len(second) <= len(first) else (first, sum(scores) - mine)
    low, high = _exact(tuple(sorted(scores)), len(smaller), total)
    return (low, high) if smaller is second else (high, low)


def _scores(values: Sequence[float]) -> list[int]:
    """Return the score of each value's rank, in whole steps above that of the lowest rank."""
    ordered, steps = sorted(values), _steps(len(values))
    scores = dict(zip(ordered, steps, strict=True))
    if len(scores) < len(ordered):
        begin = 0
        for value, ties in itertools.groupby(ordered):
            end = begin + len(list(ties))
            scores[value] = round(sum(steps[begin:end]) / (end - begin))
            begin = end
    return [scores[value] - steps[0] for value in values]


@lru_cache
def _steps(count: int) -> tuple[int, ...]:
    """Return the value of a normal distribution for each of so many ranks, in whole steps."""
    normal = NormalDist()
    return tuple(round(_STEPS * normal.inv_cdf(rank / (count + 1))) for rank in range(1, count + 1))


def _exact(scores: tuple[int, ...], size: int, total: int) -> tuple[float, float]:
    """Return the shares of subsets of a size whose scores have at most this sum, and at least."""
    at_most = _at_most(scores, size)
    every = at_most[-1]
    fewer = at_most[total - 1] if total else 0
    return at_most[total] / every, (every - fewer) / every


@lru_cache(maxsize=64)
def _at_most(scores: tuple[int, ...], size: int) -> tuple[int, ...]:
    """Return how many subsets of a size have at most each sum, from 0 on.

    All sums are counted at once, as digits of one number.

    Args:
        size: at most half of the scores, so that no digit of a smaller subset overflows.
    """
    width = math.comb(len(scores), size).bit_length() // 8 + 1  # bytes of a digit
    ways = [1, *[0] * size]
    for score in scores:
        for taken in range(size, 0, -1):
            ways[taken] += ways[taken - 1] << 8 * width * score
    most = sum(scores[-size:])
    digits = ways[size].to_bytes(width * (most + 1), "little")
    numbers = (
        int.from_bytes(digits[at : at + width], "little") for at in range(0, len(digits), width)
    )
    return tuple(itertools.accumulate(numbers))


def _approximate(scores: Sequence[int], size: int, total: int) -> tuple[float, float]:
    """Return both tails of the normal distribution, corrected for ties."""
    count, mean = len(scores), sum(scores) / len(scores)
    variance = sum((score - mean) ** 2 for score in scores) / (count - 1)
    deviation = math.sqrt(size * (count - size) / count * variance)
    if deviation == 0:
        return 1.0, 1.0
    normal = NormalDist(size * mean, deviation)
    return normal.cdf(total), 1 - normal.cdf(total)
