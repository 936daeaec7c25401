"""What nodes hold of a data set: read file by file, judged, and compared between nodes."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator import checks, datasets, errors
from orchestrator.datasets import Dataset, contents, judge
from orchestrator.datasets.contents import Contents, FilesSeen
from orchestrator.deadlines import DATA_COUNT_S
from orchestrator.fleet import Fleet, ask_all
from orchestrator.inputs import probing
from orchestrator.model.facts import JSON
from orchestrator.model.findings import found
from orchestrator.model.node import Node
from orchestrator.model.site import DataDigest, Finding
from orchestrator.probes import data


@dataclass(frozen=True, slots=True)
class Holding:
    """One node's copy of a data set."""

    digest: DataDigest
    contents: Contents


@dataclass(frozen=True, slots=True)
class Holdings:
    """Copies of a data set by node name, all findings about them, and errors of silent nodes."""

    by_node: Mapping[str, Holding]
    findings: tuple[Finding, ...]
    failures: tuple[errors.DlperfError, ...]


def holdings(fleet: Fleet, dataset: Dataset, names: Sequence[str]) -> Holdings:
    """Read the data set on these nodes anew, file by file, and compare the nodes."""
    nodes = {node.name: node for node in fleet.cluster.members}
    answers = ask_all(names, lambda name: _inspect(fleet, dataset, nodes[name]))
    looked = {answer.node: answer.value for answer in answers if answer.value}
    held = {name: holding for name, (holding, _) in looked.items() if holding}
    findings = [finding for _, own in looked.values() for finding in own]
    between = checks.digests(dataset.name, {name: holding.digest for name, holding in held.items()})
    # The data set's own rules have already judged which parts it may lack.
    findings += [finding for finding in between if finding.code != "DATA-INCOMPLETE"]
    failures: list[errors.DlperfError] = []
    for answer in answers:
        if isinstance(answer.error, errors.UnfitError):
            findings.append(_unread(dataset, answer.node, answer.error))
        elif answer.error is not None:
            failures.append(answer.error)
    return Holdings(held, tuple(findings), tuple(failures))


def contents_of(fleet: Fleet, dataset: Dataset, node: Node, path: str) -> Contents:
    """Return the contents of any path of a node, judged by no rule yet.

    Raises:
        NodeError: no answer.
        UnfitError: it cannot be read, or not all of it.
    """
    question = contents.probe(dataset, path)
    return probing.ask(fleet.transports[node.name], question, DATA_COUNT_S)


def row(dataset: Dataset, path: str, holding: Holding | None) -> tuple[str, ...]:
    """Return path, files, size, digest and parts for a table; blanks if ``held`` is None."""
    if holding is None:
        return path, "", "", "", ""
    digest = holding.digest
    size_gib = f"{digest.size_bytes / (1 << 30):.1f} GiB"
    parts = judge.counted(dataset, holding.contents)
    return path, str(digest.files), size_gib, digest.digest[:16], parts


def document(observed: Holdings) -> dict[str, JSON]:
    """Return the JSON of the nodes' copies, by node name."""
    return {name: _plain(holding) for name, holding in observed.by_node.items()}


def _plain(holding: Holding) -> JSON:
    parts: list[JSON] = []
    for part in holding.contents:
        part_document: dict[str, JSON] = dataclasses.asdict(part)
        # Names of a thousand files are in the digest.
        parts.append({"files": len(part.sizes)} if isinstance(part, FilesSeen) else part_document)
    return {**dataclasses.asdict(holding.digest), "parts": parts}


def _inspect(
    fleet: Fleet, dataset: Dataset, node: Node
) -> tuple[Holding | None, tuple[Finding, ...]]:
    """Return a node's copy, None if a first look finds none, and findings about the node alone."""
    like = datasets.find(dataset.like) if dataset.like else None
    names = [dataset.name, *([like.name] if like and like.name in node.data else [])]
    paths = {name: node.data[name] for name in names}
    contained = fleet.cluster.confines(node)
    observed = probing.data_states(fleet.transports[node.name], paths, contained=contained)
    findings = list(checks.states(node, observed))
    there = probing.with_present_data(node, observed)
    if dataset.name not in there.data:
        return None, tuple(findings)
    path = there.data[dataset.name]
    own = contents_of(fleet, dataset, node, path)
    question = data.probe(path, node.folder, fresh=True)
    digest = probing.ask(fleet.transports[node.name], question, DATA_COUNT_S)
    findings += judge.judge(dataset, node.name, path, own)
    if like is not None and like.name in there.data:
        other = contents_of(fleet, like, node, there.data[like.name])
        findings += judge.unlike(dataset, node.name, own, other)
    return Holding(digest, own), tuple(findings)


def _unread(dataset: Dataset, node: str, error: errors.UnfitError) -> Finding:
    needed = f"data set {dataset.name}, readable"
    return found(error.code, node, error.cause, needed, error.fix or "see there", severity="error")
