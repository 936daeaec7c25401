"""Copy the files of an attempt from its nodes, byte for byte."""

import contextlib
import hashlib
from collections.abc import Callable
from pathlib import Path

from orchestrator import errors
from orchestrator.fleet import ask_all
from orchestrator.model.attempt import Attempt, TaskEnd
from orchestrator.model.plan import Task
from orchestrator.model.problem import Problem
from orchestrator.retries import LOG_COPIES
from orchestrator.schedulers import Scheduler
from orchestrator.state.files import replacing, write
from orchestrator.state.sweep import Sweep

SMALL = ("err", "exit", "end", "go")
OBSERVED = ("state", "gpus")
MOST_OBSERVED_BYTES = 64 << 20  # of one file; the observer itself writes no more


class _Torn(Exception):
    """The copy of a log has another size or sha256 than its supervisor recorded."""


def bring(
    sweep: Sweep,
    scheduler: Scheduler,
    attempt: Attempt,
    ends: tuple[TaskEnd, ...],
    cleared: Callable[[], None] = lambda: None,
) -> tuple[Problem, ...]:
    """Copy every task's files into the sweep's folder.

    The sha256 that the supervisor recorded on the node decides whether a log is whole. When this
    returns, the copies are synced to disk, and the nodes' files may be removed.

    Args:
        ends: how tasks ended; empty where that is not known, and then no sha256 is compared.
        cleared: returns once nothing of the attempt is left on its nodes, observers included.

    Returns:
        A problem LOG-COPY per task whose files could not be copied whole.

    Raises:
        StoreError: this machine cannot write them; those on the nodes are untouched.
    """
    target = sweep.attempt_folder(attempt.trial, attempt.number)
    tasks = {task.node: task for task in attempt.tasks if _elsewhere(attempt, task, target)}
    end_on = {end.node: end for end in ends}

    def copy(node: str) -> None:
        files = _Copy(scheduler, attempt, tasks[node], target)
        if files.bring(end_on.get(node)):
            cleared()
            files.bring_observed()

    answers = ask_all(list(tasks), copy)
    for answer in answers:
        if answer.error is not None and answer.error.code.startswith("STORE-"):
            answer.error.where.pop("node", None)  # it is this machine that cannot keep it
            raise answer.error
    return tuple(
        Problem("LOG-COPY", f"node {answer.node}: {answer.error.cause}")
        for answer in answers
        if answer.error is not None
    )


def _elsewhere(attempt: Attempt, task: Task, target: Path) -> bool:
    return attempt.folder(task) != str(target.resolve())


class _Copy:
    """Copy one task's files to this machine."""

    def __init__(self, scheduler: Scheduler, attempt: Attempt, task: Task, target: Path) -> None:
        self._scheduler, self._attempt, self._task = scheduler, attempt, task
        self._target = target
        self._name = f"r{task.node_rank}"

    def bring(self, end: TaskEnd | None) -> bool:
        """Copy what its supervisor left; False if its program never started.

        Raises:
            NodeError: LOG-COPY; or the node does not answer.
        """
        for name in SMALL:
            content = self._read(name)
            if content is not None:
                write(self._target / f"{self._name}.{name}", content)
        if end is None and self._read("log") is None:
            return False
        if not any(self._fetch(end) for _ in range(LOG_COPIES)):
            raise errors.NodeError(
                f"{self._attempt.folder(self._task)}/{self._name}.log was copied {LOG_COPIES}"
                " times; no copy has the sha256 that its supervisor recorded",
                code="LOG-COPY",
                node=self._task.node,
            )
        return True

    def bring_observed(self) -> None:
        """Copy what the observer recorded of the node; a trial is valid without it."""
        for name in OBSERVED:
            content = bytearray()
            while len(content) < MOST_OBSERVED_BYTES and (piece := self._read(name, len(content))):
                content += piece
            if content:
                write(self._target / f"{self._name}.{name}", bytes(content[:MOST_OBSERVED_BYTES]))

    def _read(self, name: str, offset: int = 0) -> bytes | None:
        path = f"{self._name}.{name}"
        return self._scheduler.read(self._attempt, self._task, path, offset)

    def _fetch(self, end: TaskEnd | None) -> bool:
        """Copy the log in pieces; return False, and keep nothing, if its sha256 differs."""
        digest, offset = hashlib.sha256(), 0
        most = self._attempt.log_bytes  # a lost supervisor has not cut it
        with contextlib.suppress(_Torn), replacing(self._target / f"{self._name}.log") as file:
            while offset < most and (piece := (self._read("log", offset) or b"")[: most - offset]):
                digest.update(piece)
                file.write(piece)
                offset += len(piece)
            if end and end.sha256 and (offset, digest.hexdigest()) != (end.size_bytes, end.sha256):
                raise _Torn
            return True
        return False
