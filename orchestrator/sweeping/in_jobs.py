"""A sweep that submits itself to Slurm, where it is run outside of a job."""

from orchestrator import errors
from orchestrator.console import Voice
from orchestrator.state.store import Store
from orchestrator.submitting import jobs, submit
from orchestrator.sweeping.requested import Requested


def show(
    store: Store, request: Requested, voice: Voice
) -> tuple[dict[str, list[str]], tuple[str, ...]]:
    """Print the script that would be submitted.

    Returns:
        It by its name in documents, and what it asks Slurm for; neither where it runs here.
    """
    if not submit.is_needed(request.cluster):
        return {}, ()
    requeue = request.options.requeue
    text, asking = submit.show(store, request.cluster, voice, requeue=requeue)
    return {"scripts": [text]}, asking


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
    detach, requeue = request.options.detach, request.options.requeue
    return submit.run(store, request.cluster, voice, detach=detach, requeue=requeue)
