"""How nodes are to get a data set: what lies there, and the way that fits."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from orchestrator import errors, words
from orchestrator.datasets import Dataset, Way, labels, look
from orchestrator.datasets.look import Observed, Paths
from orchestrator.deadlines import DATA_LOOK_S
from orchestrator.disk import on_disk
from orchestrator.fleet import Fleet
from orchestrator.inputs import probing
from orchestrator.model.cluster import Cluster
from orchestrator.model.findings import found
from orchestrator.model.node import Node
from orchestrator.model.site import Finding
from orchestrator.probes import first_look
from orchestrator.transports import Transport

MOST_LABEL_BYTES = 64 << 20
State = Literal["there", "ready", "refused"]


@dataclass(frozen=True, slots=True)
class DataRequest:
    """The data set, nodes and sources that the command line names.

    Args:
        cluster: with the chosen nodes only.
        source: folder of sources on the nodes; None if none is named.
    """

    dataset: Dataset
    cluster: Cluster
    source: str | None


@dataclass(frozen=True, slots=True)
class Planned:
    """The plan for one node.

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
    """The plans by node name, and the errors of silent nodes.

    Args:
        labels: of validation images, by node name, where they are needed.
    """

    nodes: Mapping[str, Planned]
    labels: Mapping[str, bytes]
    failures: tuple[errors.DlperfError, ...]


def planned(fleet: Fleet, request: DataRequest, name: str) -> Planned:
    """Look at a node and plan its preparation.

    Raises:
        NodeError, UnfitError: it gave no answer that can be read, or a mount there hangs.
    """
    node = next(member for member in request.cluster.members if member.name == name)
    _refuse_hung(fleet, request, node)
    paths = Paths(node.data[request.dataset.name], request.source, home(node, request.dataset))
    question = look.probe(request.dataset, paths)
    observed = probing.ask(fleet.transports[name], question, DATA_LOOK_S)
    if observed.target == "there":
        return Planned(node, observed, "there", None, 0, ())
    findings = list(look.findings(request.dataset, name, paths, observed))
    open_ways = look.ways(request.dataset, observed)
    if not open_ways:
        findings.append(look.unmet(request.dataset, name, paths, observed))
    way, needed_bytes = open_ways[0] if open_ways else (None, 0)
    if needed_bytes > observed.free_bytes:
        findings.append(look.full(name, observed, needed_bytes))
    state: State = "refused" if findings else "ready"
    return Planned(node, observed, state, way, needed_bytes, tuple(findings))


def home(node: Node, dataset: Dataset) -> str:
    """Return the node's folder for attempts; two nodes of one machine have two."""
    return f"{node.folder}/prepare/{dataset.name}-{node.name}"


def summary(planned: Planned) -> str:
    """Describe in one line what is to be done."""
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


def _refuse_hung(fleet: Fleet, request: DataRequest, node: Node) -> None:
    """Refuse a node on which the data set's path, or that of the sources, does not answer.

    Raises:
        UnfitError: MOUNT-HUNG.
    """
    paths = {"target": node.data[request.dataset.name]}
    if request.source:
        paths["source"] = request.source
    states = probing.data_states(fleet.transports[node.name], paths)
    for name, path in paths.items():
        if states[name] == "hung":
            raise errors.UnfitError(
                f"{path}: no answer in {first_look.LIMIT_S} s",
                code="MOUNT-HUNG",
                node=node.name,
                fix="remount the file system; its server may be gone",
            )


def given_labels(path: Path | None) -> bytes | None:
    """Read the user's labels file as lines ``FILE CLASS``; None if none is given.

    Raises:
        LocalError: it cannot be read.
        UsageError: LABELS; it is in no known form.
    """
    if path is None:
        return None
    with on_disk(path, code="LABELS", fix="give a file that can be read"):
        text = path.read_text(errors="replace")
    try:
        return labels.lines(labels.parse(text, str(path))).encode()
    except errors.LogError as error:
        raise errors.UsageError(error.cause, code=error.code, fix=error.fix) from error


def labels_beside(fleet: Fleet, request: DataRequest, planned: Planned) -> bytes | Finding:
    """Read the labels file among a node's sources as ``FILE CLASS``; a finding without one.

    Raises:
        NodeError: the node does not answer.
    """
    node, name = planned.node.name, planned.observed.labels
    if not name:
        return found(
            "LABELS",
            node,
            f"neither --labels FILE nor {' or '.join(labels.NAMES)} in {request.source}",
            "the class of each validation image",
        )
    path = f"{request.source}/{name}"
    try:
        text = _whole(fleet.transports[node], path).decode(errors="replace")
        return labels.lines(labels.parse(text, path)).encode()
    except errors.LogError as error:
        needed = "the class of each validation image"
        return found(error.code, node, error.cause, needed, error.fix, severity="error")


def _whole(transport: Transport, path: str) -> bytes:
    content = b""
    while len(content) < MOST_LABEL_BYTES and (piece := transport.get(path, len(content))):
        content += piece
    return content
