"""sweep: the whole matrix of a playbook on a cluster, every repeat, resumable at any moment."""

from orchestrator import errors, schedulers
from orchestrator.collecting.present import present
from orchestrator.collecting.sweep import measured
from orchestrator.console import Voice
from orchestrator.planning import bind
from orchestrator.signals import Abandoned, Stopped
from orchestrator.state.store import Store
from orchestrator.sweeping import fit, leftovers, loop, programs
from orchestrator.sweeping.campaign import Caller, Campaign
from orchestrator.sweeping.opened import Choice, Opened
from orchestrator.sweeping.requested import Options, Requested, requested


def dry_run(store: Store, options: Options, voice: Voice) -> int:
    """Show what a sweep would start on every node; nothing is started or written; exit code."""
    found = requested(store, options, voice)
    seats = schedulers.seats(found.cluster, store.root)
    bound = [bind.first(found.recipe, trial, seats) for trial in found.plan.trials]
    found.say_too_big(voice)
    voice.line("each trial is shown on the nodes and the port that it would be tried on first")
    voice.plan(found.plan, bound)
    voice.document({"exit_code": 0, "plan": bind.shown(found.plan, bound)})
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
        left = leftovers.of(store, found)
        if left:
            raise leftovers.leftover(left) from None
        if isinstance(end, Stopped):
            raise
        raise errors.Interrupted(caller.signals.received) from None


def _swept(store: Store, found: Requested, caller: Caller) -> int:
    voice, signals, cluster = caller.voice, caller.signals, found.cluster
    if cluster.in_containers:
        programs.record(found.playbook, cluster, found.known)
    found.say_too_big(voice)
    with (
        store.lock(cluster.name),
        schedulers.reach(cluster, store.root, signals.stopping) as scheduler,
        scheduler.held(),
    ):
        site = fit.site(store, found, scheduler, voice)
        choice = Choice(found.options.new, found.plan)
        with Opened(store, found.recipe, site, choice, voice) as opened:
            with signals:
                known = opened.histories()
                campaign = Campaign(
                    *(store, opened, found.recipe, site, scheduler, caller), histories=known
                )
                leftovers.clear_others(campaign)
                loop.run_trials(campaign, found)
            if signals.received:
                raise errors.Interrupted(signals.received)
            names = frozenset(trial.name for trial in found.plan.trials)
            return present(opened, measured(opened), voice, names)
