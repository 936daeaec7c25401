"""A sweep that submits itself to Slurm, where it is run outside of a job."""

from orchestrator import errors
from orchestrator.console import Voice
from orchestrator.state.store import Store
from orchestrator.submitting import jobs, submit
from orchestrator.sweeping.requested import Requested


def show(store: Store, request: Requested, voice: Voice) -> dict[str, list[str]]:
    """Print the scripts that would be submitted; by their name in documents, if there are some."""
    if not submit.is_needed(request.cluster):
        return {}
    return {"scripts": submit.show(store, request.cluster, _options(request), voice)}


def submitted(store: Store, request: Requested, voice: Voice) -> int | None:
    """Submit the sweep and follow its job; exit code. None where it runs here.

    Raises:
        UnfitError: its image was not prepared, and no job that may be preparing it lives.
    """
    if not submit.is_needed(request.cluster):
        return None
    try:
        request.refuse_unprepared()
    except errors.UnfitError:
        if not jobs.alive(store, request.cluster):
            raise
    return submit.run(store, request.cluster, _options(request), voice)


def _options(request: Requested) -> submit.JobOptions:
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
