"""What people and programs see of data sets: tables, findings, one document, an exit code."""

import dataclasses
from collections.abc import Mapping, Sequence

from orchestrator import errors
from orchestrator.console import Voice
from orchestrator.fleet import folded
from orchestrator.model.facts import JSON
from orchestrator.model.site import Finding
from orchestrator.preparing import held, plan
from orchestrator.preparing.held import Verdict
from orchestrator.preparing.plan import Asked, Planned, Plans
from orchestrator.preparing.run import Outcome

HELD = ("path", "files", "size", "digest", "parts")


@dataclasses.dataclass(frozen=True, slots=True)
class Ended:
    """What came of a preparation on each node, and what the nodes hold now."""

    asked: Asked
    plans: Plans
    outcomes: Mapping[str, Outcome]
    found: Verdict


@dataclasses.dataclass(frozen=True, slots=True)
class Wrong:
    """What is wrong with nodes, and which of them could not be asked."""

    findings: Sequence[Finding]
    failures: Sequence[errors.DlperfError]


def holdings(voice: Voice, asked: Asked, found: Verdict) -> int:
    """Show what nodes hold; exit code."""
    rows = [
        (
            node.name,
            *held.row(asked.dataset, _path(node.data, asked), found.held.get(node.name)),
        )
        for node in asked.cluster.members
    ]
    voice.table(f"Data set {asked.dataset.name}: {asked.dataset.title}", ("node", *HELD), rows)
    said: dict[str, JSON] = {"held": held.document(found)}
    return _end(voice, asked, Wrong(found.findings, found.failures), said)


def plans(voice: Voice, asked: Asked, found: Plans) -> None:
    """Show what is to be done."""
    rows = [
        (
            name,
            _path(planned.node.data, asked),
            str(planned.found.free_bytes >> 20),
            plan.words(planned),
        )
        for name, planned in found.nodes.items()
    ]
    title = f"Data set {asked.dataset.name}: what is to be done"
    voice.table(title, ("node", "path", "free MiB", "what"), rows)


def dry_run(voice: Voice, asked: Asked, found: Plans) -> int:
    """Show what would be done, and what stands against it; exit code."""
    plans(voice, asked, found)
    refusals = [refusal for planned in found.nodes.values() for refusal in planned.refusals]
    said: dict[str, JSON] = {name: _plan(node) for name, node in found.nodes.items()}
    wrong = Wrong(refusals, found.failures)
    return _end(voice, asked, wrong, {"dry_run": True, "nodes": said})


def outcomes(
    voice: Voice,
    ended: Ended,
    signal_number: int,
) -> int:
    """Show what came of each node; exit code.

    Args:
        signal_number: of the signal that ended it; 0 for none.
    """
    asked, plans, outcomes, found = ended.asked, ended.plans, ended.outcomes, ended.found
    _table(voice, asked, outcomes, found)
    refused = [
        finding
        for name, planned in plans.nodes.items()
        for finding in planned.refusals
        if outcomes[name].state == "refused"
    ]
    failures = [outcome.error for outcome in outcomes.values() if outcome.error]
    said: dict[str, JSON] = {
        "nodes": {name: {"state": e.state, "message": e.words} for name, e in outcomes.items()},
        "held": held.document(found),
    }
    if signal_number:
        said["signal"] = signal_number
    wrong = Wrong((*refused, *found.findings), (*failures, *found.failures))
    return _end(voice, asked, wrong, said)


def _end(voice: Voice, asked: Asked, wrong: Wrong, said: Mapping[str, JSON]) -> int:
    """Show what is wrong, and say everything to programs; exit code."""
    findings, failures = wrong.findings, wrong.failures
    if findings:
        voice.findings(findings)
    number = said.get("signal")
    if isinstance(number, int):
        failures = [*failures, errors.Interrupted(number)]
    for failure in folded(failures):
        voice.line(str(failure))
    unfit = 5 if any(finding.severity == "error" for finding in findings) else 0
    code = errors.joined((unfit, *(failure.exit_code for failure in failures)))
    document: dict[str, JSON] = {
        "exit_code": code,
        "data": asked.dataset.name,
        **said,
        "findings": [dataclasses.asdict(finding) for finding in findings],
        "errors": [{"code": e.code, "message": e.cause, **e.where} for e in failures],
    }
    voice.document(document)
    return code


def _table(voice: Voice, asked: Asked, outcomes: Mapping[str, Outcome], found: Verdict) -> None:
    paths = {node.name: _path(node.data, asked) for node in asked.cluster.members}
    rows = [
        (
            name,
            outcome.state,
            outcome.words,
            *held.row(asked.dataset, paths[name], found.held.get(name)),
        )
        for name, outcome in outcomes.items()
    ]
    voice.table(f"Data set {asked.dataset.name}", ("node", "outcome", "why", *HELD), rows)


def _path(data: Mapping[str, str], asked: Asked) -> str:
    return data[asked.dataset.name]


def _plan(planned: Planned) -> JSON:
    return {
        "state": planned.state,
        "what": plan.words(planned),
        "needed_bytes": planned.needed_bytes,
        "free_bytes": planned.found.free_bytes,
    }
