"""The observer that runs beside a task on its node; nothing of a trial depends on it."""

import contextlib
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
env "DLPERF_OBSERVER=$1" setsid -f sh -c "$2" observe.sh "$3" "$4" "$5" "$6" "$7" "$8" \
    </dev/null >/dev/null 2>&1
shift 8
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


def arguments(
    attempt: Attempt, task: Task, limits: Limits, pid: int | None = None
) -> tuple[str, ...]:
    """What ``START`` takes to observe a task, until the task's supervisor has ended.

    Args:
        pid: of the supervisor on the node; None where its file there says it.
    """
    seconds = limits.create_s + limits.time_s + limits.grace_s
    return (
        *(attempt.token(task), script(), attempt.folder(task), str(task.node_rank)),
        *(attempt.sweep, f"{seconds:.0f}", ",".join(str(index) for index in task.gpus)),
        "" if pid is None else str(pid),
    )


def start(transport: Transport, given: tuple[str, ...]) -> None:
    """Start the observer on a node; a node that cannot do it is measured all the same."""
    with contextlib.suppress(errors.DlperfError):
        transport.run(("sh", "-c", START, "sh", *given), timeout_s=SUPERVISOR_S)


def end(transport: Transport, attempt: Attempt, task: Task) -> None:
    """End the observer of a task at once, so that its files change no more."""
    with contextlib.suppress(errors.DlperfError):
        transport.run(("sh", "-c", KILL, "sh", attempt.token(task)), timeout_s=SUPERVISOR_S)
