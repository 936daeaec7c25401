"""Run a sweep from its request to its report."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from orchestrator import errors
from orchestrator.collecting.sweep import measured
from orchestrator.model.report import Report
from orchestrator.signals import Abandoned, Stopped
from orchestrator.state.store import Store
from orchestrator.state.sweep import Sweep
from orchestrator.sweeping import observed_sweep, resume
from orchestrator.sweeping.requested import (
    Caller,
    Requested,
    SweepOptions,
    counted_words,
    nothing_left,
    resolve,
)

if TYPE_CHECKING:  # half of what a finished sweep would load
    from orchestrator.sweeping.under_way import HeldNodes

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
    request = None
    try:
        request = resolve(store, options, caller.voice)
        whole = resume.find_finished(store, request)
        if whole is None and (answer := elsewhere(request)) is not None:
            return answer
        request.refuse_unprepared()
        request.say_too_big(caller.voice)
        names = frozenset(trial.name for trial in request.plan.trials)
        if whole is not None:
            sweep, valid = whole
            plan = sweep.record().plan
            counted = counted_words(len(plan.trials), len(names), valid, len(names) - valid)
            caller.voice.line(f"sweep {sweep.id} goes on")
            caller.voice.line(f"{counted}, {nothing_left(plan, request.plan)}; no node was asked")
            return done(sweep, measured(sweep), names)
        from orchestrator.sweeping import under_way

        with under_way.HeldNodes(store, caller) as own:
            return under_way.run(
                request, caller, nodes or own, lambda ran, seen: done(ran, seen, names)
            )
    except (Abandoned, Stopped) as end:
        observed_sweep.refuse_left(store, request.cluster.name if request else None)
        if isinstance(end, Stopped):
            raise
        raise errors.Interrupted(caller.signals.received, less=options.not_to_resume) from None
