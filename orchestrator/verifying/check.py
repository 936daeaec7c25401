"""A sweep's folder verified: chain of checksums, trials, cases, reports."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from orchestrator.verifying import cases, outcomes, records, reports
from orchestrator.verifying.cases import CaseTrial, DerivedCase
from orchestrator.verifying.differences import Findings, at, items, number, text
from orchestrator.verifying.marks import codes
from orchestrator.verifying.records import Folder


def verified(folder: Path) -> Findings:
    """Everything in a sweep's folder that differs from what follows from its raw logs."""
    findings = Findings()
    place = Folder(folder, findings)
    records.check_sums(place)
    record = place.sealed("sweep.json")
    plan = at(record, "plan")
    if record is None or not isinstance(plan, Mapping) or not _is_whole(plan):
        findings.differs("sweep.json", "plan", "no plan", "trials of cases")
        return findings
    findings.same("sweep.json", "id", record.get("id"), folder.name)
    found = _trials(place, plan)
    often = at(plan, "method", "repeats")
    by_case = cases.grouped([it for it in found if not it.plan.get("canary")], often)
    canary = [trial for trial in found if trial.plan.get("canary")]
    reports.check(place, record, by_case, canary)
    return findings


def _is_whole(plan: Mapping[str, object]) -> bool:
    """Whether every trial has a case with the sizes of its gang, and parameters with values."""
    trials = items(plan.get("trials"))
    sizes = ("nodes", "gpus_per_node", "micro_batch_size")
    known = [isinstance(at(trial, "case", size), int) for trial in trials for size in sizes]
    params = [at(trial, "case", "params") for trial in trials]
    pairs = [pair for some in params if isinstance(some, list) for pair in some]
    return bool(known) and all(known) and all(_is_pair(pair) for pair in pairs)


def _is_pair(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2


def _trials(place: Folder, plan: Mapping[str, object]) -> list[CaseTrial]:
    """The trials as they follow from the logs: each alone, then beside the others."""
    events = records.events(place)
    for path in sorted((place.path / "attempts").glob("*/a*/attempt.json")):
        records.check_attempt(place, path.relative_to(place.path).as_posix())
    left_out = reports.left_out(place)
    found = []
    for planned in items(plan.get("trials")):
        why = left_out.get(text(planned.get("name")), [])
        was_left_out = not cases.CHANGED.isdisjoint(why)
        found.append(outcomes.trial(place, plan, planned, events, was_left_out=was_left_out))
    _settle(plan, found)
    if _is_strict(found, left_out):
        for trial in found:
            for mark in trial.machines.marks:
                trial.exclude((mark.code, "marked so, and --strict was given"))
    _exclude_copies(found)
    canary = [trial for trial in found if trial.plan.get("canary")]
    for group in (canary, *(case.trials for case in _by_case(found))):
        for trial in cases.disagreeing(group):
            trial.exclude(("PROVENANCE", "other circumstances than the first valid trial"))
    return found


def _is_strict(found: Sequence[CaseTrial], left_out: Mapping[str, Sequence[str]]) -> bool:
    """Whether the reports were written with --strict: a trial is out by what only marks it."""
    return any({*codes(it.machines.marks)} & {*left_out.get(it.name, ())} for it in found)


def _by_case(trials: Sequence[CaseTrial]) -> list[DerivedCase]:
    found: dict[str, DerivedCase] = {}
    for trial in trials:
        case = trial.plan.get("case")
        if isinstance(case, Mapping) and not trial.plan.get("canary"):
            found.setdefault(str(case), DerivedCase(case, [])).trials.append(trial)
    return list(found.values())


def _settle(plan: Mapping[str, object], found: Sequence[CaseTrial]) -> None:
    """Trials without a valid outcome are not needed where the others' interval is narrow enough."""
    often = at(plan, "method", "repeats")
    if not isinstance(often, Mapping):
        return
    least, until = number(often.get("min")), cases.share(text(often.get("until_interval")))
    for case in _by_case(found):
        first = next((k for k, it in enumerate(case.trials) if it.state != "valid"), None)
        before = DerivedCase(case.case, case.trials[:first])
        width = cases.width(before)
        if width is None or least is None or len(before.values) < least or width > until:
            continue
        for trial in case.trials:
            trial.state = trial.state if trial.state == "valid" else "not-needed"


def _exclude_copies(found: Sequence[CaseTrial]) -> None:
    """Make trials invalid that stand on the same steps or bytes as another."""
    users: dict[str, list[CaseTrial]] = {}
    for trial in found:
        for key in {trial.derived.steps, trial.derived.words, trial.sha256 or ""} - {""}:
            users.setdefault(key, []).append(trial)
    for those in users.values():
        for trial in those if len(those) > 1 else []:
            others = ", ".join(it.name for it in those if it is not trial)
            trial.exclude(("SAME-EVIDENCE", f"its steps are those of {others}"))
