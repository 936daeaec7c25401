"""Read a sweep from its files, for commands other than its controller."""

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
        """Return the sweep of that name, or the newest; see ``Store.sweep`` for errors."""
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


def list_left(
    store: Store, cluster: str | None, *, held: bool = False
) -> Iterator[tuple[Sweep, list[Attempt], errors.DlperfError | None]]:
    """Yield this state folder's sweeps, newest first, each with its attempts without an outcome.

    If its files cannot be read, the error is there instead of the attempts; a sweep without a
    readable record is yielded too, since it may be of this cluster. With ``held``, sweeps whose
    lock is held are yielded too.
    """
    for sweep in store.sweeps():
        # The lock first: a sweep may end between both looks.
        if cluster not in (None, sweep.record().cluster) or (not held and sweep.lock().holder()):
            continue
        attempts, unreadable = list[Attempt](), None
        try:
            attempts = sweep.open_attempts()
        except errors.DlperfError as error:
            unreadable = error
        yield sweep, attempts, unreadable
    for sweep_id, why in store.unreadable().items():
        yield Sweep(store.root / "sweeps" / sweep_id), [], why


def refuse_left(store: Store, cluster: str | None = None) -> None:
    """Raise LeftoverError if earlier sweeps may have left tasks running without a controller."""
    if left := orphaned_tasks(store, cluster):
        raise errors.LeftoverError(
            f"exited at once; {', '.join(left)} may still run",
            code="LEFTOVER",
            fix="end it with `dlperf-orch stop`, or run the same command again: it adopts what"
            " runs",
        )


def orphaned_tasks(store: Store, cluster: str | None) -> list[str]:
    """Return tasks that may run without a controller: ``dlp-SWEEP-TRIAL-a1-r0 on vs001``."""
    return [
        f"{attempt.token(task)} on {task.node}"
        for _, attempts, _ in list_left(store, cluster)
        for attempt in attempts
        for task in attempt.tasks
    ]
