"""Intervals: of a median, by order statistics; of a quotient of two medians, by the bootstrap."""

import itertools
import math
from collections.abc import Sequence
from functools import lru_cache

from orchestrator.model.result import Interval

COVERAGE = 0.95
ENOUGH = 5
"""Trials of each case from which on the bootstrap covers what it says: ``docs/measuring.md``."""
MOST = 50
"""Trials of a case up to which all resamples are counted: the work grows with the square."""


def of_median(values: Sequence[float], least: float = COVERAGE) -> Interval | None:
    """The narrowest symmetric order-statistic interval that covers the median so surely.

    With fewer than 6 values none does with 95 %, and [min, max] is given with what it covers:
    93.75 % of 5 values, 75 % of 3, nothing of one. Source: the sign test; the k-th smallest of n
    values exceeds the median with probability sum(C(n, i), i < k) / 2^n.
    """
    ordered, n = sorted(values), len(values)
    if n < 2:
        return None
    best, coverage = 0, 1 - 2 / 2**n
    ways = below = 1  # C(n, k), and their sum up to k
    for k in range(1, n // 2):
        ways = ways * (n - k + 1) // k
        below += ways
        covered = 1 - 2 * below / 2**n
        if covered < least:
            break
        best, coverage = k, covered
    return Interval(ordered[best], ordered[n - 1 - best], coverage)


def of_quotient(ours: Sequence[float], theirs: Sequence[float]) -> Interval | None:
    """The interval of a quotient of medians; None where one has a single value.

    The bootstrap where both have ``ENOUGH`` values: of fewer it covers less than it says.
    """
    if all(ENOUGH <= len(values) <= MOST for values in (ours, theirs)):
        return resampled(ours, theirs)
    return of_both(ours, theirs)


def of_both(ours: Sequence[float], theirs: Sequence[float]) -> Interval | None:
    """From the ends of the intervals of both medians, which together cover with their product.

    Each covers with the root of 95 % where there are values enough.
    """
    above, below = (of_median(values, COVERAGE**0.5) for values in (ours, theirs))
    if above is None or below is None:
        return None
    coverage = above.coverage * below.coverage
    return Interval(above.low / below.high, above.high / below.low, coverage)


def resampled(ours: Sequence[float], theirs: Sequence[float]) -> Interval:
    """The middle 95 % of the quotients of medians of resampled values.

    All resamples are counted, none is drawn: the same values have the same interval always.

    Source: Efron, Annals of Statistics 7 (1979), 1-26: section 3 counts the resampled median.
    """
    quotients = sorted(
        (above / below, ways * other_ways)
        for above, ways in zip(sorted(ours), _ways(len(ours)), strict=True)
        for below, other_ways in zip(sorted(theirs), _ways(len(theirs)), strict=True)
    )
    beyond = sum(ways for _, ways in quotients) // 40  # 2.5 %
    return Interval(_reached(quotients, beyond), _reached(quotients[::-1], beyond), COVERAGE)


def _reached(quotients: Sequence[tuple[float, int]], beyond: int) -> float:
    """The first quotient with which more than so many ways lie behind."""
    counted = itertools.accumulate(ways for _, ways in quotients)
    return next(one for (one, _), ways in zip(quotients, counted, strict=True) if ways > beyond)


@lru_cache
def _ways(count: int) -> tuple[int, ...]:
    """In how many resamples each of so many values, in order, is the median.

    Of an even number one value less is drawn, so that the median is one of them.
    """
    drawn = count - 1 + count % 2
    at_most = [
        sum(
            math.comb(drawn, low) * place**low * (count - place) ** (drawn - low)
            for low in range(drawn // 2 + 1, drawn + 1)
        )
        for place in range(count + 1)
    ]
    return tuple(more - less for less, more in itertools.pairwise(at_most))
