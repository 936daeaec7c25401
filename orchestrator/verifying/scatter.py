"""Trials of a case that are far from the others.

Source: ``docs/measuring.md``.
"""

from collections.abc import Sequence
from statistics import median

from orchestrator.verifying.marks import Mark

LEAST_TRIALS = 5
OUTLIER_MADS = 14.826


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
