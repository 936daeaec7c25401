"""Adds the transport and the state of nodes, from their logs and telemetry, to a measurement."""

import contextlib
import hashlib
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from orchestrator.collecting import logs
from orchestrator.collecting.evidence import OTHERWISE
from orchestrator.launchers import mpirun
from orchestrator.measuring import transport_proof
from orchestrator.model.attempt import Attempt, Outcome, TaskEnd
from orchestrator.model.log import Fabric, TrainingLog
from orchestrator.model.plan import Task
from orchestrator.model.problem import Problem
from orchestrator.model.result import Measurement
from orchestrator.model.telemetry import MARKS
from orchestrator.telemetry import judge
from orchestrator.telemetry.read import telemetry
from orchestrator.workloads import Workload

FILES = ("state", "gpus")


def read_transports(
    folder: Path, tasks: Sequence[Task], workload: Workload
) -> Mapping[str, Fabric]:
    """Read the transports in an attempt's logs by node; nodes without a log are absent."""
    if workload.fabric is None:
        return {}
    by_node: dict[str, Fabric] = {}
    serving = any(task.service for task in tasks)
    for task in tasks:
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
    seen = read_transports(folder, attempt.tasks, workload)
    problems = transport_proof.problems(transport_proof.requested(attempt.tasks), seen)
    transport = transport_proof.transport(seen)
    return replace(measurement.with_problems(problems), transport=transport)


def digests(folder: Path, ends: Sequence[TaskEnd]) -> Mapping[str, str]:
    """Return the sha256 of each file that observers wrote, by its name."""
    names = [f"r{end.node_rank}.{name}" for end in ends for name in FILES]
    contents = {name: _read_bytes(folder / name) for name in names}
    return {name: hashlib.sha256(text).hexdigest() for name, text in contents.items() if text}


def add_state(
    measurement: Measurement, log: TrainingLog, folder: Path, ends: Sequence[TaskEnd]
) -> Measurement:
    """Add the state of its nodes to a measurement, and the marks that follow from it."""
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
        if inside is None and log.origin_ns is not None and log.start and log.end:
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


def add_recorded_state(
    measurement: Measurement, log: TrainingLog, folder: Path, outcome: Outcome
) -> Measurement:
    """Add the nodes' state, or only a mark if a telemetry file changed since the outcome."""
    if not outcome.observed:
        return measurement
    now = digests(folder, outcome.tasks)
    changed = [name for name, sha256 in outcome.observed.items() if now.get(name) != sha256]
    if not changed:
        return add_state(measurement, log, folder, outcome.tasks)
    words = f"{', '.join(changed)}: {OTHERWISE}"
    mark = Problem("STATE-CHANGED", f"the state of the machines is not shown: {words}")
    return replace(measurement, marks=(*measurement.marks, mark))


def list_marks(measurement: Measurement) -> tuple[Problem, ...]:
    """Return the marks of a measurement that come from the state of its nodes."""
    return tuple(mark for mark in measurement.marks if mark.code in MARKS)


def strict(measurement: Measurement) -> Measurement:
    """Return the measurement, invalid where the state of its nodes marks it."""
    others = tuple(mark for mark in measurement.marks if mark.code not in MARKS)
    return replace(measurement.with_problems(list_marks(measurement)), marks=others)


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
