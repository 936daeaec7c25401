"""The exact rank test: its p values are those of printed quantiles, and of counting by hand."""

import itertools
import random
import statistics
from collections.abc import Iterable

import pytest

from orchestrator.comparing import rank_test

# Quantiles of the normal distribution at 1/9, 2/9 and so on, as tables print them, in hundredths.
QUANTILES = (-122, -76, -43, -14, 14, 43, 76, 122)


@pytest.mark.parametrize("places", [*itertools.combinations(range(8), 4)])
def test_scores_are_the_printed_quantiles(places: tuple[int, ...]) -> None:
    """Of 4 and 4 values: as many of the 70 ways to deal them out have a sum so low, and so high."""
    second = [float(place) for place in places]
    first = [float(place) for place in range(8) if place not in places]
    sums = [sum(QUANTILES[place] for place in ways) for ways in itertools.combinations(range(8), 4)]
    observed = sum(QUANTILES[place] for place in places)
    low = sum(other <= observed for other in sums)
    high = sum(other >= observed for other in sums)
    assert rank_test.two_sided(first, second) == pytest.approx(min(1.0, 2 * min(low, high) / 70))


@pytest.mark.parametrize(("size", "p"), [(3, 0.1), (4, 0.0286), (5, 0.0079), (7, 0.00058)])
def test_least_p_of_few_values(size: int, p: float) -> None:
    """As Go's benchstat names them: 3 values of each can never be told apart at 0.05."""
    apart = rank_test.two_sided(range(size), range(size, 2 * size))
    assert apart == pytest.approx(p, rel=0.01)


def counted(first: list[float], second: list[float]) -> float:
    """By dealing the values out in every way; equal ones share the mean score."""
    values = [*first, *second]
    normal = statistics.NormalDist()
    by_place = [
        round(100 * normal.inv_cdf(place / (len(values) + 1)))
        for place in range(1, len(values) + 1)
    ]

    def score(value: float) -> int:
        below = sum(other < value for other in values)
        scores = by_place[below : below + values.count(value)]
        return round(statistics.fmean(scores))

    def total(chosen: Iterable[int]) -> int:
        return sum(score(values[place]) for place in chosen)

    observed = total(range(len(first), len(values)))
    sums = [total(ways) for ways in itertools.combinations(range(len(values)), len(second))]
    low, high = (sum(sign * other <= sign * observed for other in sums) for sign in (1, -1))
    return min(1.0, 2 * min(low, high) / len(sums))


@pytest.mark.parametrize("sizes", [(1, 1), (1, 4), (3, 5), (5, 3), (4, 4), (5, 5)])
def test_ties_are_exact(sizes: tuple[int, int]) -> None:
    """Whatever values are equal, p is that of all ways to deal them out."""
    chance = random.Random(str(sizes))
    for kinds in (1, 2, 3, 8):
        first, second = ([float(chance.randrange(kinds)) for _ in range(size)] for size in sizes)
        p = rank_test.two_sided(first, second)
        assert p == pytest.approx(counted(first, second), rel=1e-12)


def test_equal_values_are_no_difference() -> None:
    """A sample beside itself has p = 1, and so have values that are all equal."""
    assert rank_test.two_sided([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]) == 1.0
    assert rank_test.two_sided([5.0] * 150, [5.0] * 150) == 1.0


def test_swapped_samples_have_the_same_p() -> None:
    """Of unequal sizes too, where the smaller one is counted."""
    first, second = [1.0, 2.0, 2.0, 7.0], [2.0, 3.0, 9.0, 9.5, 11.0]
    assert rank_test.two_sided(first, second) == rank_test.two_sided(second, first)


def test_many_values_have_the_normal_approximation() -> None:
    """Beyond what is counted: close to the exact value at the limit."""
    half = rank_test.MOST_EXACT // 2
    chance = random.Random(1)
    first, second = ([round(chance.gauss(0, 1), 1) for _ in range(half)] for _ in range(2))
    exact = rank_test.two_sided(first, second)
    nearly = rank_test.two_sided([*first, 0.0], [*second, 0.0])
    assert nearly == pytest.approx(exact, abs=0.03)  # with one value more on either side
