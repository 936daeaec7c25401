"""What tasks run as on a node."""

from dataclasses import dataclass
from typing import Literal, Protocol

from orchestrator.model.attempt import Attempt, Limits, TaskEnd
from orchestrator.model.plan import Task


@dataclass(frozen=True, slots=True)
class TaskState:
    """What is known of a task now; ``end`` once it has ended.

    absent: nothing was ever created; waiting: at its gate; lost: its supervisor is gone and
    left no word, and ``end.why`` says what is known instead: lost, rebooted, and of containers
    also oom, killed and docker-restarted.
    """

    phase: Literal["absent", "waiting", "running", "ended", "lost"]
    end: TaskEnd | None = None


class Runtime(Protocol):
    """One node's way of running tasks."""

    def create(self, attempt: Attempt, task: Task, limits: Limits) -> None:
        """Bring the task to its gate; returns at once, ``inspect`` says when it waits there."""

    def start(self, attempt: Attempt, task: Task) -> bool:
        """Open the task's gate; False if nothing waits there."""

    def inspect(self, attempt: Attempt, task: Task) -> TaskState:
        """What is known of the task now."""

    def output(self, attempt: Attempt, task: Task, offset: int) -> bytes:
        """The task's raw log from ``offset`` on, as far as it is there; at most a few MiB."""

    def stop(self, attempt: Attempt, task: Task) -> None:
        """Ask the task to end; returns at once, ``inspect`` says when it has."""

    def remove(self, attempt: Attempt, task: Task) -> None:
        """End every process of the task at once and make sure that none is left.

        Raises:
            LeftoverError: some would not go.
        """
