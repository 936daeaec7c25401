"""The files of an attempt, brought here from the nodes, byte for byte, and removed there."""

import contextlib
import hashlib
import posixpath
from collections.abc import Mapping
from pathlib import Path

from orchestrator import errors
from orchestrator.deadlines import COMMAND_S, REMOVE_S
from orchestrator.fleet import ask_all
from orchestrator.model.attempt import Attempt, TaskEnd
from orchestrator.model.history import History
from orchestrator.model.plan import Plan, Task
from orchestrator.model.problem import Problem
from orchestrator.retries import LOG_COPIES, REPEATABLE
from orchestrator.store import Sweep, replacing, write
from orchestrator.transports import Transport
from orchestrator.verbs._bench import Bench

SMALL = ("err", "exit", "end", "go")
Nodes = Mapping[str, Transport]

# $1: a log that is nowhere else, or nothing. A folder or a link in its place is no log.
FORGET = """
[ -f "$1" ] && [ ! -L "$1" ] && exit 0
rm -rf -- "$2" && rmdir -- "$3" "$4" 2>/dev/null
true
"""


# $1: the folder of a sweep. Prints its attempts, such as `1n1g-r50_b256_amp_1/a2`.
ATTEMPTS = (
    'cd -- "$1" 2>/dev/null && for each in */a*; do [ -d "$each" ] && echo "$each"; done; true'
)


class _Torn(Exception):
    """A log that came otherwise than its supervisor saw it."""


def bring(
    sweep: Sweep, nodes: Nodes, attempt: Attempt, ends: tuple[TaskEnd, ...]
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
        _copy(nodes[node], attempt, tasks[node], (known.get(node), target))

    answers = ask_all(list(tasks), copy)
    for answer in answers:
        if answer.error is not None and answer.error.code.startswith("STORE-"):
            answer.error.where.pop("node", None)  # it is this machine that cannot keep it
            raise answer.error
    return tuple(
        Problem("LOG-COPY", f"node {each.node}: {each.error.cause}")
        for each in answers
        if each.error is not None
    )


def forget(sweep: Sweep, nodes: Nodes, attempt: Attempt) -> None:
    """Remove the attempt's folders from nodes that are elsewhere; `clean` does it later else.

    A folder whose log did not come here stays: it is the only one.
    """
    target = sweep.attempt_folder(attempt.trial, attempt.number)
    tasks = {task.node: task for task in attempt.tasks if _elsewhere(attempt, task, target)}

    def remove(node: str) -> None:
        folder, log = attempt.folder(tasks[node]), f"r{tasks[node].node_rank}.log"
        trial = posixpath.dirname(folder)
        only = "" if (target / log).is_file() else f"{folder}/{log}"
        words = ("sh", "-c", FORGET, "sh", only, folder, trial, posixpath.dirname(trial))
        nodes[node].run(words, timeout_s=REMOVE_S)

    ask_all(list(tasks), remove)


def forget_closed(bench: Bench, whole: Plan) -> None:
    """Remove from nodes the folders of attempts that ended, where a kill kept us from doing so."""
    trials = {trial.name: trial for trial in whole.trials}
    homes = {
        node.name: f"{node.folder}/{bench.sweep.id}"
        for node in bench.recipe.cluster.members
        if not node.is_here
    }

    def look(node: str) -> set[str]:
        words = ("sh", "-c", ATTEMPTS, "sh", homes[node])
        done = bench.transports[node].run(words, timeout_s=COMMAND_S)
        return set(done.stdout.decode(errors="replace").split())

    answers = ask_all(list(homes), look)
    for name in sorted(set().union(*(answer.value or () for answer in answers))):
        trial, _, number = name.rpartition("/a")
        history = bench.history.get(trial, History())
        if trial in trials and number.isdecimal() and int(number) in history.closed:
            forget(bench.sweep, bench.transports, bench.attempt(trials[trial], int(number)))


def _elsewhere(attempt: Attempt, task: Task, target: Path) -> bool:
    return attempt.folder(task) != str(target.resolve())


def _copy(
    transport: Transport, attempt: Attempt, task: Task, what: tuple[TaskEnd | None, Path]
) -> None:
    end, target = what
    base = f"{attempt.folder(task)}/r{task.node_rank}"
    for name in SMALL:
        content = _read(transport, f"{base}.{name}")
        if content is not None:
            write(target / f"r{task.node_rank}.{name}", content)
    if end is None and _read(transport, f"{base}.log") is None:
        return  # it never came to its program
    log = target / f"r{task.node_rank}.log"
    most = attempt.log_bytes  # a lost supervisor has not cut it
    if not any(_fetch(transport, f"{base}.log", (log, most), end) for _ in range(LOG_COPIES)):
        raise errors.NodeError(
            f"{base}.log came {LOG_COPIES} times otherwise than its supervisor saw it",
            code="LOG-COPY",
            node=task.node,
        )


def _read(transport: Transport, path: str, offset: int = 0) -> bytes | None:
    """What the transport reads; a connection that is lost meanwhile costs that piece, no more."""
    return REPEATABLE.call(lambda: transport.get_own(path, offset))


def _fetch(transport: Transport, path: str, place: tuple[Path, int], end: TaskEnd | None) -> bool:
    """Copy a file in pieces; whether it came as its supervisor saw it, and only then is kept.

    Args:
        place: where to, and how many bytes at the most.
    """
    digest, offset = hashlib.sha256(), 0
    target, most = place
    with contextlib.suppress(_Torn), replacing(target) as file:
        while offset < most and (piece := (_read(transport, path, offset) or b"")[: most - offset]):
            digest.update(piece)
            file.write(piece)
            offset += len(piece)
        if end and end.sha256 and (offset, digest.hexdigest()) != (end.size_bytes, end.sha256):
            raise _Torn
        return True
    return False
