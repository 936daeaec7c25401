"""Close attempts: end what runs, copy the files, keep the outcome, clean up the nodes."""

import contextlib
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from orchestrator import errors
from orchestrator.fleet import Pool, ask_all
from orchestrator.launchers import mpirun
from orchestrator.model.attempt import Attempt, GangEnd, TaskEnd
from orchestrator.model.plan import Plan, Task
from orchestrator.model.problem import Problem
from orchestrator.model.sweep import Ended
from orchestrator.retries import LOG_COPIES
from orchestrator.schedulers.scheduler import Scheduler
from orchestrator.state.files import now, replacing, write
from orchestrator.state.sweep import Sweep
from orchestrator.sweeping import observed_sweep
from orchestrator.sweeping.campaign import Campaign

T = TypeVar("T")
LOST = "LOST"  # the run that started it ended before its tasks
GATES = ("gate", "alive", "clock", "go.new")  # what a killed supervisor leaves beside its files


def close_attempt(
    sweep: Sweep,
    scheduler: Scheduler,
    attempt: Attempt,
    keep: Callable[[tuple[Problem, ...]], T],
    gang: GangEnd | None = None,
) -> T:
    """End an attempt on all of its nodes, copy its files here, keep its outcome, clean its nodes.

    Private keys and gates are removed even if something fails; folders on nodes only after
    ``keep``, and only if their logs were copied.

    Args:
        keep: writes the outcome; given a LOG-COPY problem per task whose files are not whole.
        gang: how its tasks ended; None if nobody watched it.

    Returns:
        What ``keep`` returns.

    Raises:
        LeftoverError: names the tasks whose end is not proved; no outcome is kept.
        StoreError: this machine cannot write the files; those on the nodes are untouched.
    """
    missing = _end_and_bring(sweep, scheduler, attempt, gang)
    kept = keep(missing)
    _forget_folders(sweep, scheduler, attempt)
    return kept


def end_attempt(scheduler: Scheduler, attempt: Attempt, *, with_gates: bool = True) -> None:
    """End every process of an attempt, and remove its private keys and gates from its nodes.

    A silent node keeps its keys; they open nothing once the attempt has ended.

    Raises:
        LeftoverError: names the tasks whose end is not proved; other nodes are cleaned up.
    """
    try:
        scheduler.clear(attempt)
    finally:
        names = {
            task.node_rank: (
                *mpirun.private(task.files),
                *(f"r{task.node_rank}.{name}" for name in GATES if with_gates),
            )
            for task in attempt.tasks
        }
        scheduler.remove(attempt, {rank: files for rank, files in names.items() if files})


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
    ended = Ended(at=now(), trial=attempt.trial, attempt=attempt.number, state=state, code=code)
    if len(reached.tasks) == len(attempt.tasks):
        close_attempt(sweep, scheduler, reached, lambda _missing: sweep.append(ended))
    else:
        _end_and_bring(sweep, scheduler, reached, None)
    scheduler.release(reached.allocation)
    return reached


def clear_others(campaign: Campaign) -> None:
    """End what dead controllers of other sweeps of this state folder left on the cluster.

    Tasks of a sweep whose files cannot be read are found by the sweep's id, on every node.

    Raises:
        LeftoverError: a process or container could not be ended, and would disturb measuring.
        NodeError: a node does not answer.
        UnfitError: NODE-MOVED; the inventory gives a node's name to another machine now.
    """
    store, voice = campaign.store, campaign.voice
    unreadable = store.unreadable()
    for other in observed_sweep.sweeps_on(store, campaign.recipe.cluster.name):
        if other.id == campaign.sweep.id:
            continue
        try:
            left = observed_sweep.Running.from_sweep(other).open_attempts()
        except errors.DlperfError as error:
            unreadable[other.id] = error
            continue
        for attempt in left:
            close_left(other, campaign.scheduler, attempt)
            name = f"{attempt.trial} a{attempt.number}"
            voice.line(f"ended what was left of {name} of sweep {other.id}")
    for sweep_id, why in unreadable.items():
        if why.code != "STORE-VERSION":  # such a one is whole, only not for this version
            voice.line(f"sweep {sweep_id} is skipped: {why.cause}")
    dead = [
        sweep_id
        for sweep_id in unreadable
        if not Sweep(store.root / "sweeps" / sweep_id).lock().holder()
    ]
    for node, names in campaign.scheduler.strays(dead).items():
        voice.line(f"ended on {node}: {', '.join(names)}")


def forget_closed(campaign: Campaign, whole: Plan) -> None:
    """Remove what ended attempts left on nodes.

    A killed controller leaves their keys and folders, an engine that was down their containers.

    Raises:
        LeftoverError: a container cannot be removed.
    """
    if not any(history.closed for history in campaign.histories.values()):
        return
    trials = {trial.name: trial for trial in whole.trials}
    for name, number in sorted(campaign.scheduler.attempts(campaign.sweep.id)):
        if name in trials and number in campaign.history(trials[name]).closed:
            attempt = campaign.sweep.attempt(name, number)
            end_attempt(campaign.scheduler, attempt)
            _forget_folders(campaign.sweep, campaign.scheduler, attempt)


def _end_and_bring(
    sweep: Sweep, scheduler: Scheduler, attempt: Attempt, gang: GangEnd | None
) -> tuple[Problem, ...]:
    """End an attempt and copy its files; return what is missing of them.

    Once all tasks have told their ends, nothing of their files changes, and they are copied
    meanwhile. A service may have told none, even of a gang that is done.
    """
    ends = gang.ends if gang is not None else ()
    all_told = gang is not None and gang.reason == "done" and all(end.sha256 for end in ends)
    pool = Pool(1)
    ending = pool.submit(lambda: end_attempt(scheduler, attempt, with_gates=not all_told))
    pool.close()
    try:
        if not all_told:
            ending.result()
        return copy_files(sweep, scheduler, attempt, ends, ending.result)
    finally:
        ending.result()


def _forget_folders(sweep: Sweep, scheduler: Scheduler, attempt: Attempt) -> None:
    """Remove the attempt's folders from other machines; `clean` does it later on a silent node.

    A folder whose log was not copied stays: it contains the only copy.
    """
    target = sweep.attempt_folder(attempt.trial, attempt.number)
    ranks = [task.node_rank for task in attempt.tasks]
    scheduler.forget(attempt, [rank for rank in ranks if (target / f"r{rank}.log").is_file()])


SMALL = ("err", "exit", "end", "go")
OBSERVED = ("state", "gpus")
MOST_OBSERVED_BYTES = 64 << 20  # of one file; the observer itself writes no more


class _Torn(Exception):
    """The copy of a log has another size or sha256 than its supervisor recorded."""


def copy_files(
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
    here = str(target.resolve())
    tasks = {task.node: task for task in attempt.tasks if attempt.folder(task) != here}
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
