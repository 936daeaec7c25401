"""Close attempts: end what runs, copy the files, clean up the nodes."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator import errors
from orchestrator.fleet import ask_all
from orchestrator.launchers import mpirun
from orchestrator.model.attempt import Attempt, GangEnd, TaskEnd
from orchestrator.model.plan import Task
from orchestrator.model.problem import Problem
from orchestrator.model.sweep import Ended
from orchestrator.retries import LOG_COPIES
from orchestrator.schedulers.scheduler import Scheduler
from orchestrator.state.files import now, replacing, write
from orchestrator.state.sweep import Sweep
from orchestrator.sweeping import observed_sweep
from orchestrator.transports import MOST_BYTES

if TYPE_CHECKING:  # which `stop` does not need
    from orchestrator.sweeping.campaign import Campaign

LOST = "LOST"  # the run that started it ended before its tasks
GATES = ("gate", "alive", "clock", "go.new")  # what a killed supervisor leaves beside its files
SMALL = ("err", "exit", "end", "go")
OBSERVED = ("state", "gpus")
MOST_OBSERVED_BYTES = 64 << 20  # of one file; the observer itself writes no more


def end_and_copy(
    sweep: Sweep, scheduler: Scheduler, attempt: Attempt, gang: GangEnd | None = None
) -> tuple[Problem, ...]:
    """End an attempt on all of its nodes and copy its files here, before its outcome is kept.

    Private keys and gates are removed even if something fails. The sha256 that a supervisor
    recorded on its node decides whether a log is whole; if nobody watched the gang, none is
    compared. When this returns, the copies are synced to disk, and the nodes' files may be removed.

    Returns:
        A LOG-COPY problem per task whose files are not whole.

    Raises:
        LeftoverError: names the tasks whose end is not proved.
        StoreError: this machine cannot write the files; those on the nodes are untouched.
    """
    # A service may not have told its end, even of a gang that is done.
    ended = gang is not None and gang.reason == "done" and all(end.sha256 for end in gang.ends)
    end_attempt(scheduler, attempt, with_gates=not ended)
    target = sweep.attempt_folder(attempt.trial, attempt.number)
    here = str(target.resolve())
    tasks = {task.node: task for task in attempt.tasks if attempt.folder(task) != here}
    ends = {end.node: end for end in gang.ends} if gang else {}

    def copy(node: str) -> None:
        _copy_task(scheduler, attempt, tasks[node], ends.get(node), target)

    problems = []
    for answer in ask_all(list(tasks), copy):
        if answer.error is not None and answer.error.code.startswith("STORE-"):
            answer.error.where.pop("node", None)  # it is this machine that cannot keep it
            raise answer.error
        if answer.error is not None:
            problems.append(Problem("LOG-COPY", f"node {answer.node}: {answer.error.cause}"))
    return tuple(problems)


def forget_folders(sweep: Sweep, scheduler: Scheduler, attempt: Attempt) -> None:
    """Remove the folders of an attempt that has its outcome from other machines.

    A folder whose log was not copied stays: it contains the only copy. `clean` removes those of a
    silent node later.
    """
    target = sweep.attempt_folder(attempt.trial, attempt.number)
    ranks = [task.node_rank for task in attempt.tasks]
    scheduler.forget(attempt, [rank for rank in ranks if (target / f"r{rank}.log").is_file()])


def end_attempt(scheduler: Scheduler, attempt: Attempt, *, with_gates: bool = True) -> None:
    """End every process of an attempt, and remove its private keys and gates from its nodes.

    A silent node keeps its keys; they open nothing once the attempt has ended.

    Raises:
        LeftoverError: names the tasks whose end is not proved; other nodes are cleaned up.
    """
    try:
        scheduler.clear(attempt)
    finally:
        names = {}
        for task in attempt.tasks:
            gates = (f"r{task.node_rank}.{name}" for name in (GATES if with_gates else ()))
            names[task.node_rank] = [*mpirun.private(task.files), *gates]
        scheduler.remove(attempt, names)


def close_left(
    sweep: Sweep,
    scheduler: Scheduler,
    attempt: Attempt,
    state: str = "infra-lost",
    code: str = LOST,
) -> Attempt:
    """Close an attempt that a dead controller left open; return its part that could be reached.

    It stays open if that is not the whole.
    """
    reached = scheduler.reclaim(attempt)
    end_and_copy(sweep, scheduler, reached)
    if len(reached.tasks) == len(attempt.tasks):
        sweep.append(
            Ended(at=now(), trial=attempt.trial, attempt=attempt.number, state=state, code=code)
        )
        forget_folders(sweep, scheduler, reached)
    scheduler.release(reached.allocation)
    return reached


def clear_others(campaigns: Sequence["Campaign"]) -> None:
    """End what dead controllers of other sweeps of this state folder left on the cluster.

    Tasks of a sweep whose files cannot be read are found by the sweep's id, on every node.

    Raises:
        LeftoverError: a process or container could not be ended, and would disturb measuring.
    """
    first, ours = campaigns[0], {campaign.sweep.id for campaign in campaigns}
    voice, scheduler, dead = first.voice, first.scheduler, list[str]()
    cluster = first.recipe.cluster.name
    for other, left, error in observed_sweep.list_left(first.store, cluster, held=True):
        if other.id in ours:
            continue
        if error is not None:
            if error.code != "STORE-VERSION":  # such a sweep is whole, only not for this version
                voice.line(f"sweep {other.id} is skipped: {error.cause}")
            if not other.lock().holder():
                dead.append(other.id)
        for attempt in left:
            close_left(other, scheduler, attempt)
            name = f"{attempt.trial} a{attempt.number}"
            voice.line(f"ended what was left of {name} of sweep {other.id}")
    for node, names in scheduler.strays(dead).items():
        voice.line(f"ended on {node}: {', '.join(names)}")


def forget_closed(campaign: "Campaign") -> None:
    """Remove what ended attempts left on nodes.

    A killed controller leaves their keys and folders, an engine that was down their containers.
    """
    if not any(history.closed for history in campaign.histories.values()):
        return
    for name, number in sorted(campaign.scheduler.attempts(campaign.sweep.id)):
        if name in campaign.histories and number in campaign.histories[name].closed:
            attempt = campaign.sweep.attempt(name, number)
            end_attempt(campaign.scheduler, attempt)
            forget_folders(campaign.sweep, campaign.scheduler, attempt)


def _copy_task(
    scheduler: Scheduler, attempt: Attempt, task: Task, end: TaskEnd | None, target: Path
) -> None:
    rank = f"r{task.node_rank}"

    def read(name: str, offset: int = 0) -> bytes | None:
        return scheduler.read(attempt, task, f"{rank}.{name}", offset)

    def pieces(name: str, most: int) -> Iterator[bytes]:
        offset = 0
        while offset < most and (piece := (read(name, offset) or b"")[: most - offset]):
            yield piece
            offset += len(piece)
            if len(piece) < MOST_BYTES:  # nothing grows any more
                break

    for name in SMALL:
        if (content := read(name)) is not None:
            write(target / f"{rank}.{name}", content)
    if end is None and read("log") is None:
        return  # its program never started
    # A lost supervisor has not cut it.
    LOG_COPIES.call(
        lambda: _copy_log(pieces("log", attempt.log_bytes), target / f"{rank}.log", end)
    )
    for name in OBSERVED:  # a trial is valid without it
        if content := b"".join(pieces(name, MOST_OBSERVED_BYTES)):
            write(target / f"{rank}.{name}", content)


def _copy_log(pieces: Iterable[bytes], log: Path, end: TaskEnd | None) -> None:
    """Copy a log; keep nothing of it if its sha256 is not the recorded one."""
    digest, size = hashlib.sha256(), 0
    with replacing(log) as file:
        for piece in pieces:
            digest.update(piece)
            file.write(piece)
            size += len(piece)
        if end and end.sha256 and (size, digest.hexdigest()) != (end.size_bytes, end.sha256):
            cause = f"no copy of {log.name} has the sha256 that its supervisor recorded"
            raise errors.NodeError(cause, code="LOG-COPY", node=end.node)
