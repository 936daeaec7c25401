"""What `python -m tests.benchmarks.comparisons` prints holds: at the spreads of seed 003."""

import pytest

from orchestrator.comparing import sizes
from tests.benchmarks import comparisons

TIGHT = ("1x1", "1x4", "1x8", "2x8")


@pytest.mark.parametrize("noise", comparisons.NOISES.values(), ids=comparisons.NOISES)
def test_equal_sweeps_are_rarely_called_different(noise: comparisons.Noise) -> None:
    """At most 5 % of 200 comparisons of whole sweeps name any case."""
    assert comparisons.false_alarms(noise, 7, comparisons.BOUND) <= 0.05 * comparisons.PAIRS


def test_a_case_3_percent_slower_is_found_with_7_repeats() -> None:
    """In at least 95 % where spreads are those of four of the five cases; 4x8 spreads by 4.4 %."""
    found = comparisons.found(comparisons.normal, 7, pairs=100)
    assert all(found[case][0] >= 95 for case in TIGHT)
    different, same, unknown = found["4x8"]
    assert different < 90
    assert (same, different + unknown) == (0, 100)


def test_the_number_of_trials_that_is_foreseen_tells() -> None:
    """4x8: so many of each find 3 % about four times in five, as foreseen."""
    size = sizes.telling(0.0188, 0.0305, 0.05 / 5)
    assert size is not None
    assert comparisons.found(comparisons.normal, size, pairs=100)["4x8"][0] >= 75


def test_a_gate_rarely_passes_what_is_slower() -> None:
    """At most 5 % of comparisons."""
    assert comparisons.wrong_passes(comparisons.normal, 7, pairs=100) <= 5
