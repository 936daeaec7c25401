"""Tasks of a gang that is one step of Slurm's: their files, in a folder that all nodes see."""

import shlex
from collections.abc import Mapping
from functools import cache
from importlib import resources

from orchestrator.model.attempt import Attempt, Limits
from orchestrator.model.plan import Task
from orchestrator.runtimes import TaskState, observer
from orchestrator.runtimes._files import TaskFiles, script, supervised
from orchestrator.transports import Transport


@cache
def holder() -> bytes:
    """Return the text of the program that every task of a step runs."""
    return resources.files("orchestrator.runtimes").joinpath("step.sh").read_bytes()


class StepFiles:
    """The files of tasks; reading and writing them needs no step."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def write(self, attempt: Attempt, task: Task, text: str) -> None:
        """Write the files that start a task.

        Args:
            text: a script that becomes the task's supervisor, or what stands for it.
        """
        folder = attempt.folder(task)
        if task == attempt.tasks[0]:  # all share the folder
            self._transport.put(script(), f"{folder}/supervise.sh")
            self._transport.put(observer.script().encode(), f"{folder}/observe.sh")
            self._transport.put(holder(), f"{folder}/step.sh")
        self._transport.put(text.encode(), f"{folder}/r{task.node_rank}.task")

    def of(self, attempt: Attempt, task: Task) -> TaskFiles:
        """Return the files that the task's supervisor writes."""
        return TaskFiles(self._transport, attempt, task)

    def state(self, attempt: Attempt, task: Task) -> TaskState:
        """Determine the state from its files alone; whether its step runs is not known here."""
        files = self.of(attempt, task)
        end, supervisor = files.end(), files.supervisor()
        if end is not None:
            return TaskState("ended", end)
        if supervisor is None:
            return TaskState("absent")
        if files.has("gone"):
            return TaskState("lost", files.make_lost_end("lost"))
        return TaskState("running" if files.has("go") else "waiting")


def task_script(attempt: Attempt, task: Task, limits: Limits, inherited: Mapping[str, str]) -> str:
    """Return the script that becomes a task's supervisor, on its node."""
    token, observing = attempt.token(task), observer.arguments(attempt, task, limits)
    env = {**inherited, **task.env, "DLPERF_SUPERVISOR": token, "DLPERF_JOB": attempt.handle}
    words = (
        *("env", "-i", *(f"{name}={value}" for name, value in env.items())),
        *supervised(attempt, task, limits, task.argv, observing),
    )
    return f"umask 077\nexec {shlex.join(words)}\n"
