"""Trends over a case's trials and trials far from the others, by rules with exact answers."""

import random
from collections import Counter
from itertools import permutations

import pytest

from orchestrator.measuring import medians, series
from tests.measuring.trials import case, trial

# Seed 003: the five trials of 1x1 with AMP, whose second is 1.1 % below the others.
SEED_1X1 = (803.69, 793.9, 803.66, 802.4, 802.9)


@pytest.mark.parametrize(
    ("values", "p"),
    [
        ((1.0, 2.0, 3.0, 4.0, 5.0), 2 / 120),
        ((5.0, 4.0, 3.0, 2.0, 1.0), 2 / 120),
        ((1.0, 2.0, 3.0, 4.0, 6.0, 5.0), 2 * (1 + 5) / 720),
        ((1.0, 1.0, 2.0, 3.0, 4.0), 2 / 60),
    ],
)
def test_p_is_that_of_the_tables(values: tuple[float, ...], p: float) -> None:
    """Kendall's S by enumeration: of 5 values one order in 120 rises throughout, one falls."""
    found = series.trend(values)
    assert found is not None
    assert found.p == pytest.approx(p)


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
    """Four values cannot: 2 of 24 orders are as even. One exchange in five gives p = 0.083."""
    assert series.trend(values) is None


@pytest.mark.parametrize("ties", [(1, 1, 1, 1, 1), (2, 1, 2), (3, 2), (1, 1, 4)])
def test_the_exact_distribution_is_that_of_all_orders(ties: tuple[int, ...]) -> None:
    """Counted one by one, with ties and without."""
    values = [float(value) for value, alike in enumerate(ties) for _ in range(alike)]
    orders = set(permutations(values))
    falling = Counter(
        sum(order[b] < order[a] for a in range(len(order)) for b in range(a + 1, len(order)))
        for order in orders
    )
    for falls in falling:
        rises = max(falling) - falls
        at_least = sum(count for fall, count in falling.items() if fall <= min(falls, rises)) / len(
            orders
        )
        order = next(
            one
            for one in orders
            if sum(one[b] < one[a] for a in range(len(one)) for b in range(a + 1, len(one)))
            == falls
        )
        p, found = min(1.0, 2 * at_least), series.trend(order)
        assert (found is None) is (p >= 0.05)
        assert found is None or found.p == pytest.approx(p)


def test_many_values_are_judged_by_the_normal_distribution() -> None:
    """Of more than 50: a rise with four falls in it, and values that are all alike."""
    rising = [float(number) for number in range(51)]
    rising[10:12], rising[30:32] = rising[11:9:-1], rising[31:29:-1]
    found = series.trend(rising)
    assert found is not None
    assert found.p < 1e-20
    assert found.change == pytest.approx(50 / 25)
    # 0.0146 by the normal distribution, 0.0140 by enumeration: 50 values around a small slope.
    noise = random.Random(1)
    values = [800 + noise.gauss(0, 1) + 0.02 * number for number in range(50)]
    exact = series.trend(values)
    assert exact is not None
    assert exact.p == pytest.approx(0.014045, abs=1e-6)
    assert series.trend([800.0] * 51) is None


def test_a_trend_marks_its_case_with_its_size() -> None:
    """Seed 003's trials of 1x4 in the order of their size: 0.8 % by the median slope."""
    rising = sorted((3129.63, 3119.23, 3137.44, 3137.67, 3144.55))
    for values, words in (
        (rising, "it rises by 0.8% over 5 trials, p = 0.017"),
        (rising[::-1], "it falls by 0.8% over 5 trials, p = 0.017"),
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
    assert series.outliers(values) == {}
