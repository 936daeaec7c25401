"""What the trials of a case say one after another: outliers, and a trend.

Source: ``docs/measuring.md``; Mann (1945) and Kendall for the trend, Sen (1968) for its slope.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from math import sqrt
from statistics import median

from orchestrator.verifying.marks import Mark

LEAST_TRIALS = 5
OUTLIER_MADS = 14.826
DEVIATIONS = 1.96
"""Of chance, beyond which so uneven numbers of rises and falls are a trend."""


def outliers(values: Sequence[float]) -> dict[int, Mark]:
    """By place, the marks of values far from their median."""
    if len(values) < LEAST_TRIALS:
        return {}
    middle = median(values)
    spread = median(abs(value - middle) for value in values)
    return {
        place: Mark("OUTLIER", _far(value / middle - 1, len(values)))
        for place, value in enumerate(values)
        if spread and abs(value - middle) / spread > OUTLIER_MADS
    }


def _far(share: float, count: int) -> tuple[str, ...]:
    return f"{abs(share):.1%}", "above" if share > 0 else "below", f"{count} trials"


def trend(values: Sequence[float]) -> list[Mark]:
    """The mark of values that rise or fall, one by one."""
    if len(values) < LEAST_TRIALS:
        return []
    pairs = list(combinations(enumerate(values), 2))
    falls = sum(after < before for (_, before), (_, after) in pairs)
    rises = sum(after > before for (_, before), (_, after) in pairs)
    ties = Counter(values).values()
    chance = [n * (n - 1) * (2 * n + 5) for n in (len(values), *ties)]
    variance = 2 * chance[0] - sum(chance)
    if max(abs(rises - falls) - 1, 0) <= DEVIATIONS * sqrt(variance / 18):
        return []
    slope = median((after - before) / (there - here) for (here, before), (there, after) in pairs)
    change = slope * (len(values) - 1) / median(values)
    way = "rises" if change > 0 else "falls"
    return [Mark("TREND", (way, f"{abs(change):.1%}", f"{len(values)} trials"))]
