"""The exact rank test: its p values are those of printed tables, and of counting by hand."""

import itertools
import random

import pytest

from orchestrator.comparing import rank_test

# "Critical values of Mann-Whitney U at p = 0.05 (two-tailed test)", by n1 from n2 = 5 to 20; as
# Siegel's Nonparametric Statistics (1956) has them in its table K.
CRITICAL = {
    5: (2, 3, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15, 17, 18, 19, 20),
    6: (3, 5, 6, 8, 10, 11, 13, 14, 16, 17, 19, 21, 22, 24, 25, 27),
    7: (5, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34),
    8: (6, 8, 10, 13, 15, 17, 19, 22, 24, 26, 29, 31, 34, 36, 38, 41),
    9: (7, 10, 12, 15, 17, 20, 23, 26, 28, 31, 34, 37, 39, 42, 45, 48),
    10: (8, 11, 14, 17, 20, 23, 26, 29, 33, 36, 39, 42, 45, 48, 52, 55),
}
# Mann and Whitney (1947), table I: P(U <= u) of samples of n = 5 and m = 5, and of 4 and 4.
ONE_SIDED = {
    5: (0.004, 0.008, 0.016, 0.028, 0.048, 0.075, 0.111, 0.155, 0.210, 0.274, 0.345, 0.421),
    4: (0.014, 0.029, 0.057, 0.100, 0.171, 0.243, 0.343, 0.443),
}


def with_u(size: int, other: int, pairs: int) -> tuple[list[float], list[float]]:
    """Two samples without ties, of which so many pairs are the other way round."""
    second = [float(place) for place in range(other)]
    first = []
    for number in range(size):
        before = min(pairs, other)
        pairs -= before
        first.append(other - before - 0.5 + number / (2 * size))
    return first, second


@pytest.mark.parametrize("size", CRITICAL)
def test_critical_values_are_those_of_the_table(size: int) -> None:
    """The printed U is the largest with p of at most 0.05."""
    for other, critical in enumerate(CRITICAL[size], 5):
        assert 2 * rank_test.below(size, other, critical) <= 0.05
        assert 2 * rank_test.below(size, other, critical + 1) > 0.05
        p = rank_test.two_sided(*with_u(size, other, critical))
        assert p == pytest.approx(2 * rank_test.below(size, other, critical), rel=1e-12)


@pytest.mark.parametrize("size", ONE_SIDED)
def test_probabilities_are_those_of_mann_and_whitney(size: int) -> None:
    """To the three digits that they print."""
    for pairs, printed in enumerate(ONE_SIDED[size]):
        assert rank_test.below(size, size, pairs) == pytest.approx(printed, abs=0.0005)


@pytest.mark.parametrize(("size", "p"), [(3, 0.1), (4, 0.0286), (5, 0.0079), (7, 0.00058)])
def test_least_p_of_few_values(size: int, p: float) -> None:
    """As Go's benchstat names them: 3 values of each can never be told apart at 0.05."""
    apart = rank_test.two_sided(range(size), range(size, 2 * size))
    assert apart == pytest.approx(p, rel=0.01)
    assert apart == pytest.approx(rank_test.least(size, size), rel=1e-12)


def counted(first: list[float], second: list[float]) -> tuple[float, float]:
    """Both tails, by dealing the values out in every way."""
    values = [*first, *second]

    def rank_sum(chosen: tuple[int, ...]) -> float:
        return sum(
            sum(other < values[place] for other in values)
            + sum(other == values[place] for other in values) / 2
            for place in chosen
        )

    observed = rank_sum(tuple(range(len(first), len(values))))
    sums = [rank_sum(ways) for ways in itertools.combinations(range(len(values)), len(second))]
    low = sum(other <= observed for other in sums) / len(sums)
    return low, sum(other >= observed for other in sums) / len(sums)


@pytest.mark.parametrize("sizes", [(1, 1), (1, 4), (3, 5), (5, 3), (4, 4), (5, 5)])
def test_ties_are_exact(sizes: tuple[int, int]) -> None:
    """Whatever values are equal, the tails are those of all ways to deal them out."""
    chance = random.Random(str(sizes))
    for kinds in (1, 2, 3, 8):
        first, second = ([float(chance.randrange(kinds)) for _ in range(size)] for size in sizes)
        assert rank_test.tails(first, second) == pytest.approx(counted(first, second), rel=1e-12)


def test_equal_values_are_no_difference() -> None:
    """A sample beside itself has p = 1, and so have values that are all equal."""
    assert rank_test.two_sided([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]) == 1.0
    assert rank_test.two_sided([5.0] * 150, [5.0] * 150) == 1.0


def test_swapped_samples_have_swapped_tails() -> None:
    """Of unequal sizes too, where the smaller one is counted."""
    first, second = [1.0, 2.0, 2.0, 7.0], [2.0, 3.0, 9.0, 9.5, 11.0]
    assert rank_test.tails(first, second) == rank_test.tails(second, first)[::-1]


def test_many_values_have_the_normal_approximation() -> None:
    """Beyond what is counted: close to the exact value at the limit."""
    half = rank_test.MOST_EXACT // 2
    chance = random.Random(1)
    first, second = ([round(chance.gauss(0, 1), 1) for _ in range(half)] for _ in range(2))
    exact = rank_test.tails(first, second)
    nearly = rank_test.tails([*first, 0.0], [*second, 0.0])
    assert nearly == pytest.approx(exact, abs=0.01)
    assert rank_test.below(half, half, 1100) == pytest.approx(
        rank_test.below(half + 1, half + 1, 1150), abs=0.01
    )
