"""The observer that runs beside a task on its node; nothing of a trial depends on it."""

import contextlib
import shlex
from functools import cache
from importlib import resources

from orchestrator import errors
from orchestrator.deadlines import SUPERVISOR_S
from orchestrator.model.attempt import Attempt, Limits
from orchestrator.model.plan import Task
from orchestrator.transports import Transport


@cache
def script() -> str:
    return resources.files("orchestrator.runtimes").joinpath("observe.sh").read_text()


def arguments(attempt: Attempt, task: Task, limits: Limits) -> str:
    """Return the words that ``supervise.sh`` takes to observe its own task by ``observe.sh``."""
    seconds = limits.create_s + limits.time_s + limits.grace_s
    return f"{attempt.sweep} {seconds:.0f} {','.join(str(index) for index in task.gpus)}"


def command(attempt: Attempt, task: Task, limits: Limits, pid: str) -> str:
    """Return the shell command that starts the observer of a task on its node.

    Args:
        pid: the supervisor's on the node, in the shell's words; empty if its file tells it.
    """
    sweep, seconds, gpus = arguments(attempt, task, limits).split(" ")
    words = shlex.join((attempt.folder(task), str(task.node_rank), sweep, seconds, gpus))
    # Not from a file in the task's folder, to which its container can write.
    text = shlex.quote(f"{{\nexec </dev/null\n{script()}\n}}\n")
    mark = f"DLPERF_OBSERVER={attempt.token(task)}"
    return f'umask 077\nprintf %s {text} | {mark} setsid -f sh -s {words} "{pid}" >/dev/null 2>&1\n'


def start(transport: Transport, starting: str) -> None:
    """Start an observer on a node; a node that cannot do it is measured all the same."""
    with contextlib.suppress(errors.DlperfError):
        transport.run(("sh", "-c", starting, "sh"), timeout_s=SUPERVISOR_S)
