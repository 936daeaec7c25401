"""Whether the nodes of a gang show the transport that its case asks for."""

from collections.abc import Iterable, Mapping, Sequence

from orchestrator.model.log import Fabric
from orchestrator.model.plan import Task
from orchestrator.model.problem import Problem

INFRA = frozenset({"GPU-DETACHED"})
"""Codes of ``troubles`` that say nothing against the program: the attempt may be repeated."""


def asked(tasks: Sequence[Task]) -> dict[str, tuple[str, ...]]:
    """By node, leader first, the HCAs that a gang of several nodes is told to use.

    Without GPUs there is no NCCL, and without HCAs in the inventory a case asks for none.
    """
    if len(tasks) < 2:
        return {}
    told = {task.node: task.env.get("NCCL_IB_HCA", "") for task in tasks}
    return {node: tuple(hcas.lstrip("=").split(",")) for node, hcas in told.items() if hcas}


def problems(
    wanted: Mapping[str, Sequence[str]], seen: Mapping[str, Fabric]
) -> tuple[Problem, ...]:
    """Why a trial is no measurement over InfiniBand; empty where nobody asked, or all is proved.

    Args:
        wanted: HCAs by node, as ``asked`` gives them.
        seen: by node, what the log of its own task says; a node whose log is not there is absent.
    """
    return tuple(
        problem
        for node, hcas in wanted.items()
        for problem in _lacking(node, hcas, seen.get(node, Fabric()))
    )


def transport(seen: Mapping[str, Fabric]) -> str:
    """What a gang ran over, in one word if its nodes agree; ``-`` if no log says anything."""
    labels = {node: fabric.label for node, fabric in seen.items()}
    if len(set(labels.values())) == 1:
        return next(iter(labels.values()))
    return "; ".join(f"{node}: {label}" for node, label in labels.items()) or "-"


def troubles(seen: Mapping[str, Fabric]) -> tuple[Problem, ...]:
    """What the libraries of a gang complain of: the likely reason where it failed."""
    return tuple(
        Problem(problem.code, f"node {node}: {problem.message}")
        for node, fabric in seen.items()
        for problem in fabric.problems
    )


def _lacking(node: str, hcas: Sequence[str], fabric: Fabric) -> Iterable[Problem]:
    wish = f"node {node}: the case asks for InfiniBand on {','.join(hcas)};"
    for problem in fabric.problems:
        if problem.code == "IB-NO-DRIVER":
            yield Problem(problem.code, f"{wish} {problem.message}")
    lines = ", ".join(map(str, fabric.lines))
    if fabric.no_device is not None:
        took = f" and took {fabric.label}" if fabric.networks else ""
        found = f"NCCL found no device (line {fabric.no_device}){took}"
        yield Problem("TRANSPORT", f"{wish} {found}")
    elif not fabric.networks:
        yield Problem("TRANSPORT-UNPROVEN", f"{wish} no line of its log says what NCCL took")
    elif not fabric.over_verbs:
        yield Problem("TRANSPORT", f"{wish} NCCL took {fabric.label} (lines {lines})")
    elif not fabric.ports:
        yield Problem("TRANSPORT-UNPROVEN", f"{wish} no line of its log says which HCAs NCCL took")
    elif {port.hca for port in fabric.ports} != set(hcas):
        yield Problem("IB-HCA", f"{wish} NCCL took {fabric.label} (lines {lines})")
