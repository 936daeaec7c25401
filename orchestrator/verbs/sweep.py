"""sweep: the whole matrix of a playbook on a cluster, every repeat, resumable at any moment."""

import contextlib
from collections.abc import Iterator

from orchestrator import bind, errors, lanes, schedulers, words
from orchestrator.console import Voice, duration
from orchestrator.model.plan import Trial
from orchestrator.signals import Abandoned, Stopped
from orchestrator.store import Store, Sweep
from orchestrator.verbs import _fit, _gather, _outcomes, _programs, _running, _trials, collect
from orchestrator.verbs._campaign import Caller, Campaign
from orchestrator.verbs._opened import Choice, Opened
from orchestrator.verbs._requested import Options, Requested, requested

LOG_BYTES_PER_ITERATION = 120


def dry_run(store: Store, options: Options, voice: Voice) -> int:
    """Show what a sweep would start on every node; nothing is started or written; exit code."""
    found = requested(store, options, voice)
    seats = schedulers.seats(found.cluster, store.root)
    attempts = [bind.first(found.recipe, trial, seats) for trial in found.plan.trials]
    found.say_too_big(voice)
    voice.line("each trial is shown on the nodes and the port that it would be tried on first")
    voice.plan(found.plan, attempts)
    voice.document({"exit_code": 0, "plan": bind.shown(found.plan, attempts)})
    return 0


def sweep(store: Store, options: Options, caller: Caller) -> int:
    """Run every wanted trial that has no valid outcome yet, then collect; exit code.

    Raises:
        Stopped, Interrupted: it was ended in good order.
        LeftoverError: something that was started may still run.
    """
    found = None
    try:
        found = requested(store, options, caller.voice)
        return _swept(store, found, caller)
    except (Abandoned, Stopped) as end:
        left = _left(store, found)
        if left:
            raise _leftover(left) from None
        if isinstance(end, Stopped):
            raise
        raise errors.Interrupted(caller.signals.received) from None


def _swept(store: Store, found: Requested, caller: Caller) -> int:
    voice, signals, cluster = caller.voice, caller.signals, found.cluster
    if cluster.in_containers:
        _programs.record(found.playbook, cluster, found.known)
    found.say_too_big(voice)
    with (
        store.lock(cluster.name),
        schedulers.reach(cluster, store.root, signals.stopping) as scheduler,
        scheduler.held(),
    ):
        site = _fit.site(store, found, scheduler, voice)
        choice = Choice(found.options.new, found.plan)
        with Opened(store, found.recipe, site, choice, voice) as opened:
            with signals:
                known = opened.histories()
                campaign = Campaign(
                    *(store, opened, found.recipe, site, scheduler, caller), histories=known
                )
                _clear_others(campaign)
                _run_trials(campaign, found)
            if signals.received:
                raise errors.Interrupted(signals.received)
            names = frozenset(trial.name for trial in found.plan.trials)
            return collect.present(opened, collect.measured(opened), voice, names)


def _clear_others(campaign: Campaign) -> None:
    """End what dead controllers of other sweeps of this state folder left on the cluster.

    What a sweep started whose files cannot be read is found by its name, on every node.
    """
    store, voice = campaign.store, campaign.voice
    unreadable = store.unreadable()
    for other in _sweeps_on(store, campaign.recipe.cluster.name):
        if other.id == campaign.sweep.id:
            continue
        try:
            left = _running.Running.from_sweep(other).open_attempts()
        except errors.DlperfError as error:
            unreadable[other.id] = error
        else:
            _trials.clear_other(campaign, other, left)
    for sweep_id, why in unreadable.items():
        if why.code != "STORE-VERSION":  # in such a one nothing is amiss
            voice.line(f"sweep {sweep_id} is passed over: {why.cause}")
    dead = [
        sweep_id
        for sweep_id in unreadable
        if not Sweep(store.root / "sweeps" / sweep_id).lock().holder()
    ]
    for node, names in campaign.scheduler.strays(dead).items():
        voice.line(f"ended on {node}: {', '.join(names)}")


def _run_trials(campaign: Campaign, found: Requested) -> None:
    whole, trials, most = campaign.sweep.record().plan, found.plan.trials, found.options.max_fail
    voice, name = campaign.voice, campaign.sweep.id
    _outcomes.say_what_does_not_count(campaign, trials)
    done = sum(_outcomes.is_done(campaign, trial) for trial in trials)
    _forecast(campaign, found, done, len(whole.trials))
    failed: list[str] = []

    def measure(trial: Trial) -> None:
        if not _outcomes.is_done(campaign, trial) and _trials.run(campaign, trial, view) != "valid":
            failed.append(trial.name)

    def may_begin() -> bool:
        return not campaign.stopping and (most is None or len(failed) < most)

    with _frozen_if_left(campaign.sweep), voice.view(name, len(trials), done) as view:
        _trials.settle(campaign, whole, view)
        _gather.forget_closed(campaign, whole)
        width = campaign.scheduler.lanes
        lanes.run(trials, measure, lanes=width, may_begin=may_begin, say=voice.line)
    if most is not None and len(failed) >= most:
        voice.line(
            f"{words.count(len(failed), 'trial')} without a valid outcome; no further one was"
            f" started (--max-fail {most})"
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


def _forecast(campaign: Campaign, found: Requested, done: int, requested: int) -> None:
    """Say how many trials, how long and how much disk, as far as that can be known.

    Args:
        requested: trials of the sweep, by this command and those before it.
    """
    count, cluster = len(found.plan.trials), found.cluster
    left = count - done
    trials = words.count(requested, "trial")
    known = f"{trials if count == requested else f'{count} of {trials}'}, {done} valid already"
    if not left:
        campaign.voice.line(f"{known}, nothing left to run")
        return
    method = found.plan.method
    disk = left * method.iterations * LOG_BYTES_PER_ITERATION * 2 >> 10
    campaign.voice.line(
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


def _left(store: Store, found: Requested | None) -> list[str]:
    """Tasks that may still run and that no controller watches.

    Args:
        found: they are of its cluster; None for any, while that is not known yet.
    """
    sweeps = _sweeps_on(store, found.cluster.name) if found else store.sweeps()
    left: list[str] = []
    for sweep in sweeps:
        with contextlib.suppress(errors.StoreError):  # of a damaged one nobody knows
            if sweep.lock().holder() is None:
                attempts = _running.Running.from_sweep(sweep).open_attempts()
                left += [
                    f"{attempt.token(task)} on {task.node}"
                    for attempt in attempts
                    for task in attempt.tasks
                ]
    return left


def _leftover(left: list[str]) -> errors.LeftoverError:
    return errors.LeftoverError(
        f"left at once; {', '.join(left)} may still run",
        code="LEFTOVER",
        fix="end it with `dlperf-orch stop`, or run the same command again: it adopts what runs",
    )
