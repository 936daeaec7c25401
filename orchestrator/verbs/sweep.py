"""sweep: the whole matrix of a playbook on a cluster, every repeat, resumable at any moment."""

from orchestrator import errors
from orchestrator.collecting.show import Out, present
from orchestrator.collecting.sweep import measured
from orchestrator.console import Voice
from orchestrator.planning import bind
from orchestrator.schedulers import choice
from orchestrator.signals import Abandoned, Stopped
from orchestrator.state.store import Store
from orchestrator.submitting import submit
from orchestrator.sweeping import loop, node_checks, orphaned_tasks, program_folders
from orchestrator.sweeping.campaign import Caller, Campaign
from orchestrator.sweeping.requested import Requested, SweepOptions, requested
from orchestrator.sweeping.resume import Choice, Opened


def dry_run(store: Store, options: SweepOptions, voice: Voice) -> int:
    """Show what a sweep would start on every node; nothing is started or written; exit code."""
    request = requested(store, options, voice)
    seats = choice.seats(request.cluster, store.root)
    bound = [bind.first(request.recipe, trial, seats) for trial in request.plan.trials]
    request.say_too_big(voice)
    voice.line("each trial is shown on the nodes and the port that it would be tried on first")
    voice.plan(request.plan, bound)
    scripts = {}
    if submit.is_needed(request.cluster):
        scripts = {"scripts": submit.show(store, request.cluster, _way(request), voice)}
    voice.document({"exit_code": 0, "plan": bind.shown(request.plan, bound), **scripts})
    return 0


def sweep(store: Store, options: SweepOptions, caller: Caller) -> int:
    """Run every chosen trial that has no valid outcome yet, then collect; exit code.

    Raises:
        Stopped, Interrupted: a signal came; nothing that was started still runs.
        LeftoverError: tasks may still run on nodes.
    """
    request = None
    try:
        request = requested(store, options, caller.voice)
        if submit.is_needed(request.cluster):
            return submit.run(store, request.cluster, _way(request), caller.voice)
        return _swept(store, request, caller)
    except (Abandoned, Stopped) as end:
        left = orphaned_tasks.of(store, request)
        if left:
            raise orphaned_tasks.leftover(left) from None
        if isinstance(end, Stopped):
            raise
        raise errors.Interrupted(caller.signals.received) from None


def _swept(store: Store, request: Requested, caller: Caller) -> int:
    voice, signals, cluster = caller.voice, caller.signals, request.cluster
    if cluster.in_containers:
        program_folders.record(request.playbook, cluster, request.known)
    request.say_too_big(voice)
    with (
        store.lock(cluster.name),
        choice.reach(cluster, store.root, signals.stopping) as scheduler,
        scheduler.held(),
    ):
        site = node_checks.site(store, request, scheduler, voice)
        which = Choice(request.options.new, request.plan, request.options.command)
        with Opened(store, request.recipe, site, which, voice) as opened:
            with signals:
                histories = opened.histories()
                campaign = Campaign(
                    *(store, opened, request.recipe, site, scheduler, caller),
                    histories=histories,
                    strict=request.options.strict,
                )
                orphaned_tasks.clear_others(campaign)
                loop.run_trials(campaign, request)
            if signals.received:
                raise errors.Interrupted(signals.received)
            names = frozenset(trial.name for trial in request.plan.trials)
            found = measured(opened, strict=request.options.strict)
            return present(opened, found, voice, Out(opened.folder), names)


def _way(request: Requested) -> submit.Way:
    """How the sweep wants its jobs: one, or one for each number of nodes that its cases have."""
    options, slurm = request.options, request.cluster.slurm
    widths: tuple[tuple[int, tuple[str, ...]], ...] = ()
    if slurm is not None and slurm.jobs == "by-nodes":
        names: dict[int, list[str]] = {}
        for trial in request.plan.trials:
            of_case = f"{trial.name.rpartition('_')[0]}_*"
            names.setdefault(trial.case.nodes, []).append(of_case)
        widths = tuple(
            (nodes, ("--case", ",".join(dict.fromkeys(named))))
            for nodes, named in sorted(names.items())
        )
    return submit.Way(options.detach, options.requeue, widths)
