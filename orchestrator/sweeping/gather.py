"""The files of an attempt, brought here from the nodes, byte for byte, and removed there."""

import contextlib
import hashlib
from pathlib import Path

from orchestrator import errors
from orchestrator.fleet import ask_all
from orchestrator.model.attempt import Attempt, TaskEnd
from orchestrator.model.plan import Plan, Task
from orchestrator.model.problem import Problem
from orchestrator.retries import LOG_COPIES
from orchestrator.schedulers import Scheduler
from orchestrator.state.store import Sweep, replacing, write
from orchestrator.sweeping.campaign import Campaign

SMALL = ("err", "exit", "end", "go")


class _Torn(Exception):
    """A log that came otherwise than its supervisor saw it."""


def bring(
    sweep: Sweep, scheduler: Scheduler, attempt: Attempt, ends: tuple[TaskEnd, ...]
) -> tuple[Problem, ...]:
    """Copy every task's files into the sweep's folder; what did not come whole is a problem.

    The sha256 that the supervisor took on the node decides whether a log is whole. When this
    returns, what came outlives a power cut: the nodes may forget it.

    Raises:
        StoreError, LocalError: this machine cannot keep them; those on the nodes are untouched.
    """
    target = sweep.attempt_folder(attempt.trial, attempt.number)
    tasks = {task.node: task for task in attempt.tasks if _elsewhere(attempt, task, target)}
    known = {end.node: end for end in ends}

    def copy(node: str) -> None:
        _Copy(scheduler, attempt, tasks[node], target).bring(known.get(node))

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


def forget(sweep: Sweep, scheduler: Scheduler, attempt: Attempt) -> None:
    """Remove the attempt's folders from nodes that are elsewhere; `clean` does it later else.

    A folder whose log did not come here stays: it is the only one.
    """
    target = sweep.attempt_folder(attempt.trial, attempt.number)
    ranks = [task.node_rank for task in attempt.tasks]
    scheduler.forget(attempt, [rank for rank in ranks if (target / f"r{rank}.log").is_file()])


def forget_closed(campaign: Campaign, whole: Plan) -> None:
    """Remove from nodes the folders of attempts that ended, where a kill kept us from doing so."""
    trials = {trial.name: trial for trial in whole.trials}
    for name, number in sorted(campaign.scheduler.attempts(campaign.sweep.id)):
        if name in trials and number in campaign.history(trials[name]).closed:
            attempt = campaign.sweep.attempt(name, number)
            forget(campaign.sweep, campaign.scheduler, attempt)


def _elsewhere(attempt: Attempt, task: Task, target: Path) -> bool:
    return attempt.folder(task) != str(target.resolve())


class _Copy:
    """One task's files on their way here."""

    def __init__(self, scheduler: Scheduler, attempt: Attempt, task: Task, target: Path) -> None:
        self._scheduler, self._attempt, self._task = scheduler, attempt, task
        self._target = target
        self._name = f"r{task.node_rank}"

    def bring(self, end: TaskEnd | None) -> None:
        """Copy them all.

        Raises:
            NodeError: LOG-COPY; or the node does not answer.
        """
        for name in SMALL:
            content = self._read(name)
            if content is not None:
                write(self._target / f"{self._name}.{name}", content)
        if end is None and self._read("log") is None:
            return  # it never came to its program
        if not any(self._fetch(end) for _ in range(LOG_COPIES)):
            raise errors.NodeError(
                f"{self._attempt.folder(self._task)}/{self._name}.log came {LOG_COPIES} times"
                " otherwise than its supervisor saw it",
                code="LOG-COPY",
                node=self._task.node,
            )

    def _read(self, name: str, offset: int = 0) -> bytes | None:
        path = f"{self._name}.{name}"
        return self._scheduler.read(self._attempt, self._task, path, offset)

    def _fetch(self, end: TaskEnd | None) -> bool:
        """Copy the log in pieces; whether it came as its supervisor saw it, and only then kept."""
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
