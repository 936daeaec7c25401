"""sweep: the whole matrix of a playbook on a cluster, every repeat, resumable at any moment."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from orchestrator import errors, lanes, matrix, nodeset, plan, records, words
from orchestrator.console import Voice, duration
from orchestrator.fleet import Fleet, folded
from orchestrator.model.plan import Plan, TrialPlan
from orchestrator.model.site import Finding, Site
from orchestrator.plan import Recipe
from orchestrator.runtimes.settings import ContainerSettings
from orchestrator.schedulers import locks
from orchestrator.schedulers.fanout import Fanout
from orchestrator.signals import Abandoned, Signals, Stopped
from orchestrator.store import Store, Sweep
from orchestrator.verbs import (
    _bench,
    _files,
    _gather,
    _inside,
    _observe,
    _outcomes,
    _preflight,
    _programs,
    _running,
    _sites,
    _strays,
    _trials,
    collect,
)
from orchestrator.verbs._opened import Choice, Opened

LOG_BYTES_PER_ITERATION = 120


@dataclass(frozen=True, slots=True)
class Wish:
    """What the command line asks of a sweep.

    Args:
        cases: globs over placements, trial names and names of cases, with commas; none for all.
        repeats: instead of the playbook's; a sweep only grows by it.
        new: start a new sweep although one could go on.
        max_fail: trials without a valid outcome after which no further one is started.
        nodes: names and globs of the nodes to use; None for all.
    """

    playbook: str
    inventory: str | None
    cases: tuple[str, ...]
    repeats: int | None
    new: bool
    max_fail: int | None
    nodes: str | None


@dataclass(frozen=True, slots=True)
class Caller:
    """Whoever asks for a sweep.

    Args:
        begun: called with the sweep whenever a gang of it runs.
    """

    voice: Voice
    signals: Signals
    begun: Callable[[Sweep], None]


@dataclass(frozen=True, slots=True)
class _Asked:
    """Everything that the command line's words stand for."""

    recipe: Recipe
    playbook: _files.Playbook
    inventory: Path
    digest: str
    known: Site | None
    too_big: tuple[str, ...]


def dry_run(store: Store, wish: Wish, voice: Voice) -> int:
    """Show what a sweep would start on every node; nothing is started or written; exit code."""
    asked = _asked(store, wish, voice)
    wanted = _wanted(asked.recipe, wish)
    _say_too_big(asked, voice)
    voice.plan(wanted)
    voice.document({"exit_code": 0, "plan": records.PLAN.dump_python(wanted, mode="json")})
    return 0


def sweep(store: Store, wish: Wish, caller: Caller) -> int:
    """Run every wanted trial that has no valid outcome yet, then collect; exit code.

    Raises:
        Stopped, Interrupted: it was ended in good order.
        LeftoverError: something that was started may still run.
    """
    asked = None
    try:
        asked = _asked(store, wish, caller.voice)
        return _swept(store, asked, (_wanted(asked.recipe, wish), wish), caller)
    except (Abandoned, Stopped) as end:
        left = _left(store, asked)
        if left:
            raise _leftover(left) from None
        if isinstance(end, Stopped):
            raise
        raise errors.Interrupted(caller.signals.received) from None


def _swept(store: Store, asked: _Asked, what: tuple[Plan, Wish], caller: Caller) -> int:
    wanted, wish = what
    voice, signals = caller.voice, caller.signals
    cluster = asked.recipe.cluster
    settings = _settings(asked)
    _say_too_big(asked, voice)
    with (
        store.lock(cluster.name),
        Fleet.of(cluster) as fleet,
        locks.held(fleet, store.root) as held,
    ):
        site = _fit(store, asked, fleet, voice)
        choice = Choice(wish.new, wanted)
        with Opened(store, asked.recipe, site, choice, voice) as opened:
            with signals:
                where = (site, fleet, settings, held)
                _run(opened, asked, where, what, caller)
            if signals.received:
                raise errors.Interrupted(signals.received)
            names = frozenset(trial.name for trial in wanted.trials)
            return collect.present(opened, collect.measured(opened), voice, names)


def _say_too_big(asked: _Asked, voice: Voice) -> None:
    if asked.too_big:
        has = len(asked.recipe.cluster.nodes)
        voice.line(
            f"skipped, since they need more than {words.count(has, 'node')}:"
            f" {', '.join(asked.too_big)}"
        )


def _run(
    opened: Sweep,
    asked: _Asked,
    where: tuple[Site, Fleet, ContainerSettings | None, locks.Locks],
    what: tuple[Plan, Wish],
    caller: Caller,
) -> None:
    site, fleet, settings, held = where
    wanted, wish = what
    runtimes = {name: fleet.runtime(name, settings) for name in fleet.transports}
    with Fanout(runtimes, caller.signals.stopping) as fanout:
        bench = _bench.Bench(
            *(opened, asked.recipe, site, fanout, fleet.transports),
            *(caller.signals, caller.voice),
            locks=held,
            begun=caller.begun,
            history=opened.histories(),
        )
        _clear_others(bench, fleet)
        _run_trials(bench, wanted, wish.max_fail)


