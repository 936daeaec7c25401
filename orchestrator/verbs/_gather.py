"""The files of an attempt, brought here from the nodes, byte for byte, and removed there."""

import hashlib
import posixpath
from collections.abc import Mapping
from pathlib import Path

from orchestrator import errors
from orchestrator.model.attempt import Attempt, TaskEnd
from orchestrator.model.plan import Task
from orchestrator.model.problem import Problem
from orchestrator.store import Sweep
from orchestrator.transports import Transport
from orchestrator.verbs import _nodes

TRIES = 3
SMALL = ("err", "exit", "end", "go")
REMOVE_TIMEOUT_S = 30.0
Nodes = Mapping[str, Transport]


def bring(
    sweep: Sweep, nodes: Nodes, attempt: Attempt, ends: tuple[TaskEnd, ...]
) -> tuple[Problem, ...]:
    """Copy every task's files into the sweep's folder; what did not come whole is a problem.

    The sha256 that the supervisor took on the node decides whether a log is whole.
    """
    target = sweep.attempt_folder(attempt.trial, attempt.number)
    tasks = {task.node: task for task in attempt.tasks if _elsewhere(attempt, task, target)}
    known = {end.node: end for end in ends}

    def copy(node: str) -> None:
        _copy(nodes[node], attempt, tasks[node], (known.get(node), target))

    answers = _nodes.each(list(tasks), copy)
    return tuple(
        Problem("LOG-COPY", f"node {each.node}: {each.error.cause}")
        for each in answers
        if each.error is not None
    )


def forget(sweep: Sweep, nodes: Nodes, attempt: Attempt) -> None:
    """Remove the attempt's folders from nodes that are elsewhere; `clean` does it later else."""
    target = sweep.attempt_folder(attempt.trial, attempt.number)
    folders = {
        task.node: attempt.folder(task)
        for task in attempt.tasks
        if _elsewhere(attempt, task, target)
    }

    def remove(node: str) -> None:
        folder = folders[node]
        trial = posixpath.dirname(folder)
        script = 'rm -rf -- "$1" && rmdir -- "$2" "$3" 2>/dev/null; true'
        words = ("sh", "-c", script, "sh", folder, trial, posixpath.dirname(trial))
        nodes[node].run(words, timeout_s=REMOVE_TIMEOUT_S)

    _nodes.each(list(folders), remove)


def _elsewhere(attempt: Attempt, task: Task, target: Path) -> bool:
    return attempt.folder(task) != str(target.resolve())


def _copy(
    transport: Transport, attempt: Attempt, task: Task, what: tuple[TaskEnd | None, Path]
) -> None:
    end, target = what
    base = f"{attempt.folder(task)}/r{task.node_rank}"
    target.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name in SMALL:
        content = transport.get(f"{base}.{name}")
        if content is not None:
            (target / f"r{task.node_rank}.{name}").write_bytes(content)
    if end is None and transport.get(f"{base}.log") is None:
        return  # it never came to its program
    log = target / f"r{task.node_rank}.log"
    for _ in range(TRIES):
        came = _fetch(transport, f"{base}.log", log)
        if end is None or not end.sha256 or came == (end.size_bytes, end.sha256):
            return
    raise errors.NodeError(
        f"{base}.log came {TRIES} times otherwise than its supervisor saw it",
        code="LOG-COPY",
        node=task.node,
    )


def _fetch(transport: Transport, path: str, target: Path) -> tuple[int, str]:
    """Copy a file in pieces; its size and sha256 as they came."""
    digest, offset = hashlib.sha256(), 0
    aside = target.with_name(f"{target.name}.new")
    with open(aside, "wb") as file:
        while piece := transport.get(path, offset):
            digest.update(piece)
            file.write(piece)
            offset += len(piece)
    aside.rename(target)
    return offset, digest.hexdigest()
