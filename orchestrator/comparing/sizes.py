"""How many trials per side would tell whether a case differs."""

import math
import statistics
from collections.abc import Sequence
from statistics import NormalDist

from orchestrator.comparing import rank_test

MOST = 1000  # what a playbook may ask for
POWER = 0.8


def least_each(level: float) -> int:
    """The fewest trials per side whose ranks can give a two-sided p of at most this level."""
    size = 2
    while rank_test.least(size, size) > level:
        size += 1
    return size


def telling(spread: float | None, distance: float, level: float) -> int | None:
    """The fewest trials per side that tell a difference of this size four times in five.

    Args:
        spread: standard deviation of a trial's logarithm; None where it is not known, so that
            only the test itself sets a limit.
        distance: what must be told apart, as a logarithm.
        level: two-sided, corrected for the number of cases.

    Returns:
        None where even ``MOST`` would not tell.

    Source: Guenther, The American Statistician 35 (1981), 243-244, for the t-test; normal scores
        need as many where logarithms are normal.
    """
    least = least_each(level)
    if not spread:
        return least
    if distance <= 0:
        return None
    normal = NormalDist()
    claim = normal.inv_cdf(1 - level / 2)
    reach = (claim + normal.inv_cdf(POWER)) * spread / distance
    size = math.ceil(2 * reach**2 + claim**2 / 4)
    return max(size, least) if size <= MOST else None


def spread(first: Sequence[float], second: Sequence[float]) -> float | None:
    """The standard deviation of logarithms within both samples together; None of single values."""
    samples = [[math.log(value) for value in values] for values in (first, second)]
    freedom = sum(len(sample) - 1 for sample in samples)
    if freedom == 0:
        return None
    squares = sum(
        (value - mean) ** 2
        for sample in samples
        for mean in [statistics.fmean(sample)]
        for value in sample
    )
    return math.sqrt(squares / freedom)
