"""Plan how nodes get a data set, by what they have of it and the ways that fit."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from orchestrator import errors, words
from orchestrator.datasets import Dataset, Way, look
from orchestrator.datasets.look import Observed
from orchestrator.deadlines import DATA_LOOK_S
from orchestrator.disk import on_disk
from orchestrator.fleet import Fleet
from orchestrator.inputs import probing
from orchestrator.model.cluster import Cluster
from orchestrator.model.findings import found
from orchestrator.model.node import Node
from orchestrator.model.site import Finding
from orchestrator.probes import first_look

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

    def home(self, node: Node) -> str:
        """Return a node's folder for attempts; two nodes of one machine have two."""
        return f"{node.folder}/prepare/{self.dataset.name}-{node.name}"


@dataclass(frozen=True, slots=True)
class Planned:
    """The plan for one node.

    Args:
        way: None unless ready.
        needed_bytes: of free disk.
        labels: the classes of validation images as the script wants them, where it does.
    """

    node: Node
    observed: Observed
    way: Way | None = None
    needed_bytes: int = 0
    findings: tuple[Finding, ...] = ()
    labels: bytes = b""

    @property
    def state(self) -> State:
        """Return there (something lies at the path), ready, or refused for its findings."""
        if self.observed.target == "there":
            return "there"
        return "refused" if self.findings else "ready"

    @property
    def summary(self) -> str:
        """Describe in one line what is to be done."""
        if self.state == "there":
            return "is there; nothing is overwritten"
        if self.way is None:
            return "cannot be prepared"
        have_bytes = self.observed.have_bytes
        begun = f", {words.size(have_bytes)} of it begun" if have_bytes else ""
        return f"{self.way.title}; needs {words.size(self.needed_bytes)} of free disk{begun}"


def planned(fleet: Fleet, request: DataRequest, name: str, given: bytes | None) -> Planned:
    """Look at a node and plan its preparation.

    Args:
        given: classes of validation images from the command line, as ``given_labels`` reads them.

    Raises:
        NodeError, UnfitError: it gave no answer that can be read, or a mount there hangs.
    """
    node = next(member for member in request.cluster.members if member.name == name)
    target, source = node.data[request.dataset.name], request.source
    looked_at = {"target": target, **({"source": source} if source else {})}
    for place, state in probing.data_states(fleet.transports[name], looked_at).items():
        if state == "hung":
            raise errors.UnfitError(
                f"{looked_at[place]}: no answer in {first_look.LIMIT_S} s",
                code="MOUNT-HUNG",
                node=name,
                fix="remount the file system; its server may be gone",
            )
    question = look.probe(request.dataset, target, source, request.home(node))
    observed = probing.ask(fleet.transports[name], question, DATA_LOOK_S)
    if observed.target == "there":
        return Planned(node, observed)
    way, needed_bytes = look.choose_way(request.dataset, observed) or (None, 0)
    findings = list(look.findings(request.dataset, name, target, observed, needed_bytes))
    lines = b""
    if way is None:
        findings.append(look.unmet(request.dataset, name, source, observed))
    elif way.labels:
        answer = given or _labels_beside(fleet, request, node, observed)
        if isinstance(answer, Finding):
            findings.append(answer)
        else:
            lines = answer
    return Planned(node, observed, way, needed_bytes, tuple(findings), lines)


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
        return look.parse_labels(text, str(path))
    except errors.LogError as error:
        raise errors.UsageError(error.cause, code=error.code, fix=error.fix) from error


def _labels_beside(
    fleet: Fleet, request: DataRequest, node: Node, observed: Observed
) -> bytes | Finding:
    """Read the labels file among a node's sources as ``FILE CLASS``; a finding without one.

    Raises:
        NodeError: the node does not answer.
    """
    needed = "the class of each validation image"
    if not observed.labels:
        seen = f"neither --labels FILE nor {' or '.join(look.LABEL_FILES)} in {request.source}"
        return found("LABELS", node.name, seen, needed)
    path, content = f"{request.source}/{observed.labels}", b""
    transport = fleet.transports[node.name]
    while len(content) < MOST_LABEL_BYTES and (piece := transport.get(path, len(content))):
        content += piece
    try:
        return look.parse_labels(content.decode(errors="replace"), path)
    except errors.LogError as error:
        return found(error.code, node.name, error.cause, needed, error.fix, severity="error")
