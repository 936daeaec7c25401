"""The interval of a difference: what it covers, and that it agrees with the rank test."""

import random

import pytest

from orchestrator.comparing import rank_test, ratios, sizes


def test_difference_is_that_of_medians() -> None:
    """Seed 003's 2x8 and 4x8 with mixed precision: 22551.16 / 11991.94 - 1."""
    two = (12046.71, 11896.95, 11991.94, 11999.35, 11964.81)
    four = (22364.13, 22551.16, 22978.13, 23049.75, 22053.98)
    assert ratios.difference(two, four) == pytest.approx(22551.16 / 11991.94 - 1, rel=1e-12)
    found = ratios.interval(two, four)
    assert found is not None
    assert found.low < ratios.difference(two, four) < found.high
    assert 0.95 <= found.coverage < 0.97


@pytest.mark.parametrize(
    ("size", "coverage"), [(1, None), (2, 1 - 2 / 6), (3, 0.9), (4, 1 - 2 / 70), (5, 1 - 8 / 252)]
)
def test_few_trials_cover_less(size: int, coverage: float | None) -> None:
    """4 of each are the fewest that cover 95 %; 5 leave two of the 25 ratios out on each side."""
    values = [100 + 1.7**number for number in range(size)]
    found = ratios.interval(values, [value * 1.01 for value in values])
    assert (None if found is None else found.coverage) == pytest.approx(coverage)


def test_interval_holds_what_the_test_does_not_tell_apart() -> None:
    """A factor inside cannot be told from no difference at 5 %, one outside can."""
    chance = random.Random(7)
    for _ in range(20):
        first, second = ([chance.gauss(100, 2) for _ in range(7)] for _ in range(2))
        found = ratios.interval(first, second)
        assert found is not None
        for factor, told in ((1 + found.low - 1e-9, True), (1 + found.low + 1e-9, False)):
            p = rank_test.two_sided([value * factor for value in first], second)
            assert (p <= 0.05) is told


def test_interval_always_holds_the_difference() -> None:
    """Also where many trials make it narrower than the medians are apart."""
    first = [*range(100, 140), *range(200, 241), *range(300, 340)]
    second = [*range(100, 141), *range(240, 280), *range(301, 341)]
    found = ratios.interval(first, second)
    assert found is not None
    assert found.low <= ratios.difference(first, second) <= found.high


def test_trials_that_would_tell() -> None:
    """More for wide spreads and small differences; none within reach where that is hopeless."""
    assert sizes.least_each(0.05) == 4
    assert sizes.least_each(0.05 / 15) == 6
    assert sizes.telling(None, 0.01, 0.05) == 4
    assert sizes.telling(0.0, 0.01, 0.05) == 4
    assert sizes.telling(0.001, 0.03, 0.05) == 4
    assert sizes.telling(0.02, 0.03, 0.05) == 8
    assert sizes.telling(0.01, 0.0001, 0.05) is None
    assert sizes.telling(0.01, 0.0, 0.05) is None
    assert sizes.spread([1.0], [1.0]) is None
    assert sizes.spread([1.0, 1.0], [2.0]) == 0.0
