"""A sweep as others than its controller see it: its record, its states, what is open."""

from dataclasses import dataclass

from orchestrator import schedulers
from orchestrator.model.attempt import Attempt
from orchestrator.model.cluster import Cluster
from orchestrator.model.history import History
from orchestrator.model.plan import Plan
from orchestrator.schedulers import Scheduler
from orchestrator.state.store import Store, Sweep


@dataclass(frozen=True, slots=True)
class Running:
    """A sweep with the cluster and the plan that it was started with."""

    sweep: Sweep
    cluster: Cluster
    plan: Plan

    @classmethod
    def of(cls, store: Store, sweep_id: str | None) -> "Running":
        """The sweep of that id, else the newest.

        Raises:
            UsageError: there is none.
            StoreError: its record does not hold.
        """
        sweep = store.sweep(sweep_id) if sweep_id else store.newest()
        return cls.from_sweep(sweep)

    @classmethod
    def from_sweep(cls, sweep: Sweep) -> "Running":
        """What the record of a sweep says.

        Raises:
            StoreError: it does not hold.
        """
        record = sweep.record()
        return cls(sweep, record.inventory, record.plan)

    def states(self) -> dict[str, str]:
        """By trial name in the order of the plan: its state; ``running`` while one is open."""
        known = self.sweep.histories()
        return {
            trial.name: "running" if history.open else history.state
            for trial in self.plan.trials
            for history in (known.get(trial.name, History()),)
        }

    def open_attempts(self) -> list[Attempt]:
        """Attempts that were begun and have no outcome, in the order of the plan.

        Raises:
            StoreError: it is not told any more what one of them started.
        """
        known = self.sweep.histories()
        return [
            self.sweep.attempt(trial.name, number)
            for trial in self.plan.trials
            for number in known.get(trial.name, History()).open
        ]

    def scheduler(self) -> Scheduler:
        """That of its cluster."""
        return schedulers.reach(self.cluster, self.sweep.folder.parent.parent, lambda: False)
