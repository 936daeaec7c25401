"""The sweep that a playbook on a cluster goes on with, or a new one, its plan written first."""

import difflib
import hashlib
import json
from dataclasses import dataclass

from orchestrator import errors, plan, records
from orchestrator.console import Voice
from orchestrator.model.facts import JSON
from orchestrator.model.plan import Plan
from orchestrator.model.site import Site
from orchestrator.plan import Recipe
from orchestrator.store import SWEEP_ID, Store, Sweep
from orchestrator.verbs import _sites


@dataclass(frozen=True, slots=True)
class Choice:
    """What a user may say of the sweep to go on with.

    Args:
        new: start a new one although one could go on.
        wanted: what to run now; a sweep only grows by it.
    """

    new: bool
    wanted: Plan


class Opened:
    """The sweep that goes on, or a new one, under its lock and with its plan written."""

    def __init__(
        self, store: Store, recipe: Recipe, site: Site, choice: Choice, voice: Voice
    ) -> None:
        self._store, self._recipe, self._site = store, recipe, site
        self._choice, self._voice = choice, voice

    def __enter__(self) -> Sweep:
        inputs = plan.inputs(self._recipe)
        identity = hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()
        before = self._before(identity)
        same = before is not None and before.record().get("identity") == identity
        if not same and not self._choice.new:
            self._refuse_damaged()
        if before is not None and not same and not self._choice.new:
            self._differs(before, inputs)
        if before is not None and same and not self._choice.new:
            opened = before
            self._voice.line(f"sweep {opened.id} goes on")
        else:
            opened = self._store.new_sweep(
                self._recipe.name, self._document(inputs, identity, self._choice.wanted)
            )
            self._voice.line(f"new sweep {opened.id} in {opened.folder}")
        self._lock = opened.lock()
        self._lock.__enter__()
        opened.remove_unfinished()
        self._grow(opened, inputs, identity)
        return opened

    def __exit__(self, *error: object) -> None:
        self._lock.__exit__(*error)

    def _refuse_damaged(self) -> None:
        """Nothing, unless the sweep to go on with may be one whose record does not hold."""
        for sweep_id, error in self._store.damaged().items():
            named = SWEEP_ID.fullmatch(sweep_id)
            if named and named[1] == self._recipe.name:
                raise errors.StoreError(
                    f"sweep {sweep_id} may be the one to go on with, and {error.cause}",
                    code=error.code,
                    fix="restore the file, or start anew with sweep --new; the logs are untouched",
                )

    def _before(self, identity: str) -> Sweep | None:
        """The sweep of the same inputs, else the newest of this playbook on this cluster."""
        name, cluster = self._recipe.name, self._recipe.cluster.name
        found = [
            each
            for each in self._store.sweeps()
            if (each.record().get("experiment"), each.record().get("cluster")) == (name, cluster)
        ]
        same = [each for each in found if each.record().get("identity") == identity]
        return next(iter((*same, *found)), None)

    def _document(self, inputs: JSON, identity: str, requested: Plan) -> dict[str, JSON]:
        return {
            "experiment": self._recipe.name,
            "cluster": self._recipe.cluster.name,
            "identity": identity,
            "inputs": inputs,
            "plan": records.PLAN.dump_python(requested, mode="json"),
            "site": _sites.SITE.dump_python(self._site, mode="json"),
        }

    def _grow(self, opened: Sweep, inputs: JSON, identity: str) -> None:
        """Write what has been requested of the sweep, now and before, until anything starts."""
        record = opened.record()
        has = records.PLAN.validate_python(record["plan"], strict=False)
        trials = (*has.trials, *self._choice.wanted.trials)
        repeats, names = max(trial.repeat for trial in trials), {trial.name for trial in trials}
        whole = plan.build(plan.repeated(self._recipe, repeats))
        requested = tuple(trial for trial in whole.trials if trial.name in names)
        document = self._document(inputs, identity, whole.only(requested))
        kept = {key: record[key] for key in ("id", "created", "site")}
        opened.keep_record({**document, **kept})

    def _differs(self, before: Sweep, inputs: JSON) -> None:
        old = json.dumps(before.record().get("inputs"), indent=1, sort_keys=True).splitlines()
        new = json.dumps(inputs, indent=1, sort_keys=True).splitlines()
        self._voice.line(f"differs from sweep {before.id}, which is kept:")
        for line in difflib.unified_diff(old, new, before.id, "now", lineterm="", n=0):
            self._voice.line(f"  {line}")
