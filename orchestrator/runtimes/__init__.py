"""Runtimes: tasks run as Docker containers or as plain processes on a node.

Each task runs under a supervisor in POSIX sh, ``supervise.sh``, which outlives the controller. To
add a way of running tasks, write a class here that implements ``Runtime``.
"""

from dataclasses import dataclass
from typing import Literal, Protocol

from orchestrator.model.attempt import Attempt, Limits, TaskEnd
from orchestrator.model.plan import Task


@dataclass(frozen=True, slots=True)
class TaskState:
    """The present state of a task.

    Args:
        phase: waiting: at its gate; lost: its supervisor is gone and left no exit reason.
        end: of phases ended and lost. ``end.why`` of a lost one is lost, rebooted, or for
            containers oom, killed or docker-restarted.
    """

    phase: Literal["absent", "waiting", "running", "ended", "lost"]
    end: TaskEnd | None = None


class Runtime(Protocol):
    """Runs tasks on one node. Every method may raise NodeError, where the node does not answer."""

    def create(self, attempt: Attempt, task: Task, limits: Limits) -> None:
        """Bring the task to its gate; returns at once, ``inspect`` says when it waits there."""

    def start(self, attempt: Attempt, task: Task) -> bool:
        """Open the task's gate; False if nothing waits there."""

    def inspect(self, attempt: Attempt, task: Task) -> TaskState: ...

    def output(self, attempt: Attempt, task: Task, offset: int) -> bytes:
        """Read the task's raw log from ``offset``, as far as it is written; at most a few MiB."""

    def stop(self, attempt: Attempt, task: Task) -> None:
        """Ask the task to end; returns at once, ``inspect`` says when it has."""

    def remove(self, attempt: Attempt, task: Task) -> None:
        """End every process of the task at once; raise LeftoverError if one is left."""
