"""The intervals of medians and of speedups, derived again."""

from collections.abc import Sequence
from math import comb

COVERAGE = 0.95
RESAMPLED = range(5, 51)  # trials of both cases with which a speedup's interval is the bootstrap's


def of_median(values: Sequence[float], least: float = COVERAGE) -> dict[str, object]:
    """The narrowest pair of order statistics that covers the median so surely, else the widest.

    Args:
        values: in order.
    """
    count = len(values)
    inner = [k for k in range(count // 2) if _covered(count, k) >= least]
    k = max(inner, default=0)
    return {"low": values[k], "high": values[-1 - k], "coverage": _covered(count, k)}


def _covered(count: int, k: int) -> float:
    """With what probability the median lies between the values k from either end."""
    outside = sum(comb(count, below) for below in range(k + 1))
    return float(1 - 2 * outside / 2**count)


def between(ours: Sequence[float], theirs: Sequence[float]) -> dict[str, object] | None:
    """The interval of a quotient of medians of values that are in order."""
    if len(ours) < 2 or len(theirs) < 2:
        return None
    if not {len(ours), len(theirs)} <= {*RESAMPLED}:
        return _from_both(ours, theirs)
    ways: dict[float, int] = {}
    for one, often in _medians(ours).items():
        for other, as_often in _medians(theirs).items():
            ways[one / other] = ways.get(one / other, 0) + often * as_often
    total, below = sum(ways.values()), 0
    inside = []
    for quotient in sorted(ways):
        above = total - below - ways[quotient]
        if below + ways[quotient] > total // 40 and above + ways[quotient] > total // 40:
            inside.append(quotient)
        below += ways[quotient]
    return {"low": inside[0], "high": inside[-1], "coverage": COVERAGE}


def _from_both(ours: Sequence[float], theirs: Sequence[float]) -> dict[str, object]:
    """Each median's interval covers with the root of 95 % where it can."""
    (a, b, sure), (c, d, also_sure) = (
        (float(str(it["low"])), float(str(it["high"])), float(str(it["coverage"])))
        for it in (of_median(ours, COVERAGE**0.5), of_median(theirs, COVERAGE**0.5))
    )
    return {"low": a / d, "high": b / c, "coverage": sure * also_sure}


def _medians(values: Sequence[float]) -> dict[float, int]:
    """How many resamples of an odd size have each value as their median."""
    count = len(values)
    half = (count - 1) // 2
    found: dict[float, int] = {}
    for place, value in enumerate(sorted(values)):
        ways = sum(  # so many draws are below the value, so many are it, the others above
            comb(2 * half + 1, less)
            * place**less
            * comb(2 * half + 1 - less, equal)
            * (count - 1 - place) ** (2 * half + 1 - less - equal)
            for less in range(half + 1)
            for equal in range(half + 1 - less, 2 * half + 2 - less)
        )
        found[value] = found.get(value, 0) + ways
    return found
