"""The exact rank test: its p values are those of counting every way to deal the values out."""

import itertools
import random
import statistics

import hypothesis
import pytest
from hypothesis import example, strategies

from orchestrator.comparing import rank_test

# Quantiles of the normal distribution at 1/9, 2/9 and so on, as tables print them, in hundredths.
QUANTILES = (-122, -76, -43, -14, 14, 43, 76, 122)
SAMPLE = strategies.lists(strategies.integers(0, 5).map(float), min_size=1, max_size=5)


def count_ways(scores: list[int], chosen: list[int]) -> float:
    """Return the share of ways with a sum as low, or as high, as that of these places; doubled."""
    observed = sum(scores[place] for place in chosen)
    sums = [
        sum(scores[place] for place in ways)
        for ways in itertools.combinations(range(len(scores)), len(chosen))
    ]
    low, high = (sum(sign * it <= sign * observed for it in sums) for sign in (1, -1))
    return min(1.0, 2 * min(low, high) / len(sums))


@pytest.mark.parametrize("places", [*itertools.combinations(range(8), 4)][::5])
def test_scores_are_the_printed_quantiles(places: tuple[int, ...]) -> None:
    """There are 70 ways to split 8 values into halves."""
    first = [float(place) for place in range(8) if place not in places]
    p = rank_test.two_sided(first, [float(place) for place in places])
    assert p == pytest.approx(count_ways([*QUANTILES], [*places]))


@hypothesis.given(SAMPLE, SAMPLE)
@example([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])
@example([1.0], [2.0])
def test_p_is_exact_whatever_values_are_equal(first: list[float], second: list[float]) -> None:
    """Equal values share the mean of their scores; swapped samples have the same p."""
    values, normal = [*first, *second], statistics.NormalDist()
    by_rank = [
        round(100 * normal.inv_cdf(n / (len(values) + 1))) for n in range(1, len(values) + 1)
    ]
    scores = []
    for value in values:
        below = sum(other < value for other in values)
        scores.append(round(statistics.fmean(by_rank[below : below + values.count(value)])))
    p = rank_test.two_sided(first, second)
    assert p == pytest.approx(count_ways(scores, [*range(len(first), len(values))]), rel=1e-12)
    assert p == rank_test.two_sided(second, first)
    assert rank_test.two_sided(first, first) == 1.0


@pytest.mark.parametrize(("size", "p"), [(3, 0.1), (4, 0.0286), (5, 0.0079), (7, 0.00058)])
def test_least_p_of_few_values_is_that_of_benchstat(size: int, p: float) -> None:
    """3 values of each can never be told apart at 0.05."""
    apart = rank_test.two_sided(range(size), range(size, 2 * size))
    assert apart == pytest.approx(p, rel=0.01)


def test_many_values_have_the_normal_approximation() -> None:
    """Beyond what is counted: close to the exact value at the limit."""
    half = rank_test.MOST_EXACT // 2
    chance = random.Random(1)
    first, second = ([round(chance.gauss(0, 1), 1) for _ in range(half)] for _ in range(2))
    exact = rank_test.two_sided(first, second)
    nearly = rank_test.two_sided([*first, 0.0], [*second, 0.0])
    assert nearly == pytest.approx(exact, abs=0.03)  # with one value more on either side
    assert rank_test.two_sided([5.0] * 150, [5.0] * 150) == 1.0
