"""The intervals of medians and of speedups, derived again."""

from collections.abc import Sequence
from functools import cache
from math import atan, comb, cos, exp, floor, fsum, log, pi, sqrt, tan
from statistics import median

COVERAGE = 0.95
COVERED_BY_FEW = (0.88, 0.92, 0.94)
"""With two, three and four values on a side."""
PIECES = 400


def of_median(values: Sequence[float]) -> dict[str, object]:
    """Return the narrowest pair of order statistics that covers with 95 %, else the widest.

    Args:
        values: in order.
    """
    count = len(values)
    inner = [k for k in range(count // 2) if _covered(count, k) >= COVERAGE]
    k = max(inner, default=0)
    return {"low": values[k], "high": values[-1 - k], "coverage": _covered(count, k)}


def _covered(count: int, k: int) -> float:
    """Return the probability that the median lies between the values k from either end."""
    outside = sum(comb(count, below) for below in range(k + 1))
    return float(1 - 2 * outside / 2**count)


def between(ours: Sequence[float], theirs: Sequence[float]) -> dict[str, object] | None:
    """Return the interval of a quotient of medians: Welch's, widened to medians and means."""
    counts = len(ours), len(theirs)
    if min(counts) < 2:
        return None
    (mean, square), (their_mean, their_square) = (_error(values) for values in (ours, theirs))
    centers = sorted((mean - their_mean, log(median(ours)) - log(median(theirs))))
    error = square + their_square
    width = 0.0
    if error:
        freedom = error**2 / (square**2 / (counts[0] - 1) + their_square**2 / (counts[1] - 1))
        width = sqrt(error) * student(floor(freedom + 1e-9))
    coverage = (*COVERED_BY_FEW, COVERAGE)[min(min(counts) - 2, 3)]
    return {"low": exp(centers[0] - width), "high": exp(centers[1] + width), "coverage": coverage}


def _error(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean logarithm and its squared standard error."""
    logs = [log(value) for value in values]
    mean = fsum(logs) / len(logs)
    squares = fsum((value - mean) ** 2 for value in logs)
    return mean, squares / (len(logs) - 1) / len(logs)


@cache
def student(freedom: int) -> float:
    """Return the 97.5 % quantile of Student's t, from the integral of its density.

    With t = sqrt(freedom) * tan(angle) the density is that of cos(angle) ** (freedom - 1).
    """
    whole = _integral(pi / 2, freedom)
    low, high = 0.0, min(pi / 2, atan(13 / sqrt(freedom)))
    for _ in range(60):
        middle = (low + high) / 2
        inside = _integral(middle, freedom) < COVERAGE * whole
        low, high = (middle, high) if inside else (low, middle)
    return sqrt(freedom) * tan(low)


def _integral(end: float, freedom: int) -> float:
    """Return the integral of cos(angle) ** (freedom - 1) from 0, by Simpson's rule."""
    step = end / PIECES
    heights = [cos(step * place) ** (freedom - 1) for place in range(PIECES + 1)]
    return (
        step / 3 * (heights[0] + heights[-1] + 4 * fsum(heights[1::2]) + 2 * fsum(heights[2:-1:2]))
    )
