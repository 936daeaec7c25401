"""Copies of a data set on nodes: read file by file, judged, compared, and shown.

The output of ``data`` is here too: tables, findings, the JSON document, the exit code.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator import errors, words
from orchestrator.checks import data as data_checks
from orchestrator.console import Voice
from orchestrator.datasets import Classes, Dataset, contents
from orchestrator.datasets.contents import Contents
from orchestrator.deadlines import DATA_COUNT_S
from orchestrator.fleet import Fleet, ask_all
from orchestrator.inputs import probing, sites
from orchestrator.model.facts import JSON
from orchestrator.model.findings import found
from orchestrator.model.node import Node
from orchestrator.model.site import DataDigest, Finding
from orchestrator.preparing_data.prepare import DataRequest, NodeOutcome, NodeWork
from orchestrator.probes import data

HELD = ("path", "files", "size", "digest", "parts")


Copy = tuple[DataDigest, Contents]
"""One node's copy of a data set."""


@dataclass(frozen=True, slots=True)
class Copies:
    """Copies of a data set by node name, all findings about them, and errors of silent nodes."""

    by_node: Mapping[str, Copy]
    findings: tuple[Finding, ...]
    failures: tuple[errors.DlperfError, ...]


def read(fleet: Fleet, dataset: Dataset, names: Sequence[str]) -> Copies:
    """Read the data set on these nodes anew, file by file, and compare the nodes."""
    nodes = {node.name: node for node in fleet.cluster.members}
    answers = ask_all(names, lambda name: _inspect(fleet, dataset, nodes[name]))
    looked = {answer.node: answer.value for answer in answers if answer.value}
    held = {name: copy for name, (copy, _) in looked.items() if copy}
    findings = [finding for _, own in looked.values() for finding in own]
    digests = {name: digest for name, (digest, _) in held.items()}
    between = data_checks.digests(dataset.name, digests)
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
    return Copies(held, tuple(findings), tuple(failures))


def _inspect(fleet: Fleet, dataset: Dataset, node: Node) -> tuple[Copy | None, tuple[Finding, ...]]:
    """Return a node's copy, None if a first look finds none, and findings about the node alone."""
    path, transport = node.data[dataset.name], fleet.transports[node.name]
    contained = fleet.cluster.confines(node)
    observed = probing.data_states(transport, {dataset.name: path}, contained=contained)
    findings = list(data_checks.states(node, observed))
    if observed[dataset.name] != "present":
        return None, tuple(findings)
    own = probing.ask(transport, contents.probe(dataset, path), DATA_COUNT_S)
    digest = probing.ask(transport, data.probe(path, node.folder, fresh=True), DATA_COUNT_S)
    findings += contents.judge(dataset, node.name, path, own)
    return (digest, own), tuple(findings)


def show(voice: Voice, request: DataRequest, observed: Copies) -> int:
    """Show what nodes hold; return the exit code."""
    dataset = request.dataset
    rows = [(name, *row) for name, row in _held(request, observed).items()]
    voice.table(f"Data set {dataset.name}: {dataset.title}", ("node", *HELD), rows)
    content = {"held": _document(dataset, observed)}
    return _end(voice, content, request, observed.findings, observed.failures)


def show_plans(voice: Voice, request: DataRequest, works: Mapping[str, NodeWork]) -> None:
    name = request.dataset.name
    rows = [
        (node, todo.path, words.size(todo.observed.free_bytes), todo.summary)
        for node, todo in works.items()
    ]
    voice.table(f"Data set {name}: what is to be done", ("node", "path", "free", "what"), rows)


def show_dry_run(
    voice: Voice,
    request: DataRequest,
    works: Mapping[str, NodeWork],
    failures: Sequence[errors.DlperfError],
) -> int:
    """Show what would be done, and what stands against it; return the exit code."""
    show_plans(voice, request, works)
    nodes: dict[str, JSON] = {
        name: {
            "state": todo.state,
            "what": todo.summary,
            "needed_bytes": todo.needed_bytes,
            "free_bytes": todo.observed.free_bytes,
        }
        for name, todo in works.items()
    }
    findings = [finding for todo in works.values() for finding in todo.findings]
    return _end(voice, {"dry_run": True, "nodes": nodes}, request, findings, failures)


def show_outcomes(
    voice: Voice,
    request: DataRequest,
    works: Mapping[str, NodeWork],
    ended: Mapping[str, NodeOutcome],
    observed: Copies,
    signal_number: int,
) -> int:
    """Show the outcomes of nodes; return the exit code."""
    held = _held(request, observed)
    rows = [(name, end.state, end.message, *held[name]) for name, end in ended.items()]
    voice.table(f"Data set {request.dataset.name}", ("node", "outcome", "why", *HELD), rows)
    refused = [
        finding
        for name, todo in works.items()
        for finding in todo.findings
        if ended[name].state == "refused"
    ]
    failures = [outcome.error for outcome in ended.values() if outcome.error]
    content: dict[str, JSON] = {
        "nodes": {name: {"state": e.state, "message": e.message} for name, e in ended.items()},
        "held": _document(request.dataset, observed),
    }
    if signal_number:
        content["signal"] = signal_number
        failures.append(errors.Interrupted(signal_number))
    findings = (*refused, *observed.findings)
    return _end(voice, content, request, findings, (*failures, *observed.failures))


def _held(request: DataRequest, observed: Copies) -> dict[str, tuple[str, ...]]:
    """Return by node path, files, size, digest and parts for a table; blanks without a copy."""
    rows: dict[str, tuple[str, ...]] = {}
    for node in request.cluster.members:
        path = node.data[request.dataset.name]
        rows[node.name] = (path, "", "", "", "")
        if copy := observed.by_node.get(node.name):
            digest, own = copy
            size_gib = f"{digest.size_bytes / (1 << 30):.1f} GiB"
            parts = contents.counted(request.dataset, own)
            rows[node.name] = (path, str(digest.files), size_gib, digest.digest[:16], parts)
    return rows


def _document(dataset: Dataset, observed: Copies) -> dict[str, JSON]:
    return {
        name: {
            **dataclasses.asdict(digest),
            # Names of a thousand files are in the digest.
            "parts": [
                seen if isinstance(part, Classes) else {"files": len(seen)}
                for part, seen in zip(dataset.parts, own, strict=True)
            ],
        }
        for name, (digest, own) in observed.by_node.items()
    }


def _end(
    voice: Voice,
    content: Mapping[str, JSON],
    request: DataRequest,
    findings: Sequence[Finding],
    failures: Sequence[errors.DlperfError],
) -> int:
    if findings:
        voice.findings(findings)
    bad = [finding.node for finding in findings if finding.severity == "error"]
    failed = [failure.where.get("node", "") for failure in failures]
    if command := sites.leaving_out(request.cluster, (*bad, *failed)):
        voice.line(f"or leave them out: {command}")
    document = {
        "data": request.dataset.name,
        **content,
        "findings": [dataclasses.asdict(finding) for finding in findings],
    }
    return voice.finish(document, failures, code=5 if bad else 0)
