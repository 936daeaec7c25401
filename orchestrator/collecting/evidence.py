"""Decide which recorded outcomes still count: one rule for ``sweep`` and ``collect``."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from orchestrator import errors
from orchestrator.measuring.settling import Series
from orchestrator.model.attempt import Outcome, TaskEnd
from orchestrator.model.plan import Plan, Trial
from orchestrator.model.problem import Problem
from orchestrator.model.sweep import History
from orchestrator.state import contents
from orchestrator.state.sweep import Sweep

OTHERWISE = "its sha256 is not the one that was taken when it ran"


@dataclass(frozen=True, slots=True)
class KeptOutcome:
    """A trial's recorded outcome, None without any; with problems it does not count."""

    outcome: Outcome | None
    problems: tuple[Problem, ...]

    @property
    def valid(self) -> bool:
        """True if the trial has an intact valid outcome and needs no further run."""
        return self.outcome is not None and self.outcome.state == "valid" and not self.problems


def check_outcome(sweep: Sweep, trial: Trial, history: History) -> KeptOutcome:
    """Return a trial's recorded outcome; it counts if events.jsonl and its logs' sha256 agree.

    The logs are the one that was measured and, of a gang, the raw logs of its tasks.
    """
    try:
        recorded = sweep.outcome(trial.log)
    except errors.DlperfError:
        return _refuse(sweep, trial, history, "it does not read")
    if recorded is None:
        gone = any(closed.outcome for closed in history.closed.values())
        return KeptOutcome(None, (outcome_changed("it is gone"),) if gone else ())
    outcome, digest = recorded
    closed = history.closed.get(outcome.attempt)
    summary = (outcome.trial, outcome.state, outcome.sha256)
    if closed is None or summary != (trial.name, closed.state, closed.sha256):
        return _refuse(sweep, trial, history, "events.jsonl says otherwise")
    if closed.outcome and closed.outcome != digest:
        return KeptOutcome(None, (outcome_changed(OTHERWISE),))
    if outcome.state not in ("valid", "invalid"):
        return KeptOutcome(outcome, ())
    problems, log = [], sha256(sweep.log(trial.log))
    if log is None:
        problems.append(Problem("MISSING", "its log is gone"))
    elif log != outcome.sha256:
        problems.append(Problem("LOG-CHANGED", OTHERWISE))
    if trial.case.nodes > 1:
        if [end.node_rank for end in outcome.tasks] != [*range(trial.case.nodes)]:
            problems.append(outcome_changed("it lacks tasks"))
        folder = sweep.attempt_folder(trial.name, outcome.attempt)
        problems += changed_logs(folder, outcome.tasks)
    return KeptOutcome(outcome, tuple(problems))


def not_needed(sweep: Sweep, plan: Plan, histories: Mapping[str, History]) -> frozenset[str]:
    """Return the names of trials without a valid outcome whose case has settled without them."""
    if isinstance(plan.method.repeats, int):
        return frozenset()  # nothing settles, so no log need be looked at
    values: dict[str, float | None] = {}
    for trial in plan.trials:
        kept = check_outcome(sweep, trial, histories.get(trial.name, History()))
        values[trial.name] = kept.outcome.throughput if kept.valid and kept.outcome else None
    return Series(plan).not_needed(values)


def add_checksums(folder: Path, ends: Iterable[TaskEnd]) -> tuple[TaskEnd, ...]:
    """Return ends, with the sha256 of the attempt's raw logs where supervisors gave none."""
    found = []
    for end in ends:
        log = folder / f"r{end.node_rank}.log"
        digest = None if end.sha256 else sha256(log)
        known = replace(end, sha256=digest, size_bytes=log.stat().st_size) if digest else end
        found.append(known)
    return tuple(found)


def changed_logs(folder: Path, ends: Iterable[TaskEnd]) -> tuple[Problem, ...]:
    """Return LOG-CHANGED per raw log of an attempt whose sha256 is not the recorded one."""
    return tuple(
        Problem("LOG-CHANGED", f"r{end.node_rank}.log of {end.node}: {OTHERWISE}")
        for end in ends
        if (sha256(folder / f"r{end.node_rank}.log") or "") != end.sha256
    )


def _refuse(sweep: Sweep, trial: Trial, history: History, how: str) -> KeptOutcome:
    """Return no outcome; LOG-CHANGED too if events.jsonl knows logs, and this log is none."""
    log = sha256(sweep.log(trial.log))
    digests = {closed.sha256 for closed in history.closed.values()}
    changed = log is not None and digests and log not in digests
    of_log = (Problem("LOG-CHANGED", OTHERWISE),) if changed else ()
    return KeptOutcome(None, (*of_log, outcome_changed(how)))


def outcome_changed(how: str) -> Problem:
    return Problem("OUTCOME-CHANGED", f"its outcome does not count: {how}")


def sha256(path: Path) -> str | None:
    """Return the SHA-256 of a file, read once a command; None if it cannot be read."""
    try:
        return contents.sha256(path)
    except errors.LocalError:
        return None
