"""The output of ``data``: tables, findings, the JSON document, the exit code."""

import dataclasses
from collections.abc import Mapping, Sequence

from orchestrator import errors, words
from orchestrator.console import Voice
from orchestrator.inputs import sites
from orchestrator.model.facts import JSON
from orchestrator.model.site import Finding
from orchestrator.preparing_data import held, plan
from orchestrator.preparing_data.all_nodes import NodeOutcome
from orchestrator.preparing_data.held import Holdings
from orchestrator.preparing_data.plan import DataRequest, Planned

HELD = ("path", "files", "size", "digest", "parts")


def holdings(voice: Voice, request: DataRequest, observed: Holdings) -> int:
    """Show what nodes hold; return the exit code."""
    dataset = request.dataset
    rows = [
        (
            node.name,
            *held.row(dataset, node.data[dataset.name], observed.by_node.get(node.name)),
        )
        for node in request.cluster.members
    ]
    voice.table(f"Data set {dataset.name}: {dataset.title}", ("node", *HELD), rows)
    content: dict[str, JSON] = {"held": held.document(observed)}
    return _end(voice, content, request, observed.findings, observed.failures)


def plans(voice: Voice, request: DataRequest, planned: Mapping[str, Planned]) -> None:
    name = request.dataset.name
    rows = [
        (
            node,
            todo.node.data[name],
            words.size(todo.observed.free_bytes),
            plan.summary(todo),
        )
        for node, todo in planned.items()
    ]
    voice.table(f"Data set {name}: what is to be done", ("node", "path", "free", "what"), rows)


def dry_run(
    voice: Voice,
    request: DataRequest,
    planned: Mapping[str, Planned],
    failures: Sequence[errors.DlperfError],
) -> int:
    """Show what would be done, and what stands against it; return the exit code."""
    plans(voice, request, planned)
    nodes: dict[str, JSON] = {
        name: {
            "state": todo.state,
            "what": plan.summary(todo),
            "needed_bytes": todo.needed_bytes,
            "free_bytes": todo.observed.free_bytes,
        }
        for name, todo in planned.items()
    }
    findings = [finding for todo in planned.values() for finding in todo.findings]
    return _end(voice, {"dry_run": True, "nodes": nodes}, request, findings, failures)


def outcomes(
    voice: Voice,
    request: DataRequest,
    planned: Mapping[str, Planned],
    ended: Mapping[str, NodeOutcome],
    observed: Holdings,
    signal_number: int,
) -> int:
    """Show the outcomes of nodes; return the exit code.

    Args:
        observed: what nodes hold afterwards.
        signal_number: of the signal that ended it; 0 for none.
    """
    dataset = request.dataset
    paths = {node.name: node.data[dataset.name] for node in request.cluster.members}
    rows = [
        (
            name,
            outcome.state,
            outcome.message,
            *held.row(dataset, paths[name], observed.by_node.get(name)),
        )
        for name, outcome in ended.items()
    ]
    voice.table(f"Data set {dataset.name}", ("node", "outcome", "why", *HELD), rows)
    refused = [
        finding
        for name, todo in planned.items()
        for finding in todo.findings
        if ended[name].state == "refused"
    ]
    failures = [outcome.error for outcome in ended.values() if outcome.error]
    content: dict[str, JSON] = {
        "nodes": {name: {"state": e.state, "message": e.message} for name, e in ended.items()},
        "held": held.document(observed),
    }
    if signal_number:
        content["signal"] = signal_number
    findings = (*refused, *observed.findings)
    return _end(voice, content, request, findings, (*failures, *observed.failures))


def _end(
    voice: Voice,
    content: Mapping[str, JSON],
    request: DataRequest,
    findings: Sequence[Finding],
    failures: Sequence[errors.DlperfError],
) -> int:
    """Show findings and failures, and write the document; return the exit code."""
    if findings:
        voice.findings(findings)
    bad = [finding.node for finding in findings if finding.severity == "error"]
    failed = [failure.where.get("node", "") for failure in failures]
    if command := sites.leaving_out(request.cluster, (*bad, *failed)):
        voice.line(f"or leave them out: {command}")
    number = content.get("signal")
    if isinstance(number, int):
        failures = [*failures, errors.Interrupted(number)]
    document = {
        "data": request.dataset.name,
        **content,
        "findings": [dataclasses.asdict(finding) for finding in findings],
    }
    return voice.finish(document, failures, code=5 if bad else 0)
