"""What `python -m tests.benchmarks.comparisons` prints holds: at the spreads of seed 003."""

import pytest

from orchestrator.comparing import sizes, verdicts
from tests.benchmarks import comparisons
from tests.seeds import RN50_AMP

TIGHT = ("1x1", "1x4", "1x8", "2x8")


@pytest.mark.parametrize("name", comparisons.NOISES)
def test_equal_sweeps_are_rarely_called_different(name: str) -> None:
    """At most 5 % of comparisons of whole sweeps name any case."""
    noise, pairs = comparisons.NOISES[name], comparisons.EQUAL[name]
    assert comparisons.false_alarms(noise, 7, comparisons.BOUND, pairs) <= 0.05 * pairs


def test_a_case_3_percent_slower_is_found_with_7_repeats() -> None:
    """Always where spreads are those of four of the five cases; 4x8 spreads by 4.4 %."""
    found = comparisons.found(comparisons.normal, 7, pairs=100)
    assert all(found[case][0] >= 99 for case in TIGHT)
    different, same, unknown = found["4x8"]
    assert different > 65
    assert (same, different + unknown) == (0, 100)


def test_a_wide_case_that_alone_is_slower_pays_for_no_tight_one() -> None:
    """4x8 alone slower: the other four could not be further apart than the bound by chance."""
    found = comparisons.found(comparisons.normal, 7, pairs=100, slower=["4x8"])
    assert found["4x8"][0] > 60
    assert all(found[case][0] == 0 for case in TIGHT)


def test_the_number_of_trials_that_is_foreseen_tells() -> None:
    """4x8: so many of each find 3 % about four times in five, as foreseen."""
    size = sizes.telling(0.0185, 0.0305, verdicts.DIFFERENT)
    assert size is not None
    found = comparisons.found(comparisons.normal, size, pairs=200, slower=["4x8"])
    assert 0.7 <= found["4x8"][0] / 200 <= 0.9


def test_the_best_test_of_all_would_not_find_it_always_either() -> None:
    """86 %: z = 0.0305 / (0.0185 x root of 2/7) - 1.96 = 1.11."""
    assert comparisons.ideal(RN50_AMP["4x8"], 7) == pytest.approx(0.867, abs=0.01)


def test_a_gate_rarely_passes_what_is_slower() -> None:
    """At most 5 % of comparisons."""
    assert comparisons.wrong_passes(comparisons.normal, 7, pairs=100) <= 5
