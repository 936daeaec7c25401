"""The output of ``data``: tables, findings, the JSON document, the exit code."""

import dataclasses
from collections.abc import Mapping, Sequence

from orchestrator import errors, words
from orchestrator.console import Voice
from orchestrator.fleet import folded
from orchestrator.inputs import sites
from orchestrator.model.facts import JSON
from orchestrator.model.site import Finding
from orchestrator.preparing_data import held, plan
from orchestrator.preparing_data.all_nodes import NodeOutcome
from orchestrator.preparing_data.held import Holdings
from orchestrator.preparing_data.plan import DataRequest, Planned, Plans

HELD = ("path", "files", "size", "digest", "parts")


@dataclasses.dataclass(frozen=True, slots=True)
class Preparation:
    """A preparation at its end: the outcomes of nodes, and what they hold now."""

    request: DataRequest
    plans: Plans
    outcomes: Mapping[str, NodeOutcome]
    observed: Holdings


def holdings(voice: Voice, request: DataRequest, observed: Holdings) -> int:
    """Show what nodes hold; exit code."""
    rows = [
        (
            node.name,
            *held.row(request.dataset, _path(node.data, request), observed.by_node.get(node.name)),
        )
        for node in request.cluster.members
    ]
    voice.table(f"Data set {request.dataset.name}: {request.dataset.title}", ("node", *HELD), rows)
    content: dict[str, JSON] = {"held": held.document(observed)}
    return _end(voice, content, request, observed.findings, observed.failures)


def plans(voice: Voice, request: DataRequest, plans_found: Plans) -> None:
    """Show what is to be done."""
    rows = [
        (
            name,
            _path(planned.node.data, request),
            words.size(planned.observed.free_bytes),
            plan.summary(planned),
        )
        for name, planned in plans_found.nodes.items()
    ]
    title = f"Data set {request.dataset.name}: what is to be done"
    voice.table(title, ("node", "path", "free", "what"), rows)


def dry_run(voice: Voice, request: DataRequest, plans_found: Plans) -> int:
    """Show what would be done, and what stands against it; exit code."""
    plans(voice, request, plans_found)
    findings = [finding for node in plans_found.nodes.values() for finding in node.findings]
    nodes: dict[str, JSON] = {name: _plan(node) for name, node in plans_found.nodes.items()}
    content: dict[str, JSON] = {"dry_run": True, "nodes": nodes}
    return _end(voice, content, request, findings, plans_found.failures)


def outcomes(voice: Voice, ended: Preparation, signal_number: int) -> int:
    """Show the outcomes of nodes; exit code.

    Args:
        signal_number: of the signal that ended it; 0 for none.
    """
    request, outcomes, observed = ended.request, ended.outcomes, ended.observed
    _table(voice, request, outcomes, observed)
    refused = [
        finding
        for name, planned in ended.plans.nodes.items()
        for finding in planned.findings
        if outcomes[name].state == "refused"
    ]
    failures = [outcome.error for outcome in outcomes.values() if outcome.error]
    content: dict[str, JSON] = {
        "nodes": {name: {"state": e.state, "message": e.message} for name, e in outcomes.items()},
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
    """Show findings and failures, write the document; exit code."""
    if findings:
        voice.findings(findings)
    number = content.get("signal")
    if isinstance(number, int):
        failures = [*failures, errors.Interrupted(number)]
    for failure in folded(failures):
        voice.line(str(failure))
    bad = [finding.node for finding in findings if finding.severity == "error"]
    command = sites.leaving_out(
        request.cluster, (*bad, *(failure.where.get("node", "") for failure in failures))
    )
    if command:
        voice.line(f"or leave them out: {command}")
    unfit = 5 if bad else 0
    code = errors.joined((unfit, *(failure.exit_code for failure in failures)))
    document: dict[str, JSON] = {
        "exit_code": code,
        "data": request.dataset.name,
        **content,
        "findings": [dataclasses.asdict(finding) for finding in findings],
        "errors": [{"code": e.code, "message": e.cause, **e.where} for e in failures],
    }
    voice.document(document)
    return code


def _table(
    voice: Voice, request: DataRequest, outcomes: Mapping[str, NodeOutcome], observed: Holdings
) -> None:
    paths = {node.name: _path(node.data, request) for node in request.cluster.members}
    rows = [
        (
            name,
            outcome.state,
            outcome.message,
            *held.row(request.dataset, paths[name], observed.by_node.get(name)),
        )
        for name, outcome in outcomes.items()
    ]
    voice.table(f"Data set {request.dataset.name}", ("node", "outcome", "why", *HELD), rows)


def _path(data: Mapping[str, str], request: DataRequest) -> str:
    return data[request.dataset.name]


def _plan(planned: Planned) -> JSON:
    return {
        "state": planned.state,
        "what": plan.summary(planned),
        "needed_bytes": planned.needed_bytes,
        "free_bytes": planned.observed.free_bytes,
    }
