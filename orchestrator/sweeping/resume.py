"""Choose the sweep to resume, or make a new one; write its plan before anything starts."""

import contextlib
import difflib
import hashlib
import json
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


class Opened:
    """Hold the sweep to resume or a new one, locked, its plan written, while the context lasts."""

    def __init__(self, store: Store, request: Requested, site: Site, voice: Voice) -> None:
        self._store, self._request, self._recipe = store, request, request.recipe
        self._site, self._voice = site, voice

    def __enter__(self) -> Sweep:
        now = self._now()
        before, opened = self._before(now.identity), None
        if not self._request.options.new:
            if before is not None and before.record().identity == now.identity:
                opened = before
                self._voice.line(f"sweep {opened.id} goes on")
            else:
                self._pass_over_unreadable()
                if before is not None:
                    self._say_difference(before, now)
        if opened is None:
            opened = self._store.new_sweep(now)
            self._voice.line(f"new sweep {opened.id} in {opened.folder}")
        with contextlib.ExitStack() as held:
            held.enter_context(opened.lock())
            opened.remove_unfinished()
            self._grow(opened, now)
            self._held = held.pop_all()
        return opened

    def __exit__(self, *error: object) -> None:
        self._held.close()

    def _pass_over_unreadable(self) -> None:
        """Say which sweeps of this playbook are of another version.

        Raises:
            StoreError: the record of one is damaged; it may be the one to resume.
        """
        for sweep_id, error in self._store.unreadable().items():
            named = SWEEP_ID.fullmatch(sweep_id)
            if not named or named[1] != self._recipe.name:
                continue
            if error.code == "STORE-VERSION":
                self._voice.line(f"{error.cause}: it is kept and cannot be resumed")
            else:
                raise errors.StoreError(
                    f"sweep {sweep_id} may be the one to resume, but {error.cause}",
                    code=error.code,
                    fix="restore the file, or start a new sweep with --new; the logs are untouched",
                )

    def _before(self, identity: str) -> Sweep | None:
        """Return the sweep of that identity, else the newest of this playbook on this cluster."""
        name, cluster = self._recipe.name, self._recipe.cluster.name
        candidates = [
            sweep
            for sweep in self._store.sweeps()
            if (sweep.record().experiment, sweep.record().cluster) == (name, cluster)
        ]
        same = [sweep for sweep in candidates if sweep.record().identity == identity]
        return next(iter((*same, *candidates)), None)

    def _now(self) -> SweepRecord:
        inputs, digest = identity(self._recipe)
        return SweepRecord(
            experiment=self._recipe.name,
            cluster=self._recipe.cluster.name,
            identity=digest,
            inputs=inputs,
            inventory=self._recipe.cluster,
            plan=self._request.plan,
            site=self._site,
            commands=tuple(filter(None, (self._request.options.command,))),
        )

    def _grow(self, opened: Sweep, now: SweepRecord) -> None:
        """Write the trials requested of the sweep, now and before, ahead of starting any."""
        before = opened.record()
        trials = (*before.plan.trials, *self._request.plan.trials)
        repeats = max(trial.repeat for trial in trials if not trial.canary)
        names = {trial.name for trial in trials}
        whole = plan.build(plan.repeated(self._recipe, repeats))
        requested = whole.only(tuple(trial for trial in whole.trials if trial.name in names))
        first = before.site.nodes  # reports show what it began on, and the nodes that came later
        later = {name: facts for name, facts in now.site.nodes.items() if name not in first}
        site = replace(before.site, nodes={**first, **later})
        commands = tuple(dict.fromkeys((*before.commands, *now.commands)))
        kept = replace(now, id=before.id, created=before.created, site=site, commands=commands)
        if any(history.open for history in opened.histories().values()):
            kept = replace(kept, inventory=before.inventory)  # by which `stop` finds what is open
        opened.keep_record(replace(kept, plan=requested))

    def _say_difference(self, before: Sweep, now: SweepRecord) -> None:
        self._voice.line(f"differs from sweep {before.id}, which is kept:")
        old, new = _lines(before.record()), _lines(now)
        for line in difflib.unified_diff(old, new, before.id, "now", lineterm="", n=0):
            self._voice.line(f"  {line}")


def identity(recipe: Recipe) -> tuple[dict[str, JSON], str]:
    """Return the inputs that two runs of one sweep must share, and their sha256."""
    inputs = bind.identity(recipe)
    return inputs, hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()


def _lines(record: SweepRecord) -> list[str]:
    return json.dumps(record.inputs, indent=1, sort_keys=True).splitlines()


FILE = "ended.json"
OF = ("events.jsonl", "sweep.json")


def note_end(sweep: Sweep) -> None:
    """Record that a command ended in good order, with the digests of the sweep's files."""
    if not any(history.open for history in sweep.histories().values()):
        write(sweep.folder / FILE, dumps(_digests(sweep)).encode())


def find_finished(store: Store, request: Requested) -> tuple[Sweep, int] | None:
    """Return the sweep whose requested trials are all valid or not needed, and how many are valid.

    Return None if that is not certain; then the nodes are asked.
    """
    if request.options.new or request.options.strict or store.unreadable():
        return None
    digest = identity(request.recipe)[1]
    sweep = next((sweep for sweep in store.sweeps() if sweep.record().identity == digest), None)
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
        and evidence.check_outcome(sweep, trial, histories.get(trial.name, History())).valid
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
