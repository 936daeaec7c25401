"""Proves that a gang used the transport that its case requests."""

from collections.abc import Mapping, Sequence

from orchestrator.model.log import Fabric
from orchestrator.model.plan import Task
from orchestrator.model.problem import Problem

INFRA = frozenset({"GPU-DETACHED"})
"""Codes of ``library_problems`` for which the program is not to blame: the attempt is repeated."""


def requested(tasks: Sequence[Task]) -> dict[str, tuple[str, ...]]:
    """Return the HCAs that a gang of several nodes must use, by node, leader first.

    Without GPUs there is no NCCL, and without HCAs in the inventory a case requests none.
    """
    if len(tasks) < 2:
        return {}
    hca_settings = {task.node: task.env.get("NCCL_IB_HCA", "") for task in tasks}
    return {node: tuple(hcas.lstrip("=").split(",")) for node, hcas in hca_settings.items() if hcas}


def problems(
    requested: Mapping[str, Sequence[str]], observed: Mapping[str, Fabric]
) -> tuple[Problem, ...]:
    """Return the reasons why a trial is not proved to be over the requested HCAs of each node."""
    found: list[Problem] = []
    for node, hcas in requested.items():
        fabric, code = observed.get(node, Fabric()), ""  # without a log, nothing is proved
        request = f"node {node}: the case asks for InfiniBand on {','.join(hcas)};"
        took = f"NCCL took {fabric.label} (lines {', '.join(map(str, fabric.lines))})"
        for problem in fabric.problems:
            if problem.code == "IB-NO-DRIVER":
                found.append(Problem(problem.code, f"{request} {problem.message}"))
        if fabric.no_device is not None:
            beside = f" and took {fabric.label}" if fabric.networks else ""
            code = "TRANSPORT"
            took = f"NCCL found no device (line {fabric.no_device}){beside}"
        elif not fabric.networks:
            code = "TRANSPORT-UNPROVEN"
            took = "no line of its log says what NCCL took"
        elif not fabric.over_verbs:
            code = "TRANSPORT"
        elif not fabric.ports:
            code = "TRANSPORT-UNPROVEN"
            took = "no line of its log says which HCAs NCCL took"
        elif {port.hca for port in fabric.ports} != set(hcas):
            code = "IB-HCA"
        if code:
            found.append(Problem(code, f"{request} {took}"))
    return tuple(found)


def transport(observed: Mapping[str, Fabric]) -> str:
    """Return the transport of a gang, once if its nodes agree; ``-`` if no log names one."""
    labels = {node: fabric.label for node, fabric in observed.items()}
    if len(set(labels.values())) == 1:
        return next(iter(labels.values()))
    return "; ".join(f"{node}: {label}" for node, label in labels.items()) or "-"


def library_problems(observed: Mapping[str, Fabric]) -> tuple[Problem, ...]:
    """Return the problems that NCCL printed, with their nodes: the likely reason of a failure."""
    return tuple(
        Problem(problem.code, f"node {node}: {problem.message}")
        for node, fabric in observed.items()
        for problem in fabric.problems
    )
