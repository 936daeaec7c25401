"""The simulation behind docs/measuring.md, with fewer runs: what an early end saves and costs."""

import pytest

from orchestrator.model.experiment import Repeats
from tests.benchmarks import repeats


def test_early_ends_save_trials_and_keep_their_coverage() -> None:
    """6 to 9 trials need fewer than 9, and cover about as surely as 6 do."""
    scatter = repeats.shape()
    assert len(scatter.residuals) == 4 * 7 + 5 * 5
    often = Repeats(min=6, max=9, until_interval="1%")
    found = repeats.simulated(repeats.until(often), scatter, 100)
    nine = repeats.simulated(repeats.fixed(9), scatter, 100)
    assert nine.trials == 9
    assert 6 < found.trials < 8.5
    assert found.covers > 0.93
    assert found.narrow == pytest.approx(nine.narrow, abs=0.05)


def test_a_rule_that_ends_after_three_trials_is_only_as_sure_as_they_are() -> None:
    """Three trials cover with 75 %, and the simulation says so."""
    often = Repeats(min=3, max=9, until_interval="1%")
    found = repeats.simulated(repeats.until(often), repeats.shape(), 100)
    assert found.trials < 6
    assert 0.7 < found.covers < 0.85
