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
    options = submit.JobOptions(request.options.detach, request.options.requeue)
    return {"scripts": submit.show(store, request.cluster, options, voice)}


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
    options = submit.JobOptions(request.options.detach, request.options.requeue)
    return submit.run(store, request.cluster, options, voice)
