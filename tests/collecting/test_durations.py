"""How long a sweep ran, and for how long its logs were measured."""

import random
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.collecting.sweep import measured
from orchestrator.model.sweep import Ended, Intent
from orchestrator.state.store import Store
from tests.reported import LOG
from tests.verifying import honest, sweeps


def test_a_log_is_measured_between_both_ends_of_its_window() -> None:
    """By its clock; without one, or without an end, nothing is known."""
    assert replace(LOG, origin_ns=1_600_000_000_000_000_000).measured_s == 10.0
    assert LOG.measured_s is None
    assert replace(LOG, origin_ns=1, end=None).measured_s is None


@pytest.mark.parametrize(
    ("spans", "ran_s"),
    [
        ((), None),
        ((("09:00:00", "09:01:00"),), 60.0),
        ((("09:00:00", "09:01:00"), ("09:00:30", "09:02:00")), 120.0),
        ((("09:00:00", "09:05:00"), ("09:01:00", "09:02:00")), 300.0),
        ((("09:00:00", "09:01:00"), ("23:00:00", "23:00:30")), 90.0),
        ((("09:00:00", "09:01:00"), ("09:02:00", "")), 60.0),
    ],
)
def test_a_sweep_ran_while_any_trial_ran(
    tmp_path: Path, spans: tuple[tuple[str, str], ...], ran_s: float | None
) -> None:
    """Trials side by side count once, a pause of a night and an open attempt not at all."""
    sweep = sweeps.collected(Store(tmp_path), honest.drawn(random.Random("numbers 0")), "en")
    names = [trial.name for trial in sweep.record().plan.trials]
    (sweep.folder / "events.jsonl").unlink()
    for name, (begin, end) in zip(names, spans, strict=False):
        at, until = (f"2026-01-05T{time}.000+00:00" for time in (begin, end))
        sweep.append(Intent(at=at, trial=name, attempt=1, port=22333, log="x.log"))
        if end:
            sweep.append(Ended(at=until, trial=name, attempt=1, state="failed"))
    assert measured(sweep).ran_s == ran_s
