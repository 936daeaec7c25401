"""Two derivations of an interval, of which neither knows the other, agree."""

from random import Random

import pytest

from orchestrator.measuring import intervals
from orchestrator.verifying import intervals as derived


@pytest.mark.parametrize("counts", [(2, 2), (2, 5), (3, 9), (5, 5), (6, 7), (7, 50), (51, 300)])
def test_the_interval_of_a_speedup_is_derived_alike(counts: tuple[int, int]) -> None:
    """For two readers of Student's t: by its finite series, and by its integral."""
    chance = Random(f"{counts}")
    ours, theirs = (sorted(chance.gauss(1000, 10) for _ in range(count)) for count in counts)
    expected = intervals.of_quotient(ours, theirs)
    found = derived.between(ours, theirs)
    assert expected is not None
    assert found is not None
    assert found["low"] == pytest.approx(expected.low, rel=1e-9)
    assert found["high"] == pytest.approx(expected.high, rel=1e-9)
    assert found["coverage"] == pytest.approx(expected.coverage, rel=1e-12)


def test_values_without_spread_are_derived_alike() -> None:
    """And one value has no interval."""
    found = derived.between([2.0, 2.0], [1.0, 1.0])
    assert found is not None
    assert found["low"] == pytest.approx(2.0)
    assert derived.between([2.0], [1.0, 1.0]) is None
