"""Read a sweep from its files, for commands other than its controller."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator import errors
from orchestrator.collecting import evidence
from orchestrator.model.attempt import Attempt
from orchestrator.model.cluster import Cluster
from orchestrator.model.plan import Plan
from orchestrator.model.result import NOT_NEEDED
from orchestrator.model.sweep import History
from orchestrator.state.store import Store
from orchestrator.state.sweep import Sweep

if TYPE_CHECKING:  # what reaches nodes is not loaded where only files are read
    from orchestrator.schedulers.scheduler import Scheduler


@dataclass(frozen=True, slots=True)
class Running:
    """Hold a sweep with its plan and the cluster that it last ran on, by its record."""

    sweep: Sweep
    cluster: Cluster
    plan: Plan

    @classmethod
    def of(cls, store: Store, sweep_id: str | None) -> "Running":
        """Return the sweep of that name (see ``Store.sweep``), or the newest.

        Raises:
            UsageError: there is none.
            StoreError: its record is damaged or of another version.
        """
        sweep = store.sweep(sweep_id)
        record = sweep.record()
        return cls(sweep, record.inventory, record.plan)

    def states(self, *, controlled: bool) -> dict[str, str]:
        """Return the states of trials by name, in plan order.

        A trial with an attempt without outcome is ``running`` under a controller, else ``open``.
        A trial that never ended is ``not-needed`` if its case has settled without it.
        """
        begun = "running" if controlled else "open"
        histories = self.sweep.histories()
        rests = evidence.not_needed(self.sweep, self.plan, histories)
        return {
            trial.name: begun
            if (history := histories.get(trial.name, History())).open
            else (NOT_NEEDED if trial.name in rests else history.state)
            for trial in self.plan.trials
        }

    def scheduler(self) -> "Scheduler":
        """Return the scheduler of its cluster; it never stops gangs on its own."""
        from orchestrator.schedulers import choice

        return choice.reach(self.cluster, self.sweep.folder.parent.parent, lambda: False)


def list_open(
    store: Store, cluster: str | None
) -> Iterator[tuple[Sweep, list[Attempt] | errors.DlperfError]]:
    """Yield this state folder's sweeps, newest first, each with its attempts without an outcome.

    In their place stands an error where they cannot be read.

    Args:
        cluster: of sweeps on this cluster only; None for all.
    """
    for sweep in store.sweeps():
        if cluster in (None, sweep.record().cluster):
            try:
                yield sweep, sweep.open_attempts()
            except errors.DlperfError as error:
                yield sweep, error


def refuse_left(store: Store, cluster: str | None = None) -> None:
    """Raise if earlier sweeps may have left tasks running without a controller.

    Raises:
        LeftoverError: names the tasks.
    """
    if left := orphaned_tasks(store, cluster):
        raise errors.LeftoverError(
            f"exited at once; {', '.join(left)} may still run",
            code="LEFTOVER",
            fix="end it with `dlperf-orch stop`, or run the same command again: it adopts what"
            " runs",
        )


def orphaned_tasks(store: Store, cluster: str | None) -> list[str]:
    """Return tasks that may run without a controller, such as ``dlp-SWEEP-TRIAL-a1-r0 on vs001``.

    Args:
        cluster: look at sweeps on this cluster only; None for all sweeps.
    """
    left: list[str] = []
    for sweep in store.sweeps():
        # The lock first: a sweep may end between both looks.
        if cluster not in (None, sweep.record().cluster) or sweep.lock().holder():
            continue
        with contextlib.suppress(errors.DlperfError):  # it cannot be read
            left += [
                f"{attempt.token(task)} on {task.node}"
                for attempt in sweep.open_attempts()
                for task in attempt.tasks
            ]
    return left
