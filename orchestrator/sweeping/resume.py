"""Choose the sweep to resume, or make a new one; write its plan before anything starts."""

import contextlib
import difflib
import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace

from orchestrator import errors
from orchestrator.collecting import evidence
from orchestrator.console import Voice
from orchestrator.model.facts import JSON
from orchestrator.model.site import Site
from orchestrator.model.sweep import History, SweepRecord
from orchestrator.planning import bind, plan
from orchestrator.planning.plan import Recipe
from orchestrator.state import contents
from orchestrator.state.files import dumps, write
from orchestrator.state.store import SWEEP_ID, Store
from orchestrator.state.sweep import Sweep
from orchestrator.sweeping import observed_sweep
from orchestrator.sweeping.requested import Requested

FILE = "ended.json"
OF = ("events.jsonl", "sweep.json")


@contextlib.contextmanager
def open_sweep(
    store: Store, request: Requested, site: Site, voice: Voice, resumed: Sweep | None = None
) -> Iterator[Sweep]:
    """Lock ``resumed``, else the sweep to resume, else a new one, and write its plan.

    Raises:
        StoreError: LOCKED; or the record of a sweep that may be the one to resume is damaged.
    """
    recipe = request.recipe
    inputs, digest = identity(recipe)
    record = SweepRecord(
        experiment=recipe.name,
        cluster=recipe.cluster.name,
        identity=digest,
        inputs=inputs,
        inventory=recipe.cluster,
        plan=request.plan,
        site=site,
        commands=tuple(filter(None, (request.options.command,))),
    )
    if resumed is None and not request.options.new:
        resumed = _find_resumable(store, record, voice)
    sweep = resumed or store.new_sweep(record)
    voice.line(
        f"sweep {sweep.id} goes on" if resumed else f"new sweep {sweep.id} in {sweep.folder}"
    )
    with sweep.lock():
        sweep.remove_unfinished()
        _write_plan(sweep, record, recipe)
        yield sweep


def _find_resumable(store: Store, record: SweepRecord, voice: Voice) -> Sweep | None:
    """Return the sweep with the record's identity; else say why the newest is not resumed."""
    name, cluster = record.experiment, record.cluster
    candidates = [
        sweep
        for sweep in store.sweeps()
        if (sweep.record().experiment, sweep.record().cluster) == (name, cluster)
    ]
    for sweep in candidates:
        if sweep.record().identity == record.identity:
            return sweep
    for sweep_id, error in store.unreadable().items():
        named = SWEEP_ID.fullmatch(sweep_id)
        if not named or named[1] != name:
            continue
        if error.code != "STORE-VERSION":
            raise errors.StoreError(
                f"sweep {sweep_id} may be the one to resume, but {error.cause}",
                code=error.code,
                fix="restore the file, or start a new sweep with --new; the logs are untouched",
            )
        voice.line(f"{error.cause}: it is kept and cannot be resumed")
    for newest in candidates[:1]:
        voice.line(f"differs from sweep {newest.id}, which is kept:")
        old, new = (
            json.dumps(of.inputs, indent=1, sort_keys=True).splitlines()
            for of in (newest.record(), record)
        )
        for line in difflib.unified_diff(old, new, newest.id, "now", lineterm="", n=0):
            voice.line(f"  {line}")
    return None


def _write_plan(sweep: Sweep, now: SweepRecord, recipe: Recipe) -> None:
    """Write all trials requested of the sweep, now and earlier, before any of them starts."""
    before = sweep.record()
    trials = (*before.plan.trials, *now.plan.trials)
    repeats = max(trial.repeat for trial in trials if not trial.canary)
    names = {trial.name for trial in trials}
    whole = plan.build(plan.repeated(recipe, repeats))
    # Reports show nodes as they were at first; later nodes are added.
    site = replace(before.site, nodes={**before.site.nodes, **now.site.nodes, **before.site.nodes})
    is_open = any(history.open for history in sweep.histories().values())
    sweep.keep_record(
        replace(
            now,
            id=before.id,
            created=before.created,
            plan=replace(whole, trials=tuple(it for it in whole.trials if it.name in names)),
            site=site,
            commands=tuple(dict.fromkeys((*before.commands, *now.commands))),
            # `stop` finds open attempts by this inventory.
            inventory=before.inventory if is_open else now.inventory,
        )
    )


def identity(recipe: Recipe) -> tuple[dict[str, JSON], str]:
    """Return the inputs that two runs of one sweep must share, and their sha256."""
    inputs = bind.identity(recipe)
    return inputs, hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()


def note_end(sweep: Sweep) -> None:
    """Record that a command ended in good order, with the digests of the sweep's files."""
    if not any(history.open for history in sweep.histories().values()):
        write(sweep.folder / FILE, dumps(_digests(sweep)).encode())


def find_finished(store: Store, request: Requested) -> tuple[Sweep, int] | None:
    """Return the sweep whose requested trials are all valid or not needed, and how many are valid.

    Return None if that is not certain; then the caller asks the nodes.
    """
    if request.options.new or request.options.strict or store.unreadable():
        return None
    digest = identity(request.recipe)[1]
    sweep = next((sweep for sweep in store.sweeps() if sweep.record().identity == digest), None)
    try:  # was nothing begun or changed since a command ended in good order?
        if sweep is None or sweep.lock().holder() is not None:
            return None
        if json.loads((sweep.folder / FILE).read_bytes()) != _digests(sweep):
            return None
    except (OSError, ValueError, errors.DlperfError):
        return None
    if observed_sweep.orphaned_tasks(store, request.cluster.name):
        return None
    plan, histories = sweep.record().plan, sweep.histories()
    names = {trial.name for trial in request.plan.trials}
    valid = {
        trial.name
        for trial in plan.trials
        if trial.name in names
        and evidence.check_outcome(sweep, trial, histories.get(trial.name, History())).valid
    }
    resting = evidence.not_needed(sweep, plan, histories)
    return (sweep, len(valid)) if names <= valid | resting else None


def _digests(sweep: Sweep) -> dict[str, str]:
    paths = [sweep.folder / name for name in OF]
    return {path.name: contents.sha256(path) for path in paths if path.exists()}
