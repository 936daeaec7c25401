"""Tasks of a gang that is one step of Slurm's: their files, in a folder that all nodes see.

A task is a process, a container from an image file, or a container of Docker's. The engine starts
its containers outside of the step, so what ends the step does not end them: a signal is passed on
by the docker command, and where that is killed, the container ends itself.
"""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from orchestrator import errors
from orchestrator.model.attempt import Attempt, Limits
from orchestrator.model.plan import Task
from orchestrator.runtimes import TaskState, _causes, image_files, supervisor
from orchestrator.runtimes.grants import pairs, run_words
from orchestrator.runtimes.image_files import ImageFiles
from orchestrator.runtimes.process import inherited_environment
from orchestrator.runtimes.supervisor import OBSERVE, STEP, SUPERVISE, TaskFiles, supervised
from orchestrator.transports import Transport

REFUSED = ("125", "126", "127")  # exit statuses of the docker command without a container
# In the container, before the supervisor takes its place: standard input is the docker command's,
# and ends with it, also when that is killed. Then the supervisor is asked to end.
TIED = 'exec 3<&0 </dev/null; (cat <&3 >/dev/null; kill -TERM $$) & exec 3<&-; exec "$@"'


def write(transport: Transport, attempt: Attempt, task: Task, script: str) -> None:
    """Write the files that start a task; ``script`` becomes its supervisor."""
    folder = attempt.folder(task)
    if task == attempt.tasks[0]:  # all share the folder
        supervisor.put_programs(transport, folder, SUPERVISE, OBSERVE, STEP)
    transport.put(script.encode(), f"{folder}/r{task.node_rank}.task")


def look(files: TaskFiles) -> TaskState:
    """Determine a task's state from its files alone; whether its step runs is not known here."""
    end, identity = files.end(), files.supervisor()
    if end is not None:
        return TaskState("ended", end)
    if identity is None:
        return TaskState("absent")
    if files.has("gone"):
        return TaskState("lost", files.make_end("lost"))
    return TaskState("running" if files.has("go") else "waiting")


def process_script(attempt: Attempt, task: Task, limits: Limits) -> str:
    """Return the script that becomes a task's supervisor, on its node."""
    env = {**inherited_environment(), **task.env, **_marks(attempt, task)}
    return _become(("env", "-i", *pairs(env), *supervised(attempt, task, limits, task.argv)))


def image_script(way: ImageFiles, attempt: Attempt, task: Task, limits: Limits) -> str:
    """Return the script that becomes a task's supervisor, in a container from an image file."""
    env = {"HOME": attempt.folder(task), **task.env, **_marks(attempt, task)}
    # A supervisor counts from its own start, and others may unpack their image for long after it;
    # the controller, without which there is no step, counts from the gate.
    longer = replace(limits, time_s=limits.create_s + limits.time_s)
    words = (
        *way.words(image_files.of_task(attempt, task)),
        *image_files.proved(attempt.image),
        *("env", *pairs(env), *supervised(attempt, task, longer, task.argv, observed=False)),
    )
    return _become(words, supervisor.observer(attempt, task, limits))


def docker_script(
    attempt: Attempt, task: Task, limits: Limits, docker: Sequence[str], request: Mapping[str, Any]
) -> str:
    """Return the script that becomes the docker command of a task, on its node."""
    tied = {**request, "Entrypoint": ("sh", "-c", TIED, "sh", *request["Entrypoint"])}
    name = f"--name={attempt.token(task)}"
    words = (*docker, *run_words(tied, "--interactive", name))
    fifo = shlex.quote(f"{attempt.folder(task)}/r{task.node_rank}.in")
    # A standard input that never ends by itself.
    held_open = f"mkfifo {fifo} && exec <>{fifo}\nrm -f {fifo}\n"
    return _become(words, supervisor.observer(attempt, task, limits), held_open)


def docker_refusal(files: TaskFiles, task: Task) -> errors.DlperfError | None:
    """Return why the engine made no container, from the docker command's files; None if it did."""
    if files.supervisor() is not None or files.text("gone") not in REFUSED:
        return None
    refused = _causes.refusal(files.text("err"), task.node)
    if refused.code == "IMAGE-MISSING":  # its id is no name that the user could correct
        refused.fix = _causes.PROVISION_FIX
    return refused


def _marks(attempt: Attempt, task: Task) -> dict[str, str]:
    return {"DLPERF_SUPERVISOR": attempt.token(task), "DLPERF_JOB": attempt.handle}


def _become(words: Sequence[str], observing: str = "", before: str = "") -> str:
    beside = f"(\n{observing}) >/dev/null 2>&1 &\n" if observing else ""
    return f"umask 077\n{beside}{before}exec {shlex.join(words)}\n"
