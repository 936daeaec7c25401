"""Submit a sweep to Slurm if it is run outside of a job."""

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
        The script by its key in documents, and the options of its nodes; both empty inside a job.

    Raises:
        UnfitError: WALLTIME; no trial fits into a job's time.
    """
    if not submit.is_needed(request.cluster):
        return {}, ()
    _refuse_short(request)
    requeue = request.options.requeue
    text, asking = submit.show(store, request.cluster, voice, requeue=requeue)
    return {"scripts": [text]}, asking


def submit_sweep(store: Store, request: Requested, voice: Voice) -> int | None:
    """Submit the sweep and follow its job; return its exit code, or None inside a job.

    Raises:
        UnfitError: its image was not prepared, and no job that may be preparing it lives.
            WALLTIME; no trial fits into a job's time.
    """
    if not submit.is_needed(request.cluster):
        return None
    _refuse_short(request)
    try:
        request.refuse_unprepared()
    except errors.UnfitError:
        if not jobs.list_alive(store, request.cluster):
            raise
    detach, requeue = request.options.detach, request.options.requeue
    return submit.run(store, request.cluster, voice, detach=detach, requeue=requeue)


def _refuse_short(request: Requested) -> None:
    limit_s = request.playbook.experiment.method.time_limit_s
    shortage = request.cluster.slurm.shortage(limit_s) if request.cluster.slurm else None
    if shortage:
        raise errors.UnfitError(shortage[0], code="WALLTIME", fix=shortage[1])
