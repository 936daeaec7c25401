"""How many trials per side would tell whether a case differs."""

import math
import statistics
from collections.abc import Sequence
from statistics import NormalDist

from orchestrator.comparing import rank_test

MOST = 1000  # what a playbook may ask for
POWER = 0.8
# Trials that a rank test needs for what a t-test sees with one, where logs are normal; source:
# Lehmann, Nonparametrics (1975), section 2.4.
_RANKS_FOR_ONE = math.pi / 3


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
    """
    least = least_each(level)
    if not spread:
        return least
    if distance <= 0:
        return None
    normal = NormalDist()
    reach = normal.inv_cdf(1 - level / 2) + normal.inv_cdf(POWER)
    size = math.ceil(2 * _RANKS_FOR_ONE * (reach * spread / distance) ** 2)
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
