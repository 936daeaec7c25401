"""How nodes are to get a data set: what lies there, and the way that fits."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from orchestrator import checks, errors, words
from orchestrator.datasets import Dataset, Tool, Way, look
from orchestrator.datasets.look import Observed, Paths
from orchestrator.deadlines import DATA_LOOK_S
from orchestrator.fleet import Fleet
from orchestrator.inputs import probing
from orchestrator.model.cluster import Cluster
from orchestrator.model.node import Node
from orchestrator.model.site import DataState, Finding, ImageRecord
from orchestrator.preparing_data import held
from orchestrator.probes import first_look

SOURCE = "--from"
State = Literal["there", "ready", "refused"]


@dataclass(frozen=True, slots=True)
class DataRequest:
    """The data set, nodes and sources that the command line names.

    Args:
        cluster: with the chosen nodes only.
        source: folder of sources on the nodes; None if none is named.
        images: those that were provisioned, by name.
    """

    dataset: Dataset
    cluster: Cluster
    source: str | None
    images: Mapping[str, ImageRecord]


@dataclass(frozen=True, slots=True)
class Planned:
    """What is to be done on one node.

    Args:
        state: there (something lies at the path already), ready, or refused for its findings.
        way: None unless ready.
        needed_bytes: of free disk.
    """

    node: Node
    observed: Observed
    state: State
    way: Way | None
    needed_bytes: int
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Plans:
    """What is to be done, by node name; and the errors of silent nodes.

    Args:
        labels: of validation images, by node name, where they are needed.
    """

    nodes: Mapping[str, Planned]
    labels: Mapping[str, bytes]
    failures: tuple[errors.DlperfError, ...]


def planned(fleet: Fleet, request: DataRequest, name: str) -> Planned:
    """What is to be done on a node.

    Raises:
        NodeError, UnfitError: it gave no answer that can be read, or a mount there hangs.
    """
    node = next(member for member in request.cluster.members if member.name == name)
    states = _states(fleet, request, node)
    paths = Paths(node.data[request.dataset.name], request.source, home(node, request.dataset))
    question = look.probe(request.dataset, paths)
    observed = probing.ask(fleet.transports[name], question, DATA_LOOK_S)
    if observed.target == "there":
        return Planned(node, observed, "there", None, 0, ())
    findings = list(look.findings(request.dataset, name, paths, observed))
    beside = _beside(fleet, request.dataset, probing.with_present_data(node, states))
    open_ways = look.ways(request.dataset, observed, beside)
    fit = [way for way in open_ways if _lack(request, node, way[0]) is None]
    if not open_ways:
        findings.append(look.unmet(request.dataset, name, paths, observed))
        hung = {other: state for other, state in states.items() if state == "hung"}
        findings += checks.states(node, hung)
    elif not fit:
        findings += [lack for way, _ in open_ways if (lack := _lack(request, node, way))]
    way, needed_bytes = fit[0] if fit else (None, 0)
    if needed_bytes > observed.free_bytes:
        findings.append(look.full(name, observed, needed_bytes))
    state: State = "refused" if findings else "ready"
    return Planned(node, observed, state, way, needed_bytes, tuple(findings))


def home(node: Node, dataset: Dataset) -> str:
    """The node's folder for attempts at a data set; two nodes of one machine have two."""
    return f"{node.folder}/prepare/{dataset.name}-{node.name}"


def summary(planned: Planned) -> str:
    """One line on what is to be done."""
    if planned.way is None:
        return {"there": "is there; nothing is overwritten"}.get(
            planned.state, "cannot be prepared"
        )
    begun = (
        f", {words.size(planned.observed.have_bytes)} of it begun"
        if planned.observed.have_bytes
        else ""
    )
    return f"{planned.way.title}; needs {words.size(planned.needed_bytes)} of free disk{begun}"


def _states(fleet: Fleet, request: DataRequest, node: Node) -> Mapping[str, DataState]:
    """By name, what lies at the paths of the data set and of those that it can be made of.

    Raises:
        UnfitError: MOUNT-HUNG; the data set's path, or that of the sources, does not answer.
    """
    own = request.dataset.name
    names = [own, *(way.after for way in request.dataset.ways if way.after in node.data)]
    paths = {name: node.data[name] for name in names if name}
    source = {SOURCE: request.source} if request.source else {}
    states = probing.data_states(fleet.transports[node.name], {**paths, **source})
    for name, path in {own: paths[own], **source}.items():
        if states[name] == "hung":
            raise errors.UnfitError(
                f"{path}: no answer in {first_look.LIMIT_S} s",
                code="MOUNT-HUNG",
                node=node.name,
                fix="remount the file system; its server may be gone",
            )
    return {name: states[name] for name in paths}


def _beside(fleet: Fleet, dataset: Dataset, node: Node) -> dict[str, int]:
    """Bytes of the data sets that this one can be made of, where the node has them."""
    sizes: dict[str, int] = {}
    for way in dataset.ways:
        if way.after is not None and way.after in node.data:
            try:
                sizes[way.after] = held.size(fleet, node, way.after).size_bytes
            except errors.UnfitError:
                continue  # not there, or not whole: the way is closed, and its need is named
    return sizes


def _lack(request: DataRequest, node: Node, way: Way) -> Finding | None:
    """What a node lacks to run a way's tool."""
    if way.tool is None:
        return None
    if not node.has_engine:
        return Finding(
            "error",
            "NO-DOCKER",
            node.name,
            f"runtime: {node.runtime}, where no container runs",
            f"runtime: docker, since preparing {way.title}",
            "set runtime: docker, or put ready-made files into --from",
        )
    return None if way.tool.image in request.images else _no_image(node, way.tool)


def _no_image(node: Node, tool: Tool) -> Finding:
    return Finding(
        "error",
        "IMAGE-MISSING",
        node.name,
        f"image {tool.image} was never prepared",
        f"image {tool.image}, which has {tool.program}",
        f"dlperf-orch provision INVENTORY --image {tool.image}",
    )
