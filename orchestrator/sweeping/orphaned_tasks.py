"""What sweeps whose controllers are gone may have left running."""

import contextlib

from orchestrator import errors
from orchestrator.state.store import Store
from orchestrator.state.sweep import Sweep
from orchestrator.sweeping import observed_sweep
from orchestrator.sweeping.requested import Requested


def sweeps_on(store: Store, cluster: str) -> list[Sweep]:
    """Sweeps of this state folder on the cluster of that name, newest first."""
    return [sweep for sweep in store.sweeps() if sweep.record().cluster == cluster]


def refuse_left(store: Store) -> None:
    """Raise what earlier sweeps may have left running, for a sweep that was stopped at its start.

    Raises:
        LeftoverError: tasks of this state folder's sweeps may still run without a controller.
    """
    if left := of(store, None):
        raise leftover(left)


def of(store: Store, requested: Requested | None) -> list[str]:
    """Tasks that may still run without a controller, such as ``dlp-SWEEP-TRIAL-a1-r0 on vs001``.

    Args:
        requested: look at sweeps on its cluster only; None for all sweeps.
    """
    sweeps = sweeps_on(store, requested.cluster.name) if requested else store.sweeps()
    left: list[str] = []
    for sweep in sweeps:
        with contextlib.suppress(errors.StoreError):  # of a damaged one nobody knows
            if sweep.lock().holder() is None:
                open_attempts = observed_sweep.Running.from_sweep(sweep).open_attempts()
                left += [
                    f"{attempt.token(task)} on {task.node}"
                    for attempt in open_attempts
                    for task in attempt.tasks
                ]
    return left


def leftover(left: list[str]) -> errors.LeftoverError:
    """The error for tasks that may still run."""
    return errors.LeftoverError(
        f"exited at once; {', '.join(left)} may still run",
        code="LEFTOVER",
        fix="end it with `dlperf-orch stop`, or run the same command again: it adopts what runs",
    )
