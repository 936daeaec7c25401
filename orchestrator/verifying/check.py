"""A sweep's folder verified: chain of checksums, trials, cases, reports."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from orchestrator.verifying import cases, records, reports, trials
from orchestrator.verifying.cases import CaseTrial, Matrix
from orchestrator.verifying.differences import Findings, at, codes, items, number, text
from orchestrator.verifying.records import Folder
from orchestrator.verifying.trials import DerivedTrial

ENDED_OTHERWISE = ("failed", "infra-lost", "interrupted")
BY_LOGS = frozenset(
    {
        *("TRUNCATED", "NO-STEPS", "WINDOW", "SKIPPED-STEPS", "CLOCK-STEP", "NO-CLOCK"),
        *("NO-RESULT", "RATE-MISMATCH", "TRANSPORT", "TRANSPORT-UNPROVEN", "IB-HCA"),
    }
)
"""Reasons that this reader would see as well."""


def verified(folder: Path) -> Findings:
    """Everything in a sweep's folder that differs from what follows from its raw logs."""
    findings = Findings()
    place = Folder(folder, findings)
    records.check_sums(place)
    record = place.sealed("sweep.json")
    if record is None or not isinstance(at(record, "plan", "trials"), list):
        findings.not_derived["all numbers"] = "sweep.json does not say what was planned"
        return findings
    findings.same("sweep.json", "id", record.get("id"), folder.name)
    plan = record["plan"]
    assert isinstance(plan, Mapping)
    found = _cases(place, plan)
    reports.check(place, record, found)
    return findings


def _cases(place: Folder, plan: Mapping[str, object]) -> Matrix:
    """The cases as they follow from the logs."""
    events = records.events(place)
    for path in sorted((place.path / "attempts").glob("*/a*/attempt.json")):
        records.check_attempt(place, path.relative_to(place.path).as_posix())
    found = [_trial(place, plan, trial, events) for trial in items(plan.get("trials"))]
    _settle(plan, found)
    if reports.is_strict(place, found):
        for trial in found:
            marks = codes(trial.outcome.get("marks"))
            if marks:
                trial.exclude(f"marked {' '.join(marks)}, and --strict was given")
    _exclude_copies(found)
    canary = [trial for trial in found if trial.plan.get("canary")]
    for group in (canary, *(case.trials for case in cases.grouped(found))):
        for trial in cases.disagreeing(group):
            trial.exclude("other circumstances than the first valid trial")
    return Matrix(cases.grouped([it for it in found if not it.plan.get("canary")]), canary)


def _settle(plan: Mapping[str, object], found: Sequence[CaseTrial]) -> None:
    """Trials without a valid outcome are not needed where the others' interval is narrow enough."""
    often = at(plan, "method", "repeats")
    if not isinstance(often, Mapping):
        return
    least, share = number(often.get("min")), text(often.get("until_interval"))
    for case in cases.grouped([it for it in found if not it.plan.get("canary")]):
        first = next((k for k, it in enumerate(case.trials) if it.state != "valid"), None)
        before = cases.DerivedCase(case.case, case.trials[:first])
        width = cases.width(before)
        if width is None or least is None or len(before.values) < least:
            continue
        if width <= float(share.removesuffix("%") or 0) / 100:
            for trial in case.trials:
                trial.state = trial.state if trial.state == "valid" else "not-needed"


def _trial(
    place: Folder,
    plan: Mapping[str, object],
    trial: Mapping[str, object],
    events: Sequence[Mapping[str, object]],
) -> CaseTrial:
    name, log = text(trial.get("name")), f"logs/{text(trial.get('log'))}"
    ends = [it for it in events if it.get("event") == "outcome" and it.get("trial") == name]
    record = f"{log.removesuffix('.log')}.json"
    if not ends and not (place.path / record).exists():
        return CaseTrial(trial, name, "planned", DerivedTrial(), {}, "-", [], None)
    outcome = place.document(record) or {}
    _check_outcome(place, record, outcome, ends)
    state, case = text(outcome.get("state")), trial.get("case")
    nodes = [text(end.get("node")) for end in items(outcome.get("tasks"))]
    found = CaseTrial(
        trial, name, state or "invalid", DerivedTrial(), outcome, "-", nodes, place.sha256(log)
    )
    if state in ENDED_OTHERWISE or not isinstance(case, Mapping):
        reason = "a gang's end was seen while it ran, not in its log"
        place.findings.not_derived[f"{name}: {state}"] = reason
        return found
    try:
        found.derived = trials.derived(place.path / log, plan, case)
    except OSError:
        place.findings.differs(log, "", "no such file", "the log of a trial that counts")
        found.derived.reasons.append("its log is gone")
    records.check_raw_logs(place, record, outcome)
    _check_attempt(place, trial, found)
    _judge(place, record, found)
    return found


