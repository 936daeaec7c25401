"""How a task in a container ended: by its supervisor's exit reason, or the engine's without one."""

from dataclasses import replace

from orchestrator.model.process import ProcessIdentity
from orchestrator.runtimes import TaskState
from orchestrator.runtimes._files import TaskFiles
from orchestrator.runtimes.containers import Containers, ContainerState

KILLED = 137


def verdict(
    files: TaskFiles,
    supervisor: ProcessIdentity | None,
    container: ContainerState | None,
    containers: Containers,
) -> TaskState:
    """Return the state of a task whose container has ended or does not exist."""
    end = files.end()
    if end is None and supervisor is None and container is None:
        return TaskState("absent")
    if end is None:
        why = _why(files, supervisor, container, containers)
        status = container.exit_code if container and why != "lost" else None
        return TaskState("lost", files.make_lost_end(why, status))
    # A rank that the kernel ended for want of memory, while the program went on and exits with 0.
    if container is not None and container.oom_killed:
        return TaskState("ended", replace(end, why="oom"))
    # An engine that goes down or starts anew asks what it finds running to end.
    if end.why == "stopped" and container is not None and containers.restarted_since(container):
        return TaskState("ended", replace(end, why="docker-restarted"))
    return TaskState("ended", end)


def _why(
    files: TaskFiles,
    supervisor: ProcessIdentity | None,
    container: ContainerState | None,
    containers: Containers,
) -> str:
    if supervisor is not None and files.rebooted(supervisor):
        return "rebooted"
    if container is None:
        return "lost"
    if container.oom_killed:
        return "oom"
    if container.exit_code != KILLED:
        return "lost"
    return "docker-restarted" if containers.restarted_since(container) else "killed"
