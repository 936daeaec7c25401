"""The files of an attempt, brought here from the nodes, byte for byte, and removed there."""

import contextlib
import hashlib
from collections.abc import Callable
from pathlib import Path

from orchestrator import errors
from orchestrator.fleet import ask_all
from orchestrator.model.attempt import Attempt, GangEnd, TaskEnd
from orchestrator.model.event import Ended
from orchestrator.model.plan import Plan, Task
from orchestrator.model.problem import Problem
from orchestrator.pool import Pool
from orchestrator.retries import LOG_COPIES
from orchestrator.schedulers import Scheduler
from orchestrator.state.files import now, replacing, write
from orchestrator.state.sweep import Sweep
from orchestrator.sweeping import service_files
from orchestrator.sweeping.campaign import Campaign

LOST = "LOST"  # the run that started it ended before its tasks
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


def clear_and_bring(
    sweep: Sweep, scheduler: Scheduler, attempt: Attempt, gang: GangEnd
) -> tuple[Problem, ...]:
    """End what is left of a gang and copy its files; what of them is missing.

    Where all tasks have told their ends, their files are copied meanwhile: nothing of them changes.
    A service may have told none, even of a gang that is done.

    Raises:
        LeftoverError: a process or container of the attempt could not be ended.
    """
    pool = Pool(1)
    clearing = pool.submit(lambda: scheduler.clear(attempt))
    pool.close()
    try:
        if gang.reason != "done" or not all(end.sha256 for end in gang.ends):
            clearing.result()
        return bring(sweep, scheduler, attempt, gang.ends, clearing.result)
    finally:
        clearing.result()


def close_left(
    sweep: Sweep,
    scheduler: Scheduler,
    attempt: Attempt,
    state: str = "infra-lost",
    code: str = LOST,
) -> Attempt:
    """Close an attempt that a dead controller left open; return its part that could be reached.

    It stays open if that is not the whole.

    Raises:
        LeftoverError: a process or container of it could not be ended.
        UnfitError: NODE-MOVED; the inventory gives a node's name to another machine now.
    """
    reached = scheduler.reclaim(attempt)
    scheduler.clear(reached)
    bring(sweep, scheduler, reached, ())
    if len(reached.tasks) == len(attempt.tasks):
        sweep.append(
            Ended(at=now(), trial=attempt.trial, attempt=attempt.number, state=state, code=code)
        )
        forget(sweep, scheduler, reached)
    scheduler.release(reached.allocation)
    return reached


def forget(sweep: Sweep, scheduler: Scheduler, attempt: Attempt) -> None:
    """Remove private keys from all nodes, and the attempt's folders from other machines.

    Where one is silent, `clean` does it later, and its keys open nothing. A folder whose log was
    not copied stays: it holds the only one.
    """
    service_files.forget(scheduler, attempt)
    target = sweep.attempt_folder(attempt.trial, attempt.number)
    ranks = [task.node_rank for task in attempt.tasks]
    scheduler.forget(attempt, [rank for rank in ranks if (target / f"r{rank}.log").is_file()])


def forget_closed(campaign: Campaign, whole: Plan) -> None:
    """Remove what ended attempts left on nodes.

    A killed controller leaves their folders, an engine that was down their containers.

    Raises:
        LeftoverError: a container cannot be removed.
    """
    if not any(history.closed for history in campaign.histories.values()):
        return
    trials = {trial.name: trial for trial in whole.trials}
    for name, number in sorted(campaign.scheduler.attempts(campaign.sweep.id)):
        if name in trials and number in campaign.history(trials[name]).closed:
            attempt = campaign.sweep.attempt(name, number)
            campaign.scheduler.clear(attempt)
            forget(campaign.sweep, campaign.scheduler, attempt)


def _elsewhere(attempt: Attempt, task: Task, target: Path) -> bool:
    return attempt.folder(task) != str(target.resolve())


class _Copy:
    """Copies one task's files to this machine."""

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
        """Copy what was seen of the node; a trial without it is a trial all the same."""
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
        """Copy the log in pieces; False, and nothing kept, if it is not what was recorded."""
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