def _check_outcome(
    place: Folder,
    record: str,
    outcome: Mapping[str, object],
    ends: Sequence[Mapping[str, object]],
) -> None:
    """Compare an outcome with its event, and its log with both."""
    findings, attempt = place.findings, outcome.get("attempt")
    event = next((it for it in reversed(ends) if it.get("attempt") == attempt), None)
    log = f"{record.removesuffix('.json')}.log"
    if event is None:
        findings.differs(record, "attempt", attempt, "one of which events.jsonl has an outcome")
        return
    digest = place.sha256(record)
    if text(event.get("outcome")) and event.get("outcome") != digest:
        findings.differs(record, "sha256", digest, f"{event.get('outcome')} by events.jsonl")
    for key in ("trial", "state", "sha256"):
        findings.same(record, key, outcome.get(key), event.get(key))
    problems = items(outcome.get("problems"))
    first: Mapping[str, object] = problems[0] if problems else {}
    findings.same(record, "problems[0].code", first.get("code", ""), event.get("code", ""))
    found = place.sha256(log)
    if outcome.get("sha256") and found != outcome.get("sha256"):
        findings.differs(log, "sha256", found, f"{outcome.get('sha256')} by {record}")


def _check_attempt(place: Folder, trial: Mapping[str, object], found: CaseTrial) -> None:
    """Compare nodes and log with the attempt, and take the transport from its raw logs."""
    attempt = found.outcome.get("attempt")
    folder = f"attempts/{found.name}/a{attempt}"
    name = f"{folder}/attempt.json"
    quiet = Folder(place.path, Findings())  # it is checked by itself
    document = quiet.sealed(name)
    if document is None:
        place.findings.differs(name, "", "no such document", "an attempt that counts")
        return
    tasks = items(document.get("tasks"))
    record = f"logs/{text(trial.get('log')).removesuffix('.log')}.json"
    nodes = [text(task.get("node")) for task in tasks]
    place.findings.same(record, "tasks", found.nodes, nodes)
    rank = records.log_rank(document)
    raw = place.sha256(f"{folder}/r{rank}.log")
    if raw != found.sha256:
        log = f"logs/{text(trial.get('log'))}"
        place.findings.differs(log, "sha256", found.sha256, f"{raw}, of {folder}/r{rank}.log")
    transport, reasons = trials.transport(place.path / folder, document)
    found.transport = transport
    found.derived.reasons += reasons
    if found.outcome.get("transport") is not None:
        place.findings.same(record, "transport", found.outcome.get("transport"), transport)


def _judge(place: Folder, record: str, found: CaseTrial) -> None:
    """Compare the recorded state and number with the log."""
    outcome, derived, findings = found.outcome, found.derived, place.findings
    state, said = text(outcome.get("state")), codes(outcome.get("problems"))
    if state == "valid" and derived.reasons:
        findings.differs(record, "state", "valid", f"invalid: {'; '.join(derived.reasons)}")
        found.state = "invalid"
    elif state == "valid":
        written = {key: outcome.get(key) for key in ("throughput", "lines")}
        numbers = {"throughput": derived.throughput, "lines": derived.lines}
        findings.same(record, "", written, numbers)
    elif not derived.reasons:
        if BY_LOGS & {*said} or not said:
            findings.differs(
                record, "state", f"invalid: {' '.join(said)}", "valid: its log is whole"
            )
            found.state = "valid"
        else:
            reason = f"invalid by {' '.join(said)}, which this reader does not look for"
            findings.not_derived[f"{found.name}: state"] = reason


def _exclude_copies(found: Sequence[CaseTrial]) -> None:
    """Make trials invalid that stand on the same steps or bytes as another."""
    for trial in found:
        for other in found:
            if other is trial or not trial.sha256:
                continue
            same_steps = bool(trial.derived.steps) and trial.derived.steps == other.derived.steps
            if trial.sha256 == other.sha256 or same_steps:
                trial.exclude(f"its steps are those of {other.name}")
