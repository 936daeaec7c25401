"""results.json and the tables beside it, compared with what follows from the logs."""

from collections.abc import Mapping, Sequence

from orchestrator.verifying import cases, tables
from orchestrator.verifying.cases import CaseTrial, DerivedCase, Matrix
from orchestrator.verifying.differences import Findings, at, codes, items, number
from orchestrator.verifying.records import Folder

RESULTS = "results.json"
LATER = frozenset({"SAME-EVIDENCE", "PROVENANCE", "LOG-CHANGED", "OUTCOME-CHANGED"})
"""Reasons that only a comparison with other files gives."""
NOT_DERIVED = {
    "published": "published values come with the program, not from logs",
    "tflops_per_gpu": "operations of a step are counted from the model, not from logs",
    "environment": "nodes were asked when they were provisioned; sweep.json has their answers",
    "topologies": "nodes were asked when they were provisioned; sweep.json has their answers",
    "title": "a text of the program",
    "unit": "a text of the program",
    "name": "what the benchmark calls a case comes with the program",
    "machines": "counters of the machines are in the attempt's files, whose sha256 is checked",
    "energy_j": "counters of the machines are in the attempt's files, whose sha256 is checked",
    "marks": "what only marks a trial does not change its number",
    "shared_machine": "nodes were asked when they were provisioned; sweep.json has their answers",
    "image_digest": "no log holds the digest of an image; it is compared with sweep.json",
}


def is_strict(place: Folder, found: Sequence[CaseTrial]) -> bool:
    """Whether the reports were written with --strict: a trial is out by what only marks it."""
    document = place.document(RESULTS) if (place.path / RESULTS).exists() else None
    written = {
        trial.get("trial"): codes(trial.get("problems"))
        for case in items(at(document, "cases"))
        for trial in items(case.get("trials"))
    }
    return any(
        {*codes(trial.outcome.get("marks"))} & {*written.get(trial.name, [])} for trial in found
    )


def check(place: Folder, record: Mapping[str, object], matrix: Matrix) -> None:
    """Compare results.json, results.csv, report.md and DLPerf's result files with the cases."""
    if not (place.path / RESULTS).exists():
        place.findings.not_derived["reports"] = "there are none; `dlperf-orch collect` writes them"
        return
    written = place.document(RESULTS)
    if written is None:
        return
    plan = record.get("plan")
    same = {key: at(plan, key) for key in ("experiment", "workload", "cluster", "image")}
    same |= {"image_digest": at(plan, "image_digest"), "window": at(plan, "method", "window")}
    if at(plan, "method", "rule"):
        same["rule"] = at(plan, "method", "rule")
    found = matrix.cases
    derived: dict[str, object] = {"source": record.get("id"), **same}
    derived["cases"] = [cases.document(it) for it in found]
    if matrix.canary:
        derived["canary"] = cases.canary(matrix.canary)
    place.findings.same(RESULTS, "", written, derived)
    for number_of, case in enumerate(items(written.get("cases"))):
        if number_of < len(found):
            _check_words(place, f"cases[{number_of}]", case, found[number_of])
    _leave_out(place.findings, written, derived)
    tables.check(place, written, found)


def _check_words(place: Folder, where: str, case: Mapping[str, object], found: DerivedCase) -> None:
    """Compare marks of a case, and the problems of trials that do not count."""
    findings = place.findings
    for mark in ("WIDE-SPREAD", "NODE-SETS", "BASELINE-DIFFERS"):
        written, derived = mark in codes(case.get("marks")), mark in found.marks
        if written != derived:
            words = {True: mark, False: f"no {mark}"}
            findings.differs(RESULTS, f"{where}.marks", words[written], words[derived])
    for at_trial, (trial, own) in enumerate(
        zip(items(case.get("trials")), found.trials, strict=False)
    ):
        recorded = {*codes(own.outcome.get("problems")), *codes(own.outcome.get("marks"))}
        for code in codes(trial.get("problems")):
            later = code in LATER and own.derived.reasons
            if own.state != "planned" and code not in recorded and not later:
                place_of = f"{where}.trials[{at_trial}].problems"
                findings.differs(RESULTS, place_of, code, f"no {code} by its outcome and its log")
        _check_invalid(findings, f"{where}.trials[{at_trial}]", trial, own)


def _check_invalid(
    findings: Findings, where: str, trial: Mapping[str, object], own: CaseTrial
) -> None:
    """A number that does not count is still one that its log gives."""
    written = number(trial.get("throughput"))
    if own.state == "invalid" and written is not None and own.derived.throughput is not None:
        findings.same(RESULTS, f"{where}.throughput", written, own.derived.throughput)


def _leave_out(
    findings: Findings, written: Mapping[str, object], derived: Mapping[str, object]
) -> None:
    """Note what results.json says and nothing here derives."""
    levels = [("", written, derived)]
    if items(written.get("cases")) and items(derived.get("cases")):
        case, own = items(written["cases"])[0], items(derived["cases"])[0]
        levels.append(("cases[].", case, own))
        if items(case.get("trials")) and items(own.get("trials")):
            trial = items(own["trials"])[0]
            levels.append(("cases[].trials[].", items(case["trials"])[0], trial))
    for name in ("report.html", "figures"):
        findings.not_derived[name] = "their sha256 is checked, their content is not read"
    for where, has, own in levels:
        for key in has.keys() - own.keys() - {"version", "exports", "cases"}:
            findings.not_derived[f"{where}{key}"] = NOT_DERIVED.get(key, "not a number of a log")
