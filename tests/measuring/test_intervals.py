"""Intervals of quotients of medians: values of a printed table, and what a simulation covers."""

import statistics

import pytest

from orchestrator.measuring import intervals, medians
from tests.benchmarks import comparisons
from tests.measuring.trials import results
from tests.seeds import RN50_AMP

ONE = (10.0, 10.1, 10.3, 10.6, 11.0)
FIVE = (48.0, 50.0, 50.5, 51.0, 53.0)


@pytest.mark.parametrize(
    ("outside", "freedom", "value"),
    [
        *[(0.05, 1, 12.706), (0.05, 2, 4.303), (0.05, 3, 3.182), (0.05, 4, 2.776)],
        *[(0.05, 10, 2.228), (0.05, 30, 2.042), (0.05, 120, 1.980)],
        *[(0.01, 1, 63.657), (0.01, 8, 3.355), (0.002, 5, 5.893)],
    ],
)
def test_students_t_is_that_of_the_tables(outside: float, freedom: int, value: float) -> None:
    """Source: any table of it, two-sided."""
    assert intervals.student(outside, freedom) == pytest.approx(value, abs=5e-4)


def test_a_quotients_interval_is_welchs_widened_to_the_medians() -> None:
    """By hand: mean logarithms 3.92114 and 2.33989, squared errors 0.000254 and 0.000294."""
    found = intervals.of_quotient(FIVE, ONE)
    assert found is not None
    half = 2.306 * 0.02341  # of 7.9 degrees of freedom, which are taken as 7: 2.365
    assert found.low == pytest.approx(50.5 / 10.3 * (1 - half), rel=0.01)
    assert found.low < 50.5 / 10.3 < found.high
    assert found.low < statistics.fmean(FIVE) / statistics.fmean(ONE) < found.high
    assert found.coverage == 0.95


def test_a_speedups_interval_holds_the_speedup() -> None:
    """Seed 003: 22551.16 / 802.9 lies in it, and the 1x1 case itself has none."""
    one, *_, largest = medians.compared(results(RN50_AMP))
    assert one.speedup_interval is None
    found = largest.speedup_interval
    assert found is not None
    assert found.low < 22551.16 / 802.9 < found.high


def test_few_trials_say_less() -> None:
    """One has no interval; of two to four the simulation shows less."""
    assert intervals.of_quotient(FIVE[:1], ONE) is None
    for count, coverage in ((2, 0.88), (3, 0.92), (4, 0.94), (5, 0.95)):
        found = intervals.of_quotient(FIVE[:count], ONE)
        assert found is not None
        assert found.coverage == pytest.approx(coverage)


def test_equal_trials_have_an_interval_of_no_width() -> None:
    """A spread of 0 has no degrees of freedom either."""
    found = intervals.of_quotient((2.0, 2.0), (1.0, 1.0, 1.0))
    assert found is not None
    assert (found.low, found.high) == pytest.approx((2.0, 2.0))


def test_hundreds_of_trials_have_an_interval_at_once() -> None:
    """And a narrow one."""
    many = [100.0 + number % 7 for number in range(1000)]
    found = intervals.of_quotient(many, many)
    assert found is not None
    assert 0.99 < found.low < 1 < found.high < 1.01


@pytest.mark.parametrize(
    "sizes", [(2, 2), (3, 3), (5, 5), (7, 7), (9, 9), (3, 9), (9, 3), (30, 30)]
)
def test_an_interval_covers_what_it_claims(sizes: tuple[int, int]) -> None:
    """For normal, heavy-tailed, skewed trials and outliers; for equal and unequal spreads.

    Of 400 draws that are covered with 95 %, 97 of 100 times at least 92.9 % are.
    """
    for setting, (claims, held) in comparisons.cover(
        intervals.of_quotient, sizes, draws=400
    ).items():
        assert held >= claims - 0.025, setting
