"""A sweep from its request to its report."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from orchestrator import errors
from orchestrator.collecting.sweep import measured
from orchestrator.model.report import Report
from orchestrator.signals import Abandoned, Stopped
from orchestrator.state.store import Store
from orchestrator.state.sweep import Sweep
from orchestrator.sweeping import ended, orphaned_tasks
from orchestrator.sweeping.caller import Caller
from orchestrator.sweeping.requested import (
    Requested,
    SweepOptions,
    counted_words,
    nothing_left,
    requested,
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Ways(Generic[T]):
    """What becomes of a request.

    Args:
        done: given the sweep, what was measured, and the names of the trials of this request.
        elsewhere: asked where something is left to run, before it begins; its answer where the
            request is run elsewhere.
    """

    done: Callable[[Sweep, Report, frozenset[str]], T]
    elsewhere: Callable[[Requested], T | None] = lambda _request: None


def run(store: Store, options: SweepOptions, caller: Caller, ways: Ways[T]) -> T:
    """Run every chosen trial that has no valid outcome yet, then measure; what ``ways`` return.

    Raises:
        Stopped, Interrupted: a signal came; nothing that was started still runs.
        LeftoverError: tasks may still run on nodes.
    """
    request = None
    try:
        request = requested(store, options, caller.voice)
        whole = ended.whole(store, request)
        answer = ways.elsewhere(request) if whole is None else None
        return _run(store, request, caller, ways, whole) if answer is None else answer
    except (Abandoned, Stopped) as end:
        left = orphaned_tasks.of(store, request)
        if left:
            raise orphaned_tasks.leftover(left) from None
        if isinstance(end, Stopped):
            raise
        raise errors.Interrupted(caller.signals.received, less=options.not_to_resume) from None


def _run(
    store: Store,
    request: Requested,
    caller: Caller,
    ways: Ways[T],
    whole: tuple[Sweep, int] | None,
) -> T:
    voice = caller.voice
    request.refuse_unprepared()
    request.say_too_big(voice)
    names = frozenset(trial.name for trial in request.plan.trials)
    if whole is not None:
        sweep, valid = whole
        plan = sweep.record().plan
        counted = counted_words(len(plan.trials), len(names), valid, len(names) - valid)
        voice.line(f"sweep {sweep.id} goes on")
        voice.line(f"{counted}, {nothing_left(plan, request.plan)}; no node was asked")
        return ways.done(sweep, measured(sweep), names)
    from orchestrator.sweeping import under_way  # half of what a finished sweep would load

    return under_way.run(store, request, caller, lambda ran, seen: ways.done(ran, seen, names))
