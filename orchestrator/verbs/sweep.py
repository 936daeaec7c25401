"""sweep: the whole matrix of a playbook on a cluster, every repeat, resumable at any moment."""

from orchestrator import errors
from orchestrator.collecting.show import Out, present
from orchestrator.console import Voice
from orchestrator.model.report import Report
from orchestrator.planning import bind
from orchestrator.schedulers import choice
from orchestrator.state.store import Store
from orchestrator.state.sweep import Sweep
from orchestrator.submitting import jobs, submit
from orchestrator.sweeping import run
from orchestrator.sweeping.campaign import Caller
from orchestrator.sweeping.requested import Requested, SweepOptions, requested


def dry_run(store: Store, options: SweepOptions, voice: Voice) -> int:
    """Show what a sweep would start on every node; nothing is started or written; exit code."""
    request = requested(store, options, voice)
    seats = choice.seats(request.cluster, store.root)
    bound = [bind.first(request.recipe, trial, seats) for trial in request.plan.trials]
    request.say_too_big(voice)
    voice.line("each trial is shown on the nodes and the port that it would be tried on first")
    voice.plan(request.plan, bound)
    commands = {attempt.trial: choice.containers(request.cluster, attempt) for attempt in bound}
    for trial, lines in commands.items():
        if lines:
            voice.result("\n".join((f"\nin containers, {trial}:", *lines)))
    scripts = {}
    if submit.is_needed(request.cluster):
        scripts = {"scripts": submit.show(store, request.cluster, _job_options(request), voice)}
    voice.document({"exit_code": 0, "plan": bind.shown(request.plan, bound), **scripts})
    return 0


def sweep(store: Store, options: SweepOptions, caller: Caller) -> int:
    """Run every chosen trial that has no valid outcome yet, then collect; exit code.

    Raises:
        Stopped, Interrupted: a signal came; nothing that was started still runs.
        LeftoverError: tasks may still run on nodes.
    """

    def elsewhere(request: Requested) -> int | None:
        if not submit.is_needed(request.cluster):
            return None
        try:
            request.refuse_unprepared()
        except errors.UnfitError:
            if not jobs.alive(store, request.cluster):  # one of them may be preparing it
                raise
        return submit.run(store, request.cluster, _job_options(request), caller.voice)

    def shown(opened: Sweep, found: Report, names: frozenset[str]) -> int:
        return present(opened, found, caller.voice, Out(opened.folder), names)

    return run.run(store, options, caller, run.Ways(shown, elsewhere))


def _job_options(request: Requested) -> submit.JobOptions:
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
    return submit.JobOptions(options.detach, options.requeue, widths)
