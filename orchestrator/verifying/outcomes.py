"""One trial: its outcome, attempt, events and logs against each other, and what follows."""

from collections.abc import Iterator, Mapping, Sequence

from orchestrator.verifying import machines, marks, plain_nccl, records, trials
from orchestrator.verifying.cases import CaseTrial
from orchestrator.verifying.damages import Reason
from orchestrator.verifying.differences import Findings, at, codes, items, number, text
from orchestrator.verifying.marks import Mark
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
Object = Mapping[str, object]


def trial(
    place: Folder, plan: Object, planned: Object, events: Sequence[Object], *, was_left_out: bool
) -> CaseTrial:
    """A trial of the plan, as it follows from its logs.

    Args:
        was_left_out: reports leave it out, as they must where what it stands on has changed.
    """
    name, log = text(planned.get("name")), f"logs/{text(planned.get('log'))}"
    ends = [it for it in events if it.get("event") == "outcome" and it.get("trial") == name]
    record = f"{log.removesuffix('.log')}.json"
    if not any(it.get("outcome") for it in ends) and not (place.path / record).exists():
        return CaseTrial(planned, name, "planned", DerivedTrial(), {}, "-", [], None)
    outcome = place.document(record) or {}
    if not _counts(place, record, outcome, ends) and was_left_out:
        changed = DerivedTrial(reasons=[("OUTCOME-CHANGED", "its outcome does not count")])
        return CaseTrial(planned, name, "invalid", changed, {}, "-", [], None)
    _check_intent(place, planned, outcome, events)
    state, case = text(outcome.get("state")), planned.get("case")
    nodes = [text(end.get("node")) for end in items(outcome.get("tasks"))]
    digest = place.sha256(log)
    found = CaseTrial(
        planned, name, state or "invalid", DerivedTrial(), outcome, "-", nodes, digest
    )
    raw_logs_fit = records.check_raw_logs(place, record, outcome)
    changed_states = records.changed_states(place, record, outcome)
    if state in ENDED_OTHERWISE or not isinstance(case, Mapping):
        place.findings.leave("how gangs ended", f"{name}: {state}: it was seen while it ran")
        return found
    _derive(place, plan, found, changed_states)
    if was_left_out:
        found.derived.reasons += _changes(place, found, raw_logs_fit=raw_logs_fit)
    _check_attempt(place, planned, found)
    _judge(place, record, found)
    return found


def _derive(place: Folder, plan: Object, found: CaseTrial, changed_states: Sequence[str]) -> None:
    """Read its log, and what was seen of its machines where that is what it was."""
    log, case = f"logs/{text(found.plan.get('log'))}", found.plan.get("case")
    assert isinstance(case, Mapping)
    try:
        found.derived = trials.derived(place.path / log, plan, case)
    except OSError:
        place.findings.differs(log, "", "no such file", "the log of a trial that counts")
        found.derived.reasons.append(("MISSING", "its log is gone"))
    found.marks = [*found.derived.marks]
    if changed_states:
        found.marks.append(Mark("STATE-CHANGED", (", ".join(changed_states), "sha256")))
    elif found.outcome.get("observed"):
        folder = place.path / f"attempts/{found.name}/a{found.outcome.get('attempt')}"
        found.machines = machines.derived(folder, found.outcome, found.derived)
        found.marks += [*found.machines.marks, *found.machines.unplaced]


def _changes(place: Folder, found: CaseTrial, *, raw_logs_fit: bool) -> Iterator[Reason]:
    """What it stands on that is not what it was after the run."""
    of_gang = len(found.nodes) > 1
    if found.sha256 != found.outcome.get("sha256") or (of_gang and not raw_logs_fit):
        yield "LOG-CHANGED", "a log is not what it was after the run"
    differences = Findings()
    folder = f"attempts/{found.name}/a{found.outcome.get('attempt')}"
    Folder(place.path, differences).sealed(f"{folder}/attempt.json")
    if of_gang and differences.differences:
        yield "OUTCOME-CHANGED", "nothing tells what was started"


def _counts(place: Folder, record: str, outcome: Object, ends: Sequence[Object]) -> bool:
    """Compare an outcome with its event, and its log with it; whether both outcomes are one."""
    findings, attempt = place.findings, outcome.get("attempt")
    event = next((it for it in reversed(ends) if it.get("attempt") == attempt), None)
    log = f"{record.removesuffix('.json')}.log"
    if event is None:
        findings.differs(record, "attempt", attempt, "one of which events.jsonl has an outcome")
        return False
    digest = place.sha256(record)
    if event.get("outcome") != digest:
        findings.differs(record, "sha256", digest, f"{event.get('outcome')} by events.jsonl")
    recorded = {key: event.get(key) for key in ("trial", "state", "sha256")}
    findings.same(record, "", {key: outcome.get(key) for key in recorded}, recorded)
    problems = items(outcome.get("problems"))
    first: Object = problems[0] if problems else {}
    for key in ("code", "message"):
        findings.same(record, f"problems[0].{key}", first.get(key, ""), event.get(key, ""))
    found = place.sha256(log)
    if outcome.get("sha256") and found != outcome.get("sha256"):
        findings.differs(log, "sha256", found, f"{outcome.get('sha256')} by {record}")
    alike = all(outcome.get(key) == value for key, value in recorded.items())
    return alike and event.get("outcome") in (digest, "", None)


