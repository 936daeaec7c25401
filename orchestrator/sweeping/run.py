"""Run a sweep from its request to its report."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from orchestrator import errors
from orchestrator.collecting.sweep import measured
from orchestrator.console import Voice
from orchestrator.model.report import Report
from orchestrator.state.store import Store
from orchestrator.state.sweep import Sweep
from orchestrator.sweeping import resume
from orchestrator.sweeping.requested import Caller, Requested, SweepOptions, resolve

if TYPE_CHECKING:  # half of what a finished sweep would load
    from orchestrator.sweeping.campaign import HeldNodes

T = TypeVar("T")


def run(
    store: Store,
    options: SweepOptions,
    caller: Caller,
    done: Callable[[Sweep, Report, frozenset[str]], T],
    *,
    elsewhere: Callable[[Requested], T | None] = lambda _request: None,
    nodes: "HeldNodes | None" = None,
) -> T:
    """Run every chosen trial that has no valid outcome yet, then measure; return ``done``'s answer.

    Args:
        done: given the sweep, what was measured, and the names of the trials of this request.
        elsewhere: called before anything is run; its answer, unless None, is returned instead.
        nodes: held for further sweeps on the same nodes as well.

    Raises:
        Stopped, Interrupted: a signal came; nothing that was started still runs.
        LeftoverError: tasks may still run on nodes.
    """
    request = resolve(store, options, caller.voice)
    whole = resume.find_finished(store, request)
    if whole is None and (answer := elsewhere(request)) is not None:
        return answer
    request.refuse_unprepared()
    names = frozenset(trial.name for trial in request.plan.trials)
    if whole is not None:
        sweep, valid = whole
        left = request.describe_work(sweep.record().plan, valid, len(names) - valid)
        caller.voice.line(f"sweep {sweep.id} goes on")
        caller.voice.line(f"{left}; no node was asked")
        return done(sweep, measured(sweep), names)
    from orchestrator.sweeping import campaign as campaigns
    from orchestrator.sweeping import loop

    with (
        campaigns.HeldNodes(store, caller) as own,
        (nodes or own).open([request]) as (campaign,),
    ):
        loop.run_trials(campaign)
        resume.note_end(campaign.sweep)
        return done(campaign.sweep, measured(campaign.sweep, strict=options.strict), names)


def submit_job(store: Store, request: Requested, voice: Voice) -> int | None:
    """Submit a sweep to Slurm and follow its job; return its exit code, or None inside a job.

    Raises:
        UnfitError: its image was not prepared, and no job that may be preparing it lives.
            WALLTIME; no trial fits into a job's time.
    """
    from orchestrator.submitting import jobs, submit

    if not submit.is_needed(request.cluster):
        return None
    request.refuse_short()
    try:
        request.refuse_unprepared()
    except errors.UnfitError:
        if not jobs.list_alive(store, request.cluster):
            raise
    options = request.options
    return submit.run(store, request.cluster, voice, detach=options.detach, requeue=options.requeue)
