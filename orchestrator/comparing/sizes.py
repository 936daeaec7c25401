"""About how many more trials would tell whether a case differs."""

import math
import statistics
from collections.abc import Sequence

from orchestrator.measuring import intervals

MOST = 100
"""Further trials of each side; where more would be needed, no number is named."""
LEVEL = 0.05
_SURE = 0.6  # standard deviations: three in four of a normal distribution are below
_WIDENED = 1.12  # intervals are wider than Welch's by so much, as simulated


def more(first: Sequence[float], second: Sequence[float], bound: float) -> tuple[int, int] | None:
    """Return about how many more trials of each side would tell, as a range; None beyond ``MOST``.

    With the lower number the interval is as narrow as the distance of the difference from the
    bound, if both are what these trials show. The higher one holds for a wider spread and a smaller
    distance too: ``docs/compare.md`` says how often both tell.
    """
    logs = [[math.log(value) for value in values] for values in (first, second)]
    fewest, freedom = min(map(len, logs)), sum(map(len, logs)) - 2
    spread = math.sqrt(sum(map(intervals.variance, logs)))
    apart = abs(math.log(statistics.median(second) / statistics.median(first)))
    distance = abs(apart - math.log1p(bound))
    error = _SURE * spread / math.sqrt(fewest)
    low = _needed(fewest, spread, distance, 0.0)
    high = _needed(fewest, spread * _widest(freedom), distance - error, _SURE)
    return None if low is None or high is None else (low, high)


def _needed(size: int, spread: float, distance: float, surely: float) -> int | None:
    for further in range(1, MOST + 1):
        count = size + further
        wide = _WIDENED * intervals.student(LEVEL, 2 * count - 2) + surely
        if wide * spread / math.sqrt(count) <= distance:
            return further
    return None


def _widest(freedom: int) -> float:
    """Return the true spread over the observed one that three in four such samples stay below.

    Source: Wilson and Hilferty, Proceedings of the National Academy of Sciences 17 (1931), 684-688.
    """
    part = 2 / (9 * freedom)
    return math.pow(1 - part - _SURE * math.sqrt(part), -1.5)
