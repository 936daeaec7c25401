"""sweep: the whole matrix of a playbook on a cluster, every repeat, resumable at any moment."""

import difflib
import hashlib
import json
import sys
from dataclasses import dataclass
from pathlib import Path

from orchestrator import errors, matrix, plan
from orchestrator.console import Voice, duration
from orchestrator.model.cluster import Cluster
from orchestrator.model.facts import JSON
from orchestrator.model.image import Program
from orchestrator.model.plan import Plan
from orchestrator.model.site import Site
from orchestrator.plan import Recipe
from orchestrator.schedulers.fanout import Fanout
from orchestrator.store import Store, Sweep
from orchestrator.verbs import _files, _nodes, _trials, collect, provision
from orchestrator.verbs._signals import Abandoned, Signals

LOG_BYTES_PER_ITERATION = 120


@dataclass(frozen=True, slots=True)
class Wish:
    """What the command line asks of a sweep.

    Args:
        case: glob over placements and trial names; None for all.
        repeats: instead of the playbook's; a sweep only grows by it.
        new: start a new sweep although one could go on.
        max_fail: trials without a valid outcome after which no further one is started.
    """

    playbook: str
    inventory: str | None
    case: str | None
    repeats: int | None
    new: bool
    max_fail: int | None


def dry_run(store: Store, wish: Wish, voice: Voice) -> int:
    """Show what a sweep would start on every node; nothing is started or written; exit code."""
    recipe, _, _ = _recipe(store, wish)
    wanted = _wanted(recipe, wish)
    voice.plan(wanted)
    voice.document({"exit_code": 0, "plan": collect.PLAN.dump_python(wanted, mode="json")})
    return 0


def sweep(store: Store, wish: Wish, voice: Voice) -> int:
    """Run every wanted trial that has no valid outcome yet, then collect; exit code.

    Raises:
        Interrupted: a signal ended it in good order.
        LeftoverError: something that was started would not go.
    """
    recipe, found, inventory = _recipe(store, wish)
    wanted = _wanted(recipe, wish)
    with store.lock(recipe.cluster.name):
        site = _fit(store, recipe, found, inventory, voice)
        with _Opened(store, recipe, site, wish, voice) as opened:
            others = [each for each in store.sweeps() if each.id != opened.id]
            here = [each for each in others if each.record().get("cluster") == site.cluster]
            with Signals() as signals:
                try:
                    _run(opened, recipe, site, (wanted, wish.max_fail, voice, here), signals)
                except Abandoned:
                    raise _abandoned(opened) from None
                if signals.received:
                    raise errors.Interrupted(signals.received)
            names = frozenset(trial.name for trial in wanted.trials)
            return collect.present(opened, collect.measured(opened), voice, names)


def _run(
    opened: Sweep,
    recipe: Recipe,
    site: Site,
    what: tuple[Plan, int | None, Voice, list[Sweep]],
    signals: Signals,
) -> None:
    wanted, max_fail, voice, others = what
    reached = _nodes.transports(recipe.cluster)
    fanout = Fanout(_nodes.runtimes(recipe.cluster, reached), signals.stopping)
    bench = _trials.Bench(opened, recipe, site, fanout, reached, signals, voice)
    bench.history = _trials.histories(opened)
    whole = collect.PLAN.validate_python(opened.record()["plan"], strict=False)
    _trials.clear_others(bench, others, collect.PLAN)
    done = sum(_trials.is_done(bench, trial) for trial in wanted.trials)
    _forecast(voice, recipe, wanted, done)
    failed = 0
    with voice.view(opened.id, len(wanted.trials), done) as view:
        _trials.settle(bench, whole, view)
        for trial in wanted.trials:
            if signals.received or (max_fail is not None and failed >= max_fail):
                break
            if not _trials.is_done(bench, trial):
                failed += _trials.run(bench, trial, view) != "valid"
    if max_fail is not None and failed >= max_fail:
        voice.line(f"{failed} trials have no valid outcome; --max-fail {max_fail}: none is started")


def _forecast(voice: Voice, recipe: Recipe, wanted: Plan, done: int) -> None:
    """Say how many trials, how long and how much disk, as far as that can be known."""
    left = len(wanted.trials) - done
    method = wanted.method
    disk = left * method.iterations * LOG_BYTES_PER_ITERATION * 2 >> 10
    voice.line(
        f"{len(wanted.trials)} trials, {done} valid already, {left} to run on"
        f" {len(recipe.cluster.members)} nodes; at most {duration(left * method.time_limit_s)} by"
        f" method.time_limit_s, about {max(disk, 1)} KiB of logs"
    )


def _abandoned(opened: Sweep) -> errors.LeftoverError:
    started = [
        f"dlp-{opened.id}-{name}-a{history.open_attempt}"
        for name, history in _trials.histories(opened).items()
        if history.open_attempt
    ]
    return errors.LeftoverError(
        f"left at once; tasks of {', '.join(started) or 'no attempt'} may still run",
        code="LEFTOVER",
        fix="run the same command again: it ends or adopts them; or wait for their deadline",
    )


def _recipe(store: Store, wish: Wish) -> tuple[Recipe, _files.Playbook, Path]:
    found = _files.playbook(wish.playbook)
    cluster, inventory = _cluster(store, wish, found)
    _files.refuse_on(found, cluster)
    recipe = Recipe(found.name, found.experiment, found.workload, cluster, _program(found, cluster))
    return recipe, found, inventory


