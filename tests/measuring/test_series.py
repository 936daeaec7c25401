"""Trends over a case's trials and trials far from the others, by simple rules."""

from itertools import permutations

import pytest

from orchestrator.measuring import medians
from tests.measuring.trials import case, trial

# Seed 003: the five trials of 1x1 with AMP, whose second is 1.1 % below the others.
SEED_1X1 = (803.69, 793.9, 803.66, 802.4, 802.9)


@pytest.mark.parametrize(
    ("values", "change"),
    [
        ((1.0, 2.0, 3.0, 4.0, 5.0), 4 / 3),
        ((5.0, 4.0, 3.0, 2.0, 1.0), -4 / 3),
        ((1.0, 2.0, 3.0, 4.0, 6.0, 5.0), 5 / 3.5),
        ((1.0, 1.0, 2.0, 3.0, 4.0), 2.0),
    ],
)
def test_a_trend_is_the_median_slope(values: tuple[float, ...], change: float) -> None:
    """Over so many trials, as a share of their median; one exchange in six is a trend still."""
    assert medians.find_trend(values) == pytest.approx(change)


@pytest.mark.parametrize(
    "values",
    [
        (1.0, 2.0, 3.0, 4.0),
        (1.0, 2.0, 3.0, 5.0, 4.0),
        (2.0, 2.0, 2.0, 2.0, 2.0),
        SEED_1X1,
        (),
    ],
)
def test_too_few_or_too_uneven_values_have_no_trend(values: tuple[float, ...]) -> None:
    """Four values cannot: 2 of 24 orders are as even. One exchange of five is too common."""
    assert medians.find_trend(values) is None


@pytest.mark.parametrize("count", [5, 6, 7])
def test_at_most_one_order_in_twenty_shows_a_trend(count: int) -> None:
    """Of all orders of so many values."""
    orders = list(permutations(map(float, range(1, count + 1))))
    assert 0 < sum(medians.find_trend(order) is not None for order in orders) <= 0.05 * len(orders)


def test_many_values_are_judged_alike() -> None:
    """A rise with two falls in it, and values that are all alike."""
    rising = [float(number) for number in range(51)]
    rising[10:12], rising[30:32] = rising[11:9:-1], rising[31:29:-1]
    assert medians.find_trend(rising) == pytest.approx(50 / 25)
    assert medians.find_trend([800.0] * 51) is None


def test_a_trend_marks_its_case_with_its_size() -> None:
    """Seed 003's trials of 1x4 in the order of their size: 0.8 % by the median slope."""
    rising = sorted((3129.63, 3119.23, 3137.44, 3137.67, 3144.55))
    for values, words in (
        (rising, "it rises by 0.8% over 5 trials"),
        (rising[::-1], "it falls by 0.8% over 5 trials"),
    ):
        found = medians.result(case(), [trial(str(n), value) for n, value in enumerate(values)])
        assert [(mark.code, mark.message) for mark in found.marks] == [("TREND", words)]


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
