"""Intervals of a median, by order statistics, and of a quotient of medians, by Welch's method."""

import math
import statistics
from collections.abc import Sequence
from functools import lru_cache

from orchestrator.model.result import Interval

COVERAGE = 0.95
COVERAGE_OF_FEW = {2: 0.88, 3: 0.92, 4: 0.94}
"""Coverage of ``of_quotient`` when a side has so few trials: ``docs/measuring.md``."""


def of_median(values: Sequence[float]) -> Interval | None:
    """Return the narrowest symmetric order-statistic interval that covers the median with 95 %.

    Fewer than 6 values cannot reach 95 %: then it is [min, max] with its own coverage, such as
    93.75 % for 5 values and 75 % for 3, and None for one value. Source: the sign test; the k-th
    smallest of n values exceeds the median with probability sum(C(n, i), i < k) / 2^n.
    """
    ordered, n = sorted(values), len(values)
    if n < 2:
        return None
    best, coverage = 0, 1 - 2 / 2**n
    below = 1
    for k in range(1, n // 2):
        below += math.comb(n, k)
        covered = 1 - 2 * below / 2**n
        if covered < COVERAGE:
            break
        best, coverage = k, covered
    return Interval(ordered[best], ordered[n - 1 - best], coverage)


def of_quotient(
    ours: Sequence[float], theirs: Sequence[float], outside: float = 1 - COVERAGE
) -> Interval | None:
    """Return the interval of a quotient of medians; None where one has a single value.

    It is Welch's interval of the difference of mean logarithms, which holds for unequal spreads and
    for few values. It is widened by the difference between the quotients of medians and of
    geometric means, so that it also holds where the values of one side are skewed.

    Args:
        outside: the probability that the quotient lies outside.

    Source: Welch, Biometrika 34 (1947), 28-35; simulated by tests/benchmarks/comparisons.py.
    """
    fewest = min(len(ours), len(theirs))
    if fewest < 2:
        return None
    above, below = ([math.log(value) for value in values] for values in (ours, theirs))
    means = statistics.fmean(above) - statistics.fmean(below)
    medians = math.log(statistics.median(ours) / statistics.median(theirs))
    mine, other = (variance(values) / len(values) for values in (above, below))
    half = 0.0
    if mine + other:
        shares = mine**2 / (len(above) - 1) + other**2 / (len(below) - 1)
        freedom = math.floor((mine + other) ** 2 / shares + 1e-9)
        half = student(outside, freedom) * math.sqrt(mine + other)
    low, high = min(means, medians) - half, max(means, medians) + half
    least = COVERAGE_OF_FEW.get(fewest, COVERAGE)
    coverage = 1 - outside * (1 - least) / (1 - COVERAGE)
    return Interval(math.exp(low), math.exp(high), coverage)


def variance(values: Sequence[float]) -> float:
    """Return the variance of at least two values, faster than ``statistics``."""
    mean = statistics.fmean(values)
    return math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)


@lru_cache(maxsize=1024)
def student(outside: float, freedom: int) -> float:
    """Return the value that Student's t exceeds, in either direction, with this probability.

    Source: Abramowitz and Stegun, Handbook of Mathematical Functions (1964), 26.7.3 and 26.7.4.
    """
    low, high = 0.0, math.pi / 2  # of the angle whose tangent is t / sqrt(freedom)
    odd = freedom % 2
    while (angle := (low + high) / 2) not in (low, high):
        sine, cosine = math.sin(angle), math.cos(angle)
        term = cosine if odd else 1.0
        total = term if freedom > 1 else 0.0
        for power in range(2 + odd, freedom - 1, 2):
            term *= cosine**2 * (power - 1) / power
            total += term
        within = 2 / math.pi * (angle + sine * total) if odd else sine * total
        if within < 1 - outside:
            low = angle
        else:
            high = angle
    return math.sqrt(freedom) * math.tan(low)
