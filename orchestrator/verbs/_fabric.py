"""What the logs of a gang's tasks say of the transport between its nodes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from orchestrator import proof
from orchestrator.model.log import Fabric
from orchestrator.model.plan import Task, TrialPlan
from orchestrator.model.result import Measurement
from orchestrator.verbs import _logs
from orchestrator.workloads import Workload


def seen(folder: Path, tasks: Sequence[Task], workload: Workload) -> Mapping[str, Fabric]:
    """By node in rank order, what its own log says; nodes whose log is not there are absent.

    Args:
        folder: of the attempt, on this machine.
    """
    if workload.fabric is None:
        return {}
    found: dict[str, Fabric] = {}
    for task in tasks:
        try:
            with open(folder / f"r{task.node_rank}.log", "rb") as file:
                found[task.node] = workload.fabric(_logs.chunks(file))
        except FileNotFoundError:
            continue
    return found


def proved(found: Measurement, trial: TrialPlan, said: Mapping[str, Fabric]) -> Measurement:
    """The measurement with its transport; invalid if the case asks for another, or for proof."""
    problems = proof.problems(proof.asked(trial.tasks), said)
    return replace(
        found,
        transport=proof.transport(said) if len(trial.tasks) > 1 else "-",
        state="invalid" if problems else found.state,
        problems=(*found.problems, *problems),
    )
