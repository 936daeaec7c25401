"""What the trials of a case say one after another: outliers, and a trend.

Source: ``docs/measuring.md``; Mann (1945) and Kendall for the trend, Sen (1968) for its slope.
"""

from collections import Counter
from collections.abc import Sequence
from functools import cache
from itertools import combinations
from math import erfc, sqrt
from statistics import median

from orchestrator.verifying.marks import Mark

LEAST_TRIALS = 5
OUTLIER_MADS = 14.826
ALPHA = 0.05
EXACT = 50
"""Trials; of more, the normal distribution is taken."""


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
    p = _chance(falls, rises, [*Counter(values).values()])
    if p >= ALPHA:
        return []
    slope = median((after - before) / (there - here) for (here, before), (there, after) in pairs)
    change = slope * (len(values) - 1) / median(values)
    way = "rises" if change > 0 else "falls"
    return [Mark("TREND", (way, f"{abs(change):.1%}", f"{len(values)} trials", f"{p:.2g}"))]


def _chance(falls: int, rises: int, ties: Sequence[int]) -> float:
    """Of so uneven numbers of falls and rises, or more, where every order is alike."""
    count = sum(ties)
    if count > EXACT:
        variance = sum(n * (n - 1) * (2 * n + 5) for n in (count,))
        variance -= sum(n * (n - 1) * (2 * n + 5) for n in ties)
        far = max(abs(rises - falls) - 1, 0)
        return erfc(far / sqrt(variance / 9)) if variance else 1.0
    orders: Sequence[int] = (1,)
    before = 0
    for alike in ties:
        before += alike
        orders = _product(orders, _orders(before, alike))
    return min(1.0, 2 * sum(orders[: min(falls, rises) + 1]) / sum(orders))


@cache
def _orders(count: int, last: int) -> tuple[int, ...]:
    """How many ways to place so many last ones have 0, 1, 2, ... falls.

    The first place holds one of them, which then lies before all others, or another.
    """
    if last in (0, count):
        return (1,)
    first = (*[0] * (count - last), *_orders(count - 1, last - 1))
    other = _orders(count - 1, last)
    width = max(len(first), len(other))
    padded = ((*ways, *[0] * (width - len(ways))) for ways in (first, other))
    return tuple(map(sum, zip(*padded, strict=True)))


def _product(one: Sequence[int], other: Sequence[int]) -> tuple[int, ...]:
    found = [0] * (len(one) + len(other) - 1)
    for place, ways in enumerate(one):
        for further, more in enumerate(other):
            found[place + further] += ways * more
    return tuple(found)