def _clear_others(bench: _bench.Bench, fleet: Fleet) -> None:
    """End what dead controllers of other sweeps of this state folder left on the cluster.

    What a sweep started whose files cannot be read is found by its name, on every node.
    """
    store = Store(bench.sweep.folder.parent.parent)
    unreadable = store.unreadable()
    for other in _sweeps_on(store, bench.recipe.cluster.name):
        if other.id == bench.sweep.id:
            continue
        try:
            history = other.histories()
        except errors.DlperfError as error:
            unreadable[other.id] = error
        else:
            _trials.clear_other(bench, other, history)
    for sweep_id, why in unreadable.items():
        if why.code != "STORE-VERSION":  # in such a one nothing is amiss
            bench.voice.line(f"sweep {sweep_id} is passed over: {why.cause}")
    dead = [it for it in unreadable if not Sweep(store.root / "sweeps" / it).lock().holder()]
    _strays.end(fleet, dead, bench.voice)


def _run_trials(bench: _bench.Bench, wanted: Plan, max_fail: int | None) -> None:
    whole = bench.sweep.record().plan
    _outcomes.say_what_does_not_count(bench, wanted.trials)
    done = sum(_outcomes.is_done(bench, trial) for trial in wanted.trials)
    _forecast(bench, wanted, done, len(whole.trials))
    failed: list[str] = []

    def measure(trial: TrialPlan) -> None:
        if not _outcomes.is_done(bench, trial) and _trials.run(bench, trial, view) != "valid":
            failed.append(trial.name)

    def may_begin() -> bool:
        return not bench.signals.stopping() and (max_fail is None or len(failed) < max_fail)

    voice = bench.voice
    with _frozen_if_left(bench.sweep), voice.view(bench.sweep.id, len(wanted.trials), done) as view:
        _trials.settle(bench, whole, view)
        _gather.forget_closed(bench, whole)
        lanes.run(wanted.trials, measure, lanes=bench.lanes, may_begin=may_begin, say=voice.line)
    if max_fail is not None and len(failed) >= max_fail:
        voice.line(
            f"{words.count(len(failed), 'trial')} without a valid outcome; no further one was"
            f" started (--max-fail {max_fail})"
        )


@contextlib.contextmanager
def _frozen_if_left(sweep: Sweep) -> Iterator[None]:
    """Where lanes are left at what they do, they must not begin or keep anything from then on.

    The lock of the sweep is given back and what may still run is listed while they go on.
    """
    try:
        yield
    except Abandoned:
        sweep.freeze()
        raise


def _sweeps_on(store: Store, cluster: str) -> list[Sweep]:
    return [sweep for sweep in store.sweeps() if sweep.record().cluster == cluster]


def _settings(asked: _Asked) -> ContainerSettings | None:
    """How containers are started; None where no node has any.

    Raises:
        UnfitError: the image was never prepared.
    """
    cluster = asked.recipe.cluster
    if not cluster.in_containers:
        return None
    record = _programs.record(asked.playbook, cluster, asked.known)
    return _inside.settings(cluster, record.id)


def _forecast(bench: _bench.Bench, wanted: Plan, done: int, requested: int) -> None:
    """Say how many trials, how long and how much disk, as far as that can be known.

    Args:
        requested: trials of the sweep, by this command and those before it.
    """
    count, cluster = len(wanted.trials), bench.recipe.cluster
    left = count - done
    trials = words.count(requested, "trial")
    known = f"{trials if count == requested else f'{count} of {trials}'}, {done} valid already"
    if not left:
        bench.voice.line(f"{known}, nothing left to run")
        return
    method = wanted.method
    disk = left * method.iterations * LOG_BYTES_PER_ITERATION * 2 >> 10
    bench.voice.line(
        f"{known}, {left} to run on {words.count(len(cluster.members), 'node')};"
        f" at most {duration(left * method.time_limit_s)} by method.time_limit_s,"
        f" about {max(disk, 1)} KiB of logs,"
        f" at most {max(cluster.log_bytes >> 20, 1)} MiB of each task by max_log_size"
    )


def refuse_left(store: Store) -> None:
    """For a sweep that was stopped before it looked at anything.

    Raises:
        LeftoverError: something of this state folder's sweeps may still run, and nobody watches it.
    """
    if left := _left(store, None):
        raise _leftover(left)


def _left(store: Store, asked: _Asked | None) -> list[str]:
    """Tasks that may still run and that no controller watches.

    Args:
        asked: they are of its cluster; None for any, while that is not known yet.
    """
    sweeps = _sweeps_on(store, asked.recipe.cluster.name) if asked else store.sweeps()
    left: list[str] = []
    for sweep in sweeps:
        with contextlib.suppress(errors.StoreError):  # of a damaged one nobody knows
            if sweep.lock().holder() is None:
                attempts = _running.Running.from_sweep(sweep).open_attempts()
                left += [f"{it.token(task)} on {task.node}" for it in attempts for task in it.tasks]
    return left


