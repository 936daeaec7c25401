"""What preparing a data set would mean on each node: asked, and decided."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from orchestrator import errors
from orchestrator.datasets import Dataset, Tool, Way, look
from orchestrator.datasets.look import Found, Wanted
from orchestrator.deadlines import DATA_LOOK_S
from orchestrator.fleet import Fleet
from orchestrator.inputs import probing
from orchestrator.model.cluster import Cluster, Node
from orchestrator.model.site import Finding, ImageRecord
from orchestrator.preparing import held

State = Literal["there", "ready", "refused"]


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line asks for, brought together.

    Args:
        cluster: the nodes that are meant.
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
        state: there (something lies at the path already), ready, or refused with findings.
        way: None unless ready.
        needed_bytes: of free disk.
    """

    node: Node
    found: Found
    state: State
    way: Way | None
    needed_bytes: int
    refusals: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Plans:
    """What is to be done, by node name; and the errors of nodes that did not say.

    Args:
        labels: of validation images, by node name, where they are needed.
    """

    nodes: Mapping[str, Planned]
    labels: Mapping[str, bytes]
    failures: tuple[errors.DlperfError, ...]


def planned(fleet: Fleet, asked: Asked, name: str) -> Planned:
    """What is to be done on a node.

    Raises:
        NodeError, UnfitError: it gave no answer that can be read.
    """
    node = next(member for member in asked.cluster.members if member.name == name)
    wanted = Wanted(node.data[asked.dataset.name], asked.source, home(node, asked.dataset))
    question = look.probe(asked.dataset, wanted)
    found = probing.ask(fleet.transports[name], question, DATA_LOOK_S)
    if found.target == "there":
        return Planned(node, found, "there", None, 0, ())
    refusals = list(look.refusals(asked.dataset, name, wanted, found))
    open_ways = look.ways(asked.dataset, found, _beside(fleet, asked.dataset, node))
    fit = [way for way in open_ways if _lack(asked, node, way[0]) is None]
    if not open_ways:
        refusals.append(look.unmet(asked.dataset, name, wanted, found))
    elif not fit:
        refusals += [lack for way, _ in open_ways if (lack := _lack(asked, node, way))]
    way, needed_bytes = fit[0] if fit else (None, 0)
    if needed_bytes > found.free_bytes:
        refusals.append(look.full(name, found, needed_bytes))
    state: State = "refused" if refusals else "ready"
    return Planned(node, found, state, way, needed_bytes, tuple(refusals))


def home(node: Node, dataset: Dataset) -> str:
    """The node's folder for attempts at a data set; two nodes of one machine have two."""
    return f"{node.folder}/prepare/{dataset.name}-{node.name}"


def words(planned: Planned) -> str:
    """What is to be done, for a person."""
    if planned.way is None:
        return {"there": "is there; nothing is overwritten"}.get(
            planned.state, "cannot be prepared"
        )
    begun = (
        f", {planned.found.have_bytes >> 20} MiB of it begun" if planned.found.have_bytes else ""
    )
    return f"{planned.way.title}; needs {planned.needed_bytes >> 20} MiB of free disk{begun}"


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


def _lack(asked: Asked, node: Node, way: Way) -> Finding | None:
    """What a node lacks to run a way's tool."""
    if way.tool is None:
        return None
    if not node.in_container:
        return Finding(
            "error",
            "NO-DOCKER",
            node.name,
            f"runtime: {node.runtime}, where no container runs",
            f"runtime: docker, since preparing {way.title}",
            "say runtime: docker, or put ready-made files into --from",
        )
    return None if way.tool.image in asked.images else _no_image(node, way.tool)


def _no_image(node: Node, tool: Tool) -> Finding:
    return Finding(
        "error",
        "IMAGE-MISSING",
        node.name,
        f"image {tool.image} was never prepared",
        f"image {tool.image}, which has {tool.program}",
        f"dlperf-orch provision INVENTORY --image {tool.image}",
    )
