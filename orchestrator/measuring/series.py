"""Trials of a case that are far from the others."""

from collections.abc import Sequence
from statistics import median

OUTLIER_FROM = 5  # of 3 values of a normal distribution one in ten would be called an outlier
OUTLIER_MADS = 14.826  # ten standard deviations of a normal distribution


def outliers(values: Sequence[float]) -> dict[int, float]:
    """By index of each value that is far from the others, how far, as a share of the median.

    Far is more than 14.826 median absolute deviations from the median; none is of fewer than 5.

    Source: Iglewicz and Hoaglin (1993); the threshold is hyperfine's, src/outlier_detection.rs.
    """
    middle = median(values) if values else 0.0
    spread = median(abs(value - middle) for value in values) if values else 0.0
    if len(values) < OUTLIER_FROM or spread == 0:
        return {}
    return {
        index: value / middle - 1
        for index, value in enumerate(values)
        if abs(value - middle) / spread > OUTLIER_MADS
    }
