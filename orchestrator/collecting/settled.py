"""Trials of a sweep that are not needed, by its recorded outcomes: one answer for every command."""

from collections.abc import Mapping

from orchestrator.collecting import evidence
from orchestrator.measuring.settling import Series
from orchestrator.model.plan import Plan, Trial
from orchestrator.model.sweep import History
from orchestrator.state.sweep import Sweep


def not_needed(sweep: Sweep, plan: Plan, histories: Mapping[str, History]) -> frozenset[str]:
    """The names of trials without a valid outcome whose case has settled without them."""
    if isinstance(plan.method.repeats, int):
        return frozenset()  # nothing settles, so no log need be looked at
    values = {
        trial.name: value(sweep, trial, histories.get(trial.name, History()))
        for trial in plan.trials
    }
    return Series(plan).not_needed(values)


def value(sweep: Sweep, trial: Trial, history: History) -> float | None:
    """Return the throughput of a trial's valid outcome, None without one."""
    kept = evidence.kept(sweep, trial, history)
    return kept.outcome.throughput if kept.valid and kept.outcome else None
