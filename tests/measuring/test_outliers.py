"""Trials far from the others of their case."""

import pytest

from orchestrator.measuring import medians
from tests.measuring.trials import case, trial

# Seed 003: the five trials of 1x1 with AMP, whose second is 1.1 % below the others.
SEED_1X1 = (803.69, 793.9, 803.66, 802.4, 802.9)


def test_an_outlier_is_named_and_counts() -> None:
    """9 % below four that agree within 0.1 %: marked, in the median, its name in the report."""
    values = (384.9, 385.0, 350.0, 384.8, 385.1)
    trials = [trial(f"r50_{n}", value) for n, value in enumerate(values, 1)]
    lost = trial("r50_6", None, "failed")
    found = medians.result(case(), [lost, *trials])
    assert found.statistics is not None
    assert (found.statistics.n, found.statistics.median) == (5, 384.9)
    marked = {one.trial: one.marks[0].message for one in found.trials if one.marks}
    assert marked == {"r50_3": "9.1% below the median of 5 trials"}
    assert ("OUTLIER", "in 1 trial") in {(mark.code, mark.message) for mark in found.marks}
    high = medians.result(case(), [trial("a", 420.0), *trials[:2], *trials[3:], trial("b", 385.0)])
    assert high.trials[0].marks[0].message == "9.1% above the median of 6 trials"


@pytest.mark.parametrize(
    "values", [(), (1.0, 1.0, 9.0), (1.0, 1.01, 1.02, 9.0), (2.0, 2.0, 2.0, 2.0, 9.0), SEED_1X1]
)
def test_too_few_or_mostly_equal_values_have_no_outlier(values: tuple[float, ...]) -> None:
    """Of three or four nobody can say, and equal ones have no deviation to measure by."""
    assert medians.find_outliers(values) == {}
