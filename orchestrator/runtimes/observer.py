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

# Starts it in a session of its own; $1 to $8 are ``arguments``.
START = """
umask 077
DLPERF_OBSERVER=$1 setsid -f sh -c "$2" observe.sh "$3" "$4" "$5" "$6" "$7" "$8" \
    </dev/null >/dev/null 2>&1
"""
# Its processes are known by their environment alone. $1: token.
KILL = """
for pid in $(grep -lszxF "DLPERF_OBSERVER=$1" /proc/[0-9]*/environ | cut -d/ -f3); do
    kill -KILL "$pid" 2>/dev/null
done
true
"""


@cache
def script() -> str:
    """The observer's own program text."""
    return resources.files("orchestrator.runtimes").joinpath("observe.sh").read_text()


def arguments(attempt: Attempt, task: Task, limits: Limits) -> tuple[str, ...]:
    """What ``START`` takes to observe a task whose supervisor's file says its pid on the node."""
    seconds = limits.create_s + limits.time_s + limits.grace_s
    return (
        *(attempt.token(task), script(), attempt.folder(task), str(task.node_rank)),
        *(attempt.sweep, f"{seconds:.0f}", ",".join(str(index) for index in task.gpus)),
        "",
    )


def beside(attempt: Attempt, task: Task, limits: Limits) -> str:
    """The script with which a supervisor observes its own task; it takes the supervisor's pid."""
    _, text, *rest, _ = arguments(attempt, task, limits)
    return f'set -- {shlex.join(rest)} "$1"\n{text}'


def command(attempt: Attempt, task: Task, limits: Limits, pid: str) -> tuple[str, ...]:
    """What runs the observer of a task on its node.

    Args:
        pid: of the supervisor on the node.
    """
    token, text, *rest, _ = arguments(attempt, task, limits)
    # Not from a file in the task's folder, to which its container can write.
    return ("env", f"DLPERF_OBSERVER={token}", "sh", "-c", text, "observe.sh", *rest, pid)


def start(transport: Transport, words: tuple[str, ...]) -> None:
    """Start an observer on a node; a node that cannot do it is measured all the same."""
    with contextlib.suppress(errors.DlperfError):
        transport.begin(words)


def end(transport: Transport, attempt: Attempt, task: Task) -> None:
    """See that the observer of an ended task has ended too, so that its files change no more."""
    with contextlib.suppress(errors.DlperfError):
        pid = transport.get_own(f"{attempt.folder(task)}/r{task.node_rank}.observer") or b""
        if pid.strip().isdigit() and transport.get(f"/proc/{int(pid)}/stat") is None:
            return
        transport.run(("sh", "-c", KILL, "sh", attempt.token(task)), timeout_s=SUPERVISOR_S)