def _check_intent(
    place: Folder, planned: Object, outcome: Object, events: Sequence[Object]
) -> None:
    """An attempt was announced before it ended, with its port and its log."""
    key = (planned.get("name"), outcome.get("attempt"))
    own = [it for it in events if (it.get("trial"), it.get("attempt")) == key]
    intent = own[0] if own and own[0].get("event") == "intent" else {}
    derived = {"port": outcome.get("port"), "log": planned.get("log")}
    where = f"intent of {planned.get('name')}"
    place.findings.same("events.jsonl", where, intent, derived)


def _check_attempt(place: Folder, planned: Object, found: CaseTrial) -> None:
    """Compare nodes and log with the attempt, and take the transport from its raw logs."""
    folder = f"attempts/{found.name}/a{found.outcome.get('attempt')}"
    name = f"{folder}/attempt.json"
    document = Folder(place.path, Findings()).sealed(name)  # it is checked by itself
    if document is None:
        place.findings.differs(name, "", "no such document", "an attempt that counts")
        return
    log = f"logs/{text(planned.get('log'))}"
    record = f"{log.removesuffix('.log')}.json"
    nodes = [text(task.get("node")) for task in items(document.get("tasks"))]
    place.findings.same(record, "tasks", found.nodes, nodes)
    _check_tasks(place, (name, record), document, found)
    raw = f"{folder}/r{at(document, 'log_rank') or 0}.log"
    digest = place.sha256(raw)
    if digest != found.sha256:
        place.findings.differs(log, "sha256", found.sha256, f"{digest}, of {raw}")
    if found.has_changed:
        return
    found.transport, reasons = plain_nccl.transport(place.path / folder, document)
    found.derived.reasons += reasons
    if found.outcome.get("transport") is not None:
        said = found.outcome.get("transport")
        place.findings.same(record, "transport", said, found.transport)


def _check_tasks(place: Folder, files: tuple[str, str], attempt: Object, found: CaseTrial) -> None:
    """Compare what was started with the case, and how it ended with what counts."""
    (name, record), outcome = files, found.outcome
    place.findings.same(record, "port", outcome.get("port"), attempt.get("port"))
    often, services = at(found.plan, "case", "gpus_per_node"), list[object]()
    for count, task in enumerate(items(attempt.get("tasks"))):
        given = task.get("gpus")
        gpus = given if isinstance(given, list) else []
        if task.get("service"):
            services.append(task.get("node_rank"))
        if gpus and (len(gpus) != often or len({*map(str, gpus)}) != often):
            place.findings.differs(name, f"tasks[{count}].gpus", str(gpus), f"{often} of them")
    went = [number(end.get("went_at")) for end in items(outcome.get("tasks"))]
    known = [at_s for at_s in went if at_s is not None]
    skew_s = max(known) - min(known) if known and len(known) == len(went) else None
    place.findings.same(record, "start_skew_s", outcome.get("start_skew_s"), skew_s)
    for count, end in enumerate(items(outcome.get("tasks"))):
        where, raw = f"tasks[{count}]", f"{name.rpartition('/')[0]}/r{end.get('node_rank')}.log"
        if found.state == "valid" and end.get("node_rank") not in services:
            place.findings.same(record, f"{where}.status", end.get("status"), 0)
        if (place.path / raw).is_file():
            size = (place.path / raw).stat().st_size
            place.findings.same(record, f"{where}.size_bytes", end.get("size_bytes"), size)


def _judge(place: Folder, record: str, found: CaseTrial) -> None:
    """Compare the recorded state, number and marks with what was derived."""
    outcome, derived, findings = found.outcome, found.derived, place.findings
    state, said = text(outcome.get("state")), codes(outcome.get("problems"))
    if found.has_changed:
        found.state = "invalid"
    elif state == "valid" and derived.reasons:
        seen = "; ".join(f"{code}: {words}" for code, words in derived.reasons)
        findings.differs(record, "state", "valid", f"invalid: {seen}")
        found.state = "invalid"
    elif state == "valid":
        numbers = {"throughput": derived.throughput, "lines": derived.lines}
        if derived.rule != "clock" and outcome.get("lines") is None:
            del numbers["lines"]  # 0.1.0 kept none where no clock tells
        findings.same(record, "", {key: outcome.get(key) for key in numbers}, numbers)
        if "STATE-CHANGED" not in marks.codes(found.marks):
            marks.compare(findings, record, "marks", outcome.get("marks"), found.machines.marks)
    elif not derived.reasons:
        if {*said} <= BY_LOGS and not derived.doubts:
            wrong = f"invalid: {' '.join(said)}"
            findings.differs(record, "state", wrong, "valid: its log is whole")
            found.state = "valid"
        else:
            findings.leave("some reasons", "; ".join((found.name, *said, *derived.doubts)))
