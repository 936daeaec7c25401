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
    """Return the probability of ranks as uneven as these if both samples have one distribution.

    All ways to deal out the ranks are equally probable, given the ties. A rank counts as the value
    of a normal distribution in its place; equal values share their mean.

    Args:
        first, second: at least one value each.

    Source: van der Waerden, Proceedings Koninklijke Nederlandse Akademie van Wetenschappen A 55
        (1952), 453-458.
    """
    ordered, size = sorted((*first, *second)), len(second)
    normal = NormalDist()
    ranks = range(1, len(ordered) + 1)
    steps = [round(_STEPS * normal.inv_cdf(rank / (len(ordered) + 1))) for rank in ranks]
    scores, begin = {}, 0
    for value, ties in itertools.groupby(ordered):
        end = begin + len(list(ties))
        scores[value] = round(sum(steps[begin:end]) / (end - begin)) - steps[0]
        begin = end
    every = tuple(scores[value] for value in ordered)
    total = sum(scores[value] for value in second)
    if len(every) <= MOST_EXACT:
        at_most = _at_most(every, size)
        fewer = at_most[total - 1] if total else 0
        return min(1.0, 2 * min(at_most[total], at_most[-1] - fewer) / at_most[-1])
    mean = sum(every) / len(every)
    variance = sum((score - mean) ** 2 for score in every) / (len(every) - 1)
    deviation = math.sqrt(size * len(first) / len(every) * variance)
    if deviation == 0:
        return 1.0
    low = NormalDist(size * mean, deviation).cdf(total)
    return 2 * min(low, 1 - low)


@lru_cache(maxsize=64)
def _at_most(scores: tuple[int, ...], size: int) -> tuple[int, ...]:
    """Return how many subsets of a size have at most each sum, from 0 on.

    All sums are counted at once, as digits of one number.

    Args:
        scores: in ascending order.
    """
    width = len(scores) // 8 + 1  # bytes of a digit, which no number of subsets overflows
    ways = [1, *[0] * size]
    for score in scores:
        for taken in range(size, 0, -1):
            ways[taken] += ways[taken - 1] << 8 * width * score
    most = sum(scores[len(scores) - size :])
    digits = ways[size].to_bytes(width * (most + 1), "little")
    numbers = (
        int.from_bytes(digits[at : at + width], "little") for at in range(0, len(digits), width)
    )
    return tuple(itertools.accumulate(numbers))
