"""The transport between nodes, from the raw logs of a gang's tasks."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from orchestrator.collecting import logs
from orchestrator.launchers import mpirun
from orchestrator.measuring import transport_proof
from orchestrator.model.attempt import Attempt
from orchestrator.model.log import Fabric
from orchestrator.model.plan import Task
from orchestrator.model.result import Measurement
from orchestrator.workloads import Workload


def read_transports(
    folder: Path, tasks: Sequence[Task], workload: Workload
) -> Mapping[str, Fabric]:
    """Read the transports in nodes' logs, by node in rank order; nodes without a log are absent.

    Args:
        folder: of the attempt, on this machine.
    """
    if workload.fabric is None:
        return {}
    by_node: dict[str, Fabric] = {}
    serving = any(task.service for task in tasks)
    for task in tasks:
        # Where services only let the leader's program in, its log has what all ranks say.
        path = folder / f"r{0 if serving else task.node_rank}.log"
        try:
            with open(path, "rb") as file:
                content = logs.chunks(file)
                if serving:
                    count = len(task.gpus)
                    ranks = range(task.node_rank * count, (task.node_rank + 1) * count)
                    content = mpirun.keep_ranks(content, ranks)
                by_node[task.node] = workload.fabric(content)
        except OSError:
            continue
    return by_node


def add_transport(
    measurement: Measurement, attempt: Attempt, fabrics: Mapping[str, Fabric]
) -> Measurement:
    """Add the transport to a measurement; it is invalid if the requested one is not proved."""
    problems = transport_proof.problems(transport_proof.requested(attempt.tasks), fabrics)
    transport = transport_proof.transport(fabrics) if len(attempt.tasks) > 1 else "-"
    return replace(measurement.with_problems(problems), transport=transport)
