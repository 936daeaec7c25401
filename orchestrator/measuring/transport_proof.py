"""Proves that a gang used the transport that its case requests."""

from collections.abc import Iterable, Mapping, Sequence

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
    """Return the reasons why a trial is not proved to be over InfiniBand, if it was requested.

    Args:
        requested: HCAs by node.
        observed: the transport in the log of each node's task; nodes without a log are absent.
    """
    return tuple(
        problem
        for node, hcas in requested.items()
        for problem in _lacking(node, hcas, observed.get(node, Fabric()))
    )


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


def _lacking(node: str, hcas: Sequence[str], fabric: Fabric) -> Iterable[Problem]:
    request = f"node {node}: the case asks for InfiniBand on {','.join(hcas)};"
    for problem in fabric.problems:
        if problem.code == "IB-NO-DRIVER":
            yield Problem(problem.code, f"{request} {problem.message}")
    lines = ", ".join(map(str, fabric.lines))
    if fabric.no_device is not None:
        took = f" and took {fabric.label}" if fabric.networks else ""
        reason = f"NCCL found no device (line {fabric.no_device}){took}"
        yield Problem("TRANSPORT", f"{request} {reason}")
    elif not fabric.networks:
        yield Problem("TRANSPORT-UNPROVEN", f"{request} no line of its log says what NCCL took")
    elif not fabric.over_verbs:
        yield Problem("TRANSPORT", f"{request} NCCL took {fabric.label} (lines {lines})")
    elif not fabric.ports:
        yield Problem(
            "TRANSPORT-UNPROVEN", f"{request} no line of its log says which HCAs NCCL took"
        )
    elif {port.hca for port in fabric.ports} != set(hcas):
        yield Problem("IB-HCA", f"{request} NCCL took {fabric.label} (lines {lines})")
