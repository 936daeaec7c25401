"""Reads what a gang's nodes recorded: transports, state and, of a failed task, the cause."""

import contextlib
import hashlib
import itertools
import mmap
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from orchestrator.collecting import logs
from orchestrator.collecting.evidence import OTHERWISE
from orchestrator.launchers import mpirun
from orchestrator.measuring import transport_proof
from orchestrator.model.attempt import Attempt, Outcome, TaskEnd
from orchestrator.model.log import Fabric
from orchestrator.model.plan import Task
from orchestrator.model.problem import Problem
from orchestrator.model.result import Measurement
from orchestrator.model.telemetry import MARKS
from orchestrator.telemetry import judge
from orchestrator.telemetry.read import telemetry
from orchestrator.workloads import Workload

FILES = ("state", "gpus")
LAST_LINES, LAST_BYTES = 20, 16 << 10
TRACEBACK = b"Traceback (most recent call last):"
TRACEBACK_BYTES = 256 << 10  # deeper ones are shown by their last lines alone
LONGEST_LINE = 500
MOST_FRAME_LINES = 3
_POINTER = re.compile(rb"[ ^~]*")
_ERROR = re.compile(rb"[A-Za-z_][\w.]*(: .*)?")


def read_transports(
    folder: Path, tasks: Sequence[Task], workload: Workload, leader: Fabric | None = None
) -> Mapping[str, Fabric]:
    """Read the transports in an attempt's logs by node; nodes without a log are absent.

    Args:
        leader: of the log of rank 0, if that was read already.
    """
    if workload.fabric is None:
        return {}
    by_node: dict[str, Fabric] = {}
    serving = any(task.service for task in tasks)
    for task in tasks:
        if leader is not None and task.node_rank == 0 and not serving:
            by_node[task.node] = leader
            continue
        # Where services only let the leader's program in, its log has what all ranks say.
        path = folder / f"r{0 if serving else task.node_rank}.log"
        with contextlib.suppress(OSError), open(path, "rb") as file:
            content = logs.chunks(file)
            if serving:
                count = len(task.gpus)
                ranks = range(task.node_rank * count, (task.node_rank + 1) * count)
                content = mpirun.keep_ranks(content, ranks)
            by_node[task.node] = workload.fabric(content)
    return by_node


def add_transport(
    measurement: Measurement, attempt: Attempt, folder: Path, workload: Workload
) -> Measurement:
    """Add the transport to a measurement; it is invalid if the requested one is not proved."""
    log = measurement.log
    leader = log.fabric if log and attempt.log_rank == 0 else None
    seen = read_transports(folder, attempt.tasks, workload, leader)
    problems = transport_proof.problems(transport_proof.requested(attempt.tasks), seen)
    transport = transport_proof.transport(seen)
    return replace(measurement.with_problems(problems), transport=transport)


def digests(folder: Path, ends: Sequence[TaskEnd]) -> Mapping[str, str]:
    """Return the sha256 of each file that observers wrote, by its name."""
    names = [f"r{end.node_rank}.{name}" for end in ends for name in FILES]
    contents = {name: _read_bytes(folder / name) for name in names}
    return {name: hashlib.sha256(text).hexdigest() for name, text in contents.items() if text}


def add_state(measurement: Measurement, folder: Path, outcome: Outcome) -> Measurement:
    """Add the state of its nodes to a measurement, and the marks that follow from it.

    If a telemetry file changed since the outcome, a mark is all that is added.
    """
    log, ends = measurement.log, outcome.tasks
    if log is None or not outcome.observed:
        return measurement
    now = digests(folder, ends)
    changed = [name for name, sha256 in outcome.observed.items() if now.get(name) != sha256]
    if changed:
        words = f"the state of the machines is not shown: {', '.join(changed)}: {OTHERWISE}"
        mark = Problem("STATE-CHANGED", words)
        return replace(measurement, marks=(*measurement.marks, mark))
    went = {end.node: end.went_at for end in ends if end.went_at is not None}
    read = (
        telemetry(end.node, *(_read_bytes(folder / f"r{end.node_rank}.{name}") for name in FILES))
        for end in ends
    )
    nodes = [node for node in read if node and node.node in went and node.hosts]
    leader = next((node for node in nodes if node.node == ends[0].node), None)
    inside, unplaced = None, tuple[Problem, ...]()
    if leader is not None:
        inside = judge.window(log, went[leader.node], leader.hosts[-1].at_s)
        if inside is None and log.measured_s is not None:
            words = f"telemetry not placed: the log's clock is not that of node {leader.node}"
            said = f"{words} in UTC; the machines' state is of the whole run"
            unplaced = (Problem("NOT-PLACED", said),)
    seen = [(node, judge.period(node, went[node.node], inside)) for node in nodes]
    clocks = (judge.find_held(node, went[node.node], inside) for node in nodes)
    machines = [judge.state(*pair, judge.beside(pair[0], seen)) for pair in seen]
    marks = (judge.marks(*pair, now) for pair, now in zip(seen, machines, strict=True))
    return replace(
        measurement,
        machines=tuple(machines),
        energy=judge.energy(seen, measurement.throughput) if len(nodes) == len(ends) else None,
        held=tuple(found for found in clocks if found is not None),
        marks=(*measurement.marks, *unplaced, *itertools.chain.from_iterable(marks)),
    )


def list_marks(measurement: Measurement) -> tuple[Problem, ...]:
    """Return the marks of a measurement that come from the state of its nodes."""
    return tuple(mark for mark in measurement.marks if mark.code in MARKS)


def strict(measurement: Measurement) -> Measurement:
    """Return the measurement, invalid where the state of its nodes marks it."""
    others = tuple(mark for mark in measurement.marks if mark.code not in MARKS)
    return replace(measurement.with_problems(list_marks(measurement)), marks=others)


def describe_failure(path: Path) -> bytes:
    """Return the last lines of a log, below its first error unless that is among them.

    Under torchrun the rank that failed prints first, and the agent prints many lines after it.
    """
    if not path.exists():
        return b"it left no log"
    size_bytes = path.stat().st_size
    with open(path, "rb") as file:
        file.seek(max(0, size_bytes - LAST_BYTES))
        last = b"\n".join(file.read().splitlines()[-LAST_LINES:])
    cause = _find_first_error(path) if size_bytes else []
    if not cause or cause[-1] in last:
        return b"its last lines:\n" + last
    shown = b"\n".join(line[:LONGEST_LINE] for line in cause)
    return b"its first Traceback ends with:\n" + shown + b"\nits last lines:\n" + last


def _find_first_error(path: Path) -> list[bytes]:
    """Return the last frame and the error of the first Traceback; nothing if it lacks one.

    Its lines may have a prefix, such as ``[rank1]: ``; those of others between them have another.
    """
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as log:
        at = log.find(TRACEBACK)
        if at < 0:
            return []
        start = log.rfind(b"\n", 0, at) + 1
        prefix, text = log[start:at], log[start : start + TRACEBACK_BYTES]
    frame: list[bytes] = []
    for line in text.splitlines():
        own = line.removeprefix(prefix)
        if not line.startswith(prefix) or own == TRACEBACK:
            continue
        if own.startswith(b"  File "):
            frame = []
        if own.startswith(b" "):
            frame += [] if _POINTER.fullmatch(own) else [own]
        elif frame and _ERROR.fullmatch(own):
            return [*frame[:MOST_FRAME_LINES], own]
    return []


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
