"""Two derivations of an interval, of which neither knows the other, agree."""

from random import Random

import pytest

from orchestrator.measuring import intervals
from orchestrator.verifying import intervals as derived


@pytest.mark.parametrize("counts", [(2, 5), (4, 5), (5, 5), (6, 7), (7, 50), (50, 51), (51, 7)])
def test_the_interval_of_a_speedup_is_derived_alike(counts: tuple[int, int]) -> None:
    """Of few trials, of as many as are resampled, and of more."""
    chance = Random(f"{counts}")
    ours, theirs = (sorted(chance.gauss(1000, 10) for _ in range(count)) for count in counts)
    expected = intervals.of_quotient(ours, theirs)
    assert expected is not None
    assert derived.between(ours, theirs) == {
        "low": expected.low,
        "high": expected.high,
        "coverage": expected.coverage,
    }
