"""What the logs of a gang's tasks say of the transport between its nodes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from orchestrator.collecting import logs
from orchestrator.launchers import mpirun
from orchestrator.measuring import proof
from orchestrator.model.attempt import Attempt
from orchestrator.model.log import Fabric
from orchestrator.model.plan import Task
from orchestrator.model.result import Measurement
from orchestrator.workloads import Workload


def seen(folder: Path, tasks: Sequence[Task], workload: Workload) -> Mapping[str, Fabric]:
    """By node in rank order, what its own log says; nodes without a log are absent.

    Args:
        folder: of the attempt, on this machine.
    """
    if workload.fabric is None:
        return {}
    found: dict[str, Fabric] = {}
    serving = any(task.service for task in tasks)
    for task in tasks:
        # Where services only let the leader's program in, its log has what all ranks say.
        path = folder / f"r{0 if serving else task.node_rank}.log"
        try:
            with open(path, "rb") as file:
                said = _of_node(file, task) if serving else logs.chunks(file)
                found[task.node] = workload.fabric(said)
        except OSError:
            continue
    return found


def _of_node(file: BinaryIO, task: Task) -> Iterator[bytes]:
    count = len(task.gpus)
    ranks = range(task.node_rank * count, (task.node_rank + 1) * count)
    return mpirun.spoken(logs.chunks(file), ranks)


def proved(found: Measurement, attempt: Attempt, said: Mapping[str, Fabric]) -> Measurement:
    """The measurement with its transport; invalid if the case asks for another, or for proof."""
    problems = proof.problems(proof.asked(attempt.tasks), said)
    return replace(
        found,
        transport=proof.transport(said) if len(attempt.tasks) > 1 else "-",
        state="invalid" if problems else found.state,
        problems=(*found.problems, *problems),
    )
