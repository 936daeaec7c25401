"""Read a data set on nodes file by file, judge it, and compare it between nodes."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator import checks, errors
from orchestrator.datasets import Dataset, contents, judge
from orchestrator.datasets.contents import Contents
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
            error, needed = answer.error, f"data set {dataset.name}, readable"
            fix = error.fix or "see there"
            findings.append(
                found(error.code, answer.node, error.cause, needed, fix, severity="error")
            )
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
    """Return path, files, size, digest and parts for a table; blanks without a copy."""
    if holding is None:
        return path, "", "", "", ""
    digest = holding.digest
    size_gib = f"{digest.size_bytes / (1 << 30):.1f} GiB"
    parts = judge.counted(dataset, holding.contents)
    return path, str(digest.files), size_gib, digest.digest[:16], parts


def document(observed: Holdings) -> dict[str, JSON]:
    """Return the JSON of the nodes' copies, by node name."""
    return {
        name: {
            **dataclasses.asdict(holding.digest),
            # Names of a thousand files are in the digest.
            "parts": [
                {"files": len(part)} if isinstance(part, dict) else dataclasses.asdict(part)
                for part in holding.contents
            ],
        }
        for name, holding in observed.by_node.items()
    }


def _inspect(
    fleet: Fleet, dataset: Dataset, node: Node
) -> tuple[Holding | None, tuple[Finding, ...]]:
    """Return a node's copy, None if a first look finds none, and findings about the node alone."""
    paths = {dataset.name: node.data[dataset.name]}
    contained = fleet.cluster.confines(node)
    observed = probing.data_states(fleet.transports[node.name], paths, contained=contained)
    findings = list(checks.states(node, observed))
    if observed[dataset.name] != "present":
        return None, tuple(findings)
    path = paths[dataset.name]
    own = contents_of(fleet, dataset, node, path)
    question = data.probe(path, node.folder, fresh=True)
    digest = probing.ask(fleet.transports[node.name], question, DATA_COUNT_S)
    findings += judge.judge(dataset, node.name, path, own)
    return Holding(digest, own), tuple(findings)
