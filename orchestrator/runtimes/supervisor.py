"""A task's supervisor and observer on its node: their programs, command lines and files."""

import shlex
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Any

from orchestrator import errors
from orchestrator.deadlines import COMMAND_S
from orchestrator.model.attempt import Attempt, Limits, TaskEnd
from orchestrator.model.plan import Task
from orchestrator.model.process import ProcessIdentity
from orchestrator.processes import BOOT_ID
from orchestrator.transports import Transport

SUPERVISE, OBSERVE, STEP = "supervise.sh", "observe.sh", "step.sh"


@cache
def program(name: str) -> bytes:
    """Return the text of a shell program beside this module."""
    return resources.files("orchestrator.runtimes").joinpath(name).read_bytes()


def put_programs(transport: Transport, folder: str, *names: str) -> None:
    """Write shell programs into the folder of an attempt."""
    for name in names:
        transport.put(program(name), f"{folder}/{name}")


def supervised(
    attempt: Attempt, task: Task, limits: Limits, argv: Sequence[str], *, observed: bool = True
) -> tuple[str, ...]:
    """Return the command line of a task's supervisor, whose program text lies in its folder.

    Args:
        observed: whether the supervisor starts the observer; else ``observer`` has to.
    """
    folder, observing = attempt.folder(task), _observer_words(attempt, task, limits)
    return (
        *("sh", f"{folder}/{SUPERVISE}", folder, str(task.node_rank), attempt.token(task)),
        *(f"{limits.time_s:g}", f"{limits.grace_s:g}", str(limits.log_bytes)),
        " ".join(observing) if observed else "",
        *argv,
    )


def observer(attempt: Attempt, task: Task, limits: Limits) -> str:
    """Return the shell command that starts the observer of a task on its node.

    Nothing of a trial depends on it. It waits until the supervisor has started.
    """
    folder, rank = attempt.folder(task), str(task.node_rank)
    words = shlex.join((folder, rank, *_observer_words(attempt, task, limits)))
    # Not from a file in the task's folder, to which its container can write.
    text = shlex.quote(f"{{\nexec </dev/null\n{program(OBSERVE).decode()}\n}}\n")
    mark = f"DLPERF_OBSERVER={attempt.token(task)}"
    return f"umask 077\nprintf %s {text} | {mark} setsid -f sh -s {words} >/dev/null 2>&1\n"


def _observer_words(attempt: Attempt, task: Task, limits: Limits) -> tuple[str, str, str]:
    seconds = limits.create_s + limits.time_s + limits.grace_s
    return attempt.sweep, f"{seconds:.0f}", ",".join(str(index) for index in task.gpus)


# $1: a FIFO. One that is opened for reading too makes nobody wait for a reader; what was opened is
# looked at again by its descriptor.
OPEN_GATE = """
[ -p "$1" ] && [ ! -L "$1" ] && exec 4<>"$1" 5>>"$1" 4<&- || exit 1
trap '' PIPE
[ -p /proc/self/fd/5 ] && echo go >&5
"""


class TaskFiles:
    """One task's files, read through its node's transport."""

    def __init__(self, transport: Transport, attempt: Attempt, task: Task) -> None:
        self._transport = transport
        self._task = task
        self._base = f"{attempt.folder(task)}/r{task.node_rank}"

    def path(self, name: str) -> str:
        """Return a task file's path; ``name`` is pid, gate, go, log, exit, end or err."""
        return f"{self._base}.{name}"

    def open_gate(self) -> bool:
        """Write a line into the task's gate; return False if no task waits there."""
        words = ("sh", "-c", OPEN_GATE, "sh", self.path("gate"))
        return self._transport.run(words, timeout_s=COMMAND_S).exit_code == 0

    def supervisor(self) -> ProcessIdentity | None:
        """Return the task's supervisor; None until it has started."""
        words = self._words("pid")
        if not words:
            return None
        parsed = self._parse("pid", words, "pid, start time and boot id", int, str, str)
        return ProcessIdentity(self._task.node, *parsed)

    def has(self, name: str) -> bool:
        """Return whether a file of the task has content, as ``go`` has after its gate."""
        return bool(self._words(name))

    def text(self, name: str) -> str:
        """Return a small file's words, separated by single spaces; empty if there is no file."""
        return " ".join(self._words(name))

    def end(self) -> TaskEnd | None:
        """Return how the task ended, or None if it has not."""
        words = self._words("end")  # it is written last
        if not words:
            return None
        size_bytes, sha256 = self._parse("end", words, "size and sha256", int, str)
        words = self._words("exit")
        status, reason = self._parse("exit", words, "status and reason", int, str)
        return self.make_end(reason, status, size_bytes, sha256)

    def output(self, offset: int) -> bytes:
        """Read the task's raw log from ``offset``, at most a few MiB."""
        return self._transport.get(self.path("log"), offset, own=True) or b""

    def alive(self, supervisor: ProcessIdentity, pid: str) -> bool:
        """Return whether the node's process ``pid`` is this supervisor and has not ended."""
        stat = self._transport.get(f"/proc/{pid}/stat") or b""
        return supervisor.is_shown_by(stat, self._boot())

    def rebooted(self, supervisor: ProcessIdentity) -> bool:
        return self._boot() != supervisor.boot

    def _boot(self) -> str:
        return (self._transport.get(BOOT_ID) or b"").decode().strip()

    def make_end(
        self, why: str, status: int | None = None, size_bytes: int = 0, sha256: str = ""
    ) -> TaskEnd:
        """Return an end, by default of a task whose supervisor left no exit reason."""
        words = self._words("go")
        went = self._parse("go", words, "a time", float) if words else [None]
        return TaskEnd(
            node=self._task.node,
            node_rank=self._task.node_rank,
            status=status,
            why=why,
            size_bytes=size_bytes,
            sha256=sha256,
            went_at=went[0],
        )

    def _parse(self, name: str, words: Sequence[str], needed: str, *types: type) -> list[Any]:
        """Return the words of a file, converted; raise START if they have another form."""
        try:
            return [convert(word) for convert, word in zip(types, words, strict=True)]
        except ValueError as error:
            raise errors.NodeError(
                f"{self.path(name)}: {' '.join(words)!r}; needed {needed}",
                code="START",
                node=self._task.node,
            ) from error

    def _words(self, name: str) -> list[str]:
        content = self._transport.get(self.path(name), own=True)
        return (content or b"").decode(errors="replace").split()
