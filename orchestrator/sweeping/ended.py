"""Recognize by its files alone a sweep that has nothing left to run; no node is asked."""

import json

from orchestrator import errors
from orchestrator.collecting import evidence
from orchestrator.model.history import History
from orchestrator.state import contents
from orchestrator.state.files import dumps, write
from orchestrator.state.store import Store
from orchestrator.state.sweep import Sweep
from orchestrator.sweeping import observed_sweep, resume
from orchestrator.sweeping.requested import Requested

FILE = "ended.json"
OF = ("events.jsonl", "sweep.json")


def note(sweep: Sweep) -> None:
    """Record that a command ended in good order, with the digests of the sweep's files."""
    if not any(history.open for history in sweep.histories().values()):
        write(sweep.folder / FILE, dumps(_digests(sweep)).encode())


def whole(store: Store, request: Requested) -> tuple[Sweep, int] | None:
    """Return the sweep whose requested trials are all valid or not needed, and how many are valid.

    Return None if that is not certain; then the nodes are asked.
    """
    if request.options.new or request.options.strict or store.unreadable():
        return None
    identity = resume.identity(request.recipe)[1]
    sweep = next((sweep for sweep in store.sweeps() if sweep.record().identity == identity), None)
    if sweep is None or not _is_as_noted(sweep):
        return None
    if observed_sweep.orphaned_tasks(store, request.cluster.name):
        return None
    plan, histories = sweep.record().plan, sweep.histories()
    names = {trial.name for trial in request.plan.trials}
    valid = {
        trial.name
        for trial in plan.trials
        if trial.name in names
        and evidence.kept(sweep, trial, histories.get(trial.name, History())).valid
    }
    resting = evidence.not_needed(sweep, plan, histories)
    return (sweep, len(valid)) if names <= valid | resting else None


def _is_as_noted(sweep: Sweep) -> bool:
    """Return True if nothing was begun or changed since a command ended in good order."""
    try:
        noted = json.loads((sweep.folder / FILE).read_bytes())
        return sweep.lock().holder() is None and noted == _digests(sweep)
    except (OSError, ValueError, errors.DlperfError):
        return False


def _digests(sweep: Sweep) -> dict[str, str]:
    paths = [sweep.folder / name for name in OF]
    return {path.name: contents.sha256(path) for path in paths if path.exists()}