def _cluster(store: Store, wish: Wish, found: _files.Playbook) -> tuple[Cluster, Path]:
    """The one that is named, else the one last provisioned, else the playbook's own."""
    if wish.inventory is not None:
        return _files.cluster(wish.inventory)
    newest = store.newest_site()
    if newest is not None:
        fix = "name one with --inventory, or provision again"
        return _files.cluster(provision.read_site(newest, fix).inventory)
    if found.experiment.inventory is not None:
        return _files.cluster(found.experiment.inventory)
    raise errors.UsageError(
        f"no inventory is named, none was provisioned in {store.root}, and playbook"
        f" {found.name} names none",
        code="NO-INVENTORY",
        fix="name one with --inventory",
    )


def _program(found: _files.Playbook, cluster: Cluster) -> Program:
    if all(node.runtime == "process" for node in cluster.members):
        folder = found.image_folder
        return Program(str(folder), sys.executable, _files.folder_digest(folder))
    return Program(found.image.code, found.image.python, "")


def _wanted(recipe: Recipe, wish: Wish) -> Plan:
    grown = plan.repeated(recipe, wish.repeats) if wish.repeats else recipe
    trials = len(matrix.cases(recipe.experiment)) * grown.experiment.method.repeats
    if trials > matrix.MOST_TRIALS:
        raise errors.UsageError(
            f"{trials} trials; needed at most {matrix.MOST_TRIALS}",
            code="TOO-MANY",
            fix="ask for fewer repeats",
        )
    whole = plan.build(grown)
    wanted = plan.selected(whole.trials, wish.case)
    if not wanted:
        known = ", ".join(dict.fromkeys(trial.case.placement for trial in whole.trials))
        raise errors.UsageError(
            f"no case fits {wish.case!r}; there are {known}",
            code="NO-CASE",
            fix="a pattern such as 2x* or 4n8g-*",
        )
    return whole.only(wanted)


def _fit(
    store: Store, recipe: Recipe, found: _files.Playbook, inventory: Path, voice: Voice
) -> Site:
    """The site, observed now: nodes on this machine are asked in no time.

    Raises:
        UnfitError: the findings say that nothing good would come of it.
    """
    image = found.image if recipe.cluster.members[0].runtime == "process" else None
    site, failures = provision.observe(store, recipe.cluster, inventory, image)
    if failures:
        raise failures[0]
    store.keep_site(recipe.cluster.name, provision.SITE.dump_json(site, indent=1))
    if site.findings:
        voice.findings(site.findings)
    wrong = [finding for finding in site.findings if finding.severity == "error"]
    if wrong:
        first = wrong[0]
        raise errors.UnfitError(
            f"{len(wrong)} finding(s) are errors, the first: {first.seen}; needed {first.expected}",
            code=first.code,
            node=first.node,
            phase="preflight",
            fix=first.fix,
        )
    return site


class _Opened:
    """The sweep that goes on, or a new one, under its lock and with its plan written."""

    def __init__(self, store: Store, recipe: Recipe, site: Site, wish: Wish, voice: Voice) -> None:
        self._store, self._recipe, self._site = store, recipe, site
        self._wish, self._voice = wish, voice

    def __enter__(self) -> Sweep:
        inputs = plan.inputs(self._recipe)
        identity = hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()
        before = self._before(identity)
        same = before is not None and before.record().get("identity") == identity
        if before is not None and not same and not self._wish.new:
            self._differs(before, inputs)
        if before is not None and same and not self._wish.new:
            opened = before
            self._voice.line(f"sweep {opened.id} goes on")
        else:
            opened = self._store.new_sweep(
                self._recipe.name, self._document(inputs, identity, self._recipe)
            )
            self._voice.line(f"new sweep {opened.id} in {opened.folder}")
        self._lock = opened.lock()
        self._lock.__enter__()
        self._grow(opened, inputs, identity)
        return opened

    def __exit__(self, *error: object) -> None:
        self._lock.__exit__(*error)

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

    def _document(self, inputs: JSON, identity: str, recipe: Recipe) -> dict[str, JSON]:
        return {
            "experiment": self._recipe.name,
            "cluster": self._recipe.cluster.name,
            "identity": identity,
            "inputs": inputs,
            "plan": collect.PLAN.dump_python(plan.build(recipe), mode="json"),
            "site": provision.SITE.dump_python(self._site, mode="json"),
        }

    def _grow(self, opened: Sweep, inputs: JSON, identity: str) -> None:
        """More repeats than the plan has: write the longer plan before anything starts."""
        record = opened.record()
        has = collect.PLAN.validate_python(record["plan"], strict=False)
        repeats = max(self._wish.repeats or 0, max(trial.repeat for trial in has.trials))
        grown = plan.repeated(self._recipe, repeats)
        document = self._document(inputs, identity, grown)
        kept = {key: record[key] for key in ("id", "created", "site")}
        opened.keep_record({**document, **kept})

    def _differs(self, before: Sweep, inputs: JSON) -> None:
        old = json.dumps(before.record().get("inputs"), indent=1, sort_keys=True).splitlines()
        new = json.dumps(inputs, indent=1, sort_keys=True).splitlines()
        self._voice.line(f"not the same as in sweep {before.id}, which stays as it is:")
        for line in difflib.unified_diff(old, new, before.id, "now", lineterm="", n=0):
            self._voice.line(f"  {line}")