def _leftover(left: list[str]) -> errors.LeftoverError:
    return errors.LeftoverError(
        f"left at once; {', '.join(left)} may still run",
        code="LEFTOVER",
        fix="end it with `dlperf-orch stop`, or run the same command again: it adopts what runs",
    )


def _asked(store: Store, wish: Wish, voice: Voice) -> _Asked:
    found = _files.playbook(wish.playbook)
    whole, inventory = _sites.inventory(store, wish.inventory, found.experiment.inventory, voice)
    cluster = _sites.narrowed(whole, wish.nodes)
    _files.refuse_on(found, whole)
    experiment, too_big = matrix.fitting(found.experiment, len(cluster.nodes))
    if too_big and not matrix.cases(experiment):
        raise errors.UsageError(
            f"every case of {found.name} needs more than {words.count(len(cluster.nodes), 'node')}",
            code="NO-CASE",
            fix="leave fewer nodes out",
        )
    known, digest = _sites.of(store, whole), _sites.digest(whole)
    if known is not None and known.cluster_digest != digest:
        known = None  # the inventory was edited since: what was prepared may be for other nodes
    program = _programs.of(found, cluster, known)
    recipe = Recipe(found.name, experiment, found.workload, cluster, program)
    return _Asked(recipe, found, inventory, digest, known, too_big)


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
    patterns = plan.patterns(whole.trials, wish.cases)
    unfit = [each for each in patterns if not plan.selected(whole.trials, (each,))]
    if unfit:
        named = (trial.name_of_case or trial.case.placement for trial in whole.trials)
        known = ", ".join(dict.fromkeys(named))
        raise errors.UsageError(
            f"no case fits {', '.join(map(repr, unfit))}; there are {known}",
            code="NO-CASE",
            fix="a pattern such as 2x*, 4n8g-* or one of these names",
        )
    return whole.only(plan.selected(whole.trials, patterns))


def _fit(store: Store, asked: _Asked, fleet: Fleet, voice: Voice) -> Site:
    """The site, observed now in one round trip, with the images that provisioning prepared.

    Raises:
        NodeError: a node does not answer.
        UnfitError: the findings say that nothing good would come of it.
    """
    cluster = asked.recipe.cluster
    site = _observed(store, asked, fleet, voice)
    if cluster.in_containers:
        _preflight.same_image(fleet, asked.playbook.image.name, asked.recipe.program.digest)
        _preflight.no_other_gang(store, fleet)
    else:
        store.keep_site(cluster.name, _sites.SITE.dump_json(site, indent=1))
        if not cluster.is_here:
            _programs.push(asked.playbook.image_folder, asked.recipe.program, fleet.transports)
    _preflight.no_preparation(fleet)
    _say_findings(site, asked.known, voice)
    wrong = [finding for finding in site.findings if finding.severity == "error"]
    if wrong:
        first = wrong[0]
        raise errors.UnfitError(
            f"{words.count(len(wrong), 'error')} found, the first: {first.seen};"
            f" needed {first.expected}",
            code=first.code,
            node=first.node,
            phase="preflight",
            fix=first.fix,
        )
    return site


def _say_findings(site: Site, known: Site | None, voice: Voice) -> None:
    """What is new, each in a line; of warnings that were there before, their codes in one."""
    before = {(each.code, each.node) for each in (known.findings if known else ())}
    old = [
        each
        for each in site.findings
        if each.severity != "error" and (each.code, each.node) in before
    ]
    fresh = [each for each in site.findings if each not in old]
    for new in dict.fromkeys(replace(each, node="") for each in fresh):
        nodes = nodeset.fold(each.node for each in fresh if replace(each, node="") == new)
        seen = f"{new.severity} {new.code} {nodes}: {new.seen}"
        voice.line(f"{seen}; needed {new.expected}. Fix: {new.fix}.")
    codes = dict.fromkeys(each.code for each in old)
    said = [
        f"{code} {nodeset.fold(each.node for each in old if each.code == code)}" for code in codes
    ]
    if said:
        voice.line(f"warnings as before: {', '.join(said)}")


def _observed(store: Store, asked: _Asked, fleet: Fleet, voice: Voice) -> Site:
    image = asked.playbook.image
    asking = _observe.Asking(store, asked.inventory, asked.digest, None, asked.known, (image,))
    if not asked.recipe.cluster.in_containers:
        asking = replace(asking, image=image, images=())
    site, failures = _observe.observe(fleet, asking)
    said = folded(failures)
    if said:
        gravest = errors.gravest(said)
        for failure in said:
            if failure is not gravest:
                voice.line(str(failure))
        raise gravest
    before = asked.known.provisioned if asked.known else ()
    return replace(site, findings=(*site.findings, *_provisioned(asked)), provisioned=before)


def _provisioned(asked: _Asked) -> tuple[Finding, ...]:
    """What the last provisioning found where a sweep does not look again."""
    names = {node.name for node in asked.recipe.cluster.members}
    known = asked.known.provisioned if asked.known else ()
    return tuple(
        replace(each, fix=f"{each.fix}; then provision again")
        for each in known
        if each.node in names or each.node == "all"
    )
