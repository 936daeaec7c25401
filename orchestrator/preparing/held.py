"""What nodes hold of a data set: asked, judged, and compared with each other."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator import checks, datasets, errors
from orchestrator.datasets import Dataset, contents, judge
from orchestrator.datasets.contents import Contents, FilesSeen
from orchestrator.deadlines import DATA_COUNT_S
from orchestrator.fleet import Fleet, ask_all
from orchestrator.inputs import probing
from orchestrator.model.cluster import Node
from orchestrator.model.facts import JSON
from orchestrator.model.site import DataDigest, Finding
from orchestrator.probes import data


@dataclass(frozen=True, slots=True)
class Held:
    """What one node holds.

    Args:
        found: what is wrong with it by itself.
    """

    digest: DataDigest
    contents: Contents
    found: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What some nodes hold, by node name, with what is wrong; and those that gave no answer."""

    held: Mapping[str, Held]
    findings: tuple[Finding, ...]
    failures: tuple[errors.DlperfError, ...]


def verdict(fleet: Fleet, dataset: Dataset, names: Sequence[str]) -> Verdict:
    """Each node's data set looked at anew, file by file, and compared with the others'."""
    nodes = {node.name: node for node in fleet.cluster.members}
    answers = ask_all(names, lambda name: _ask(fleet, dataset, nodes[name]))
    held = {answer.node: answer.value for answer in answers if answer.value}
    found = [finding for seen in held.values() for finding in seen.found]
    between = checks.digests(dataset.name, {name: seen.digest for name, seen in held.items()})
    # Which parts a set may lack is this data set's own to say, and was said.
    found += [finding for finding in between if finding.code != "DATA-INCOMPLETE"]
    failures: list[errors.DlperfError] = []
    for answer in answers:
        if isinstance(answer.error, errors.UnfitError):
            found.append(_unread(dataset, answer.node, answer.error))
        elif answer.error is not None:
            failures.append(answer.error)
    return Verdict(held, tuple(found), tuple(failures))


def contents_of(fleet: Fleet, dataset: Dataset, node: Node, path: str) -> Contents:
    """What lies at a path of a node, wherever the inventory has the data set.

    Raises:
        NodeError: no answer.
        UnfitError: it cannot be read, or not all of it.
    """
    question = contents.probe(dataset, path)
    return probing.ask(fleet.transports[node.name], question, DATA_COUNT_S)


def size(fleet: Fleet, node: Node, name: str) -> DataDigest:
    """Count, size and digest of a data set as the node remembers it, else as it is.

    Raises:
        NodeError: no answer.
        UnfitError: it cannot be read.
    """
    question = data.probe(node.data[name], node.folder, fresh=False)
    return probing.ask(fleet.transports[node.name], question, DATA_COUNT_S)


def row(dataset: Dataset, path: str, held: Held | None) -> tuple[str, ...]:
    """Path, files, size, digest and parts, for a table; blanks for what nobody knows."""
    if held is None:
        return path, "", "", "", ""
    digest = held.digest
    size_gib = f"{digest.size_bytes / (1 << 30):.1f} GiB"
    parts = judge.counted(dataset, held.contents)
    return path, str(digest.files), size_gib, digest.digest[:16], parts


def document(verdict: Verdict) -> dict[str, JSON]:
    """By node name what it holds, for programs."""
    return {name: _plain(seen) for name, seen in verdict.held.items()}


def _plain(held: Held) -> JSON:
    parts: list[JSON] = []
    for part in held.contents:
        said: dict[str, JSON] = dataclasses.asdict(part)
        # Names of a thousand files are in the digest.
        parts.append({"files": len(part.sizes)} if isinstance(part, FilesSeen) else said)
    return {**dataclasses.asdict(held.digest), "parts": parts}


def _ask(fleet: Fleet, dataset: Dataset, node: Node) -> Held:
    transport = fleet.transports[node.name]
    path = node.data[dataset.name]
    own = contents_of(fleet, dataset, node, path)
    question = data.probe(path, node.folder, fresh=True)
    digest = probing.ask(transport, question, DATA_COUNT_S)
    found = list(judge.judge(dataset, node.name, path, own))
    like = datasets.find(dataset.like) if dataset.like else None
    if like is not None and like.name in node.data:
        other = contents_of(fleet, like, node, node.data[like.name])
        found += judge.unlike(dataset, node.name, own, other)
    return Held(digest, own, tuple(found))


def _unread(dataset: Dataset, node: str, error: errors.UnfitError) -> Finding:
    needed = f"data set {dataset.name}, readable"
    return Finding("error", error.code, node, error.cause, needed, error.fix or "see there")
