"""What `python -m tests.benchmarks.comparisons` prints holds, with fewer runs."""

import random

import pytest

from tests.benchmarks import comparisons
from tests.benchmarks.comparisons import NOISES, simulate

RUNS = 60


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize(("size", "count"), [(3, 20), (5, 5), (5, 20)])
def test_equal_sweeps_are_rarely_called_different(noise: str, size: int, count: int) -> None:
    """In at most 5 % of comparisons of whole sweeps any case is named, up to chance."""
    assert simulate(NOISES[noise], size, count, 0.0, RUNS).any_different <= 0.07


@pytest.mark.parametrize("noise", NOISES)
def test_a_difference_below_the_bound_is_rarely_called_different(noise: str) -> None:
    """A true 0.9 % at a bound of 1 %: in at most 2.5 % of the cases, up to chance."""
    assert simulate(NOISES[noise], 5, 5, 0.009, 2 * RUNS).different <= 0.035


@pytest.mark.parametrize("noise", [*NOISES.values(), comparisons.wide])
def test_a_gate_rarely_fails_what_is_not_slower(noise: comparisons.Noise) -> None:
    """20 cases that are all 2.5 or 3 % slower fail a gate of 3 % in at most 5 %."""
    for slower in (0.025, 0.03):
        assert simulate(noise, 5, 20, slower, RUNS).failed <= 0.05


@pytest.mark.parametrize("size", [3, 5, 7])
def test_a_gate_rarely_passes_what_is_slower(size: int) -> None:
    """A true 3 % passes in at most 2.5 % of the comparisons of one case, up to chance."""
    assert simulate(comparisons.normal, size, 1, 0.03, 200).passed <= 0.045


def test_a_gate_passes_20_equal_cases_of_5_trials() -> None:
    """At half of the spreads of DLPerf's cases nearly always; its widest case needs more trials."""

    def tight(chance: random.Random) -> float:
        return 0.5 * comparisons.normal(chance)

    assert simulate(tight, 5, 20, 0.0, RUNS).passed > 0.8
    assert simulate(comparisons.normal, 5, 20, 0.0, 200).passed > 0.02


def test_a_case_5_percent_slower_fails_the_gate_among_20() -> None:
    """In nearly all comparisons."""
    assert simulate(comparisons.normal, 5, 20, 0.05, RUNS).failed > 0.95


def test_a_case_3_percent_slower_is_found() -> None:
    """By 5 trials in four of five cases; the widest needs more."""
    assert simulate(comparisons.normal, 5, 5, 0.03, RUNS).different > 0.75


def test_the_number_of_further_trials_holds() -> None:
    """From 3 trials on: the highest of the range tells in four of five cases that name one."""
    for slower in (0.0, 0.03):
        named, lowest, highest = comparisons.tell(3, 0.01, slower)
        assert named > 0.1
        assert lowest < highest
        assert highest > 0.8
