"""verify: check a sweep against its raw logs, and its reports against a second rendering."""

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

from orchestrator import errors, words
from orchestrator.cli.command import Face, command
from orchestrator.cli.options import WhichFile
from orchestrator.collecting import nodes_seen, report_files
from orchestrator.collecting.report_files import RESULTS
from orchestrator.collecting.sweep import measured
from orchestrator.console import Voice
from orchestrator.model.report import Report, Writer
from orchestrator.model.result import Measurement
from orchestrator.model.telemetry import MARKS
from orchestrator.report import Language
from orchestrator.state import lock
from orchestrator.state.archives import OpenedSweep, opened
from orchestrator.state.sweep import Sweep
from orchestrator.verifying import chain, formulas
from orchestrator.verifying.findings import Findings, at, codes, items, text
from orchestrator.verifying.folder import Folder

MOST = 12
"""Values of a document that are shown: one changed log changes many."""
LATER = frozenset({"SAME-EVIDENCE", "PROVENANCE", "LOG-CHANGED", "OUTCOME-CHANGED", "MISSING"})
"""Problems that other trials or later edits cause, so that a trial's own outcome lacks them."""


@command("verify", "verify", "verify smoke.tar.zst")
def verify(face: Face, sweep_id: WhichFile = None) -> int:
    with opened(face.store, sweep_id) as opening:
        if holder := opening.sweep.lock().holder():
            raise lock.refused(f"sweep {opening.sweep.id}", holder)
        findings = check_sweep(opening.sweep)
        _show(opening, findings, face.voice)
        document = {
            "sweep": opening.sweep.id,
            "differences": [asdict(difference) for difference in findings.differences],
            "not_derived": {what: list(why) for what, why in findings.not_derived.items()},
            "files_checked": findings.files,
            "numbers_checked": findings.numbers,
        }
        return face.voice.finish(document, code=3 if findings.differences else 0)


def check_sweep(sweep: Sweep) -> Findings:
    """Check the checksums, then the numbers, then whether the same reports come out again."""
    findings = Findings()
    place = Folder(sweep.folder.resolve(), findings)
    record = place.sealed("sweep.json")
    planned = items(at(record, "plan", "trials"))
    if record is None or not planned or len([*chain.planned_trials(record)]) != len(planned):
        findings.differs("sweep.json", "plan", "no plan", "trials of cases")
        return findings
    outcomes = chain.check(place, record)
    formulas.check(place, record)
    _compare_reports(sweep, place, outcomes)
    return findings


def _compare_reports(
    sweep: Sweep, place: Folder, outcomes: Mapping[str, Mapping[str, object]]
) -> None:
    """Measure the sweep once more and compare outcomes and reports with what comes out."""
    findings = place.findings
    written = at(_read(place.path / RESULTS), "written")
    try:
        again = measured(sweep, strict=at(written, "strict") is True)
    except errors.DlperfError as error:
        findings.leave("reports", f"{error.code}: {error.cause}")
        if error.code not in ("NO-WORKLOAD", "PLUG-IN"):
            findings.differs("sweep.json", "", error.cause, "a record that can be read")
        return
    _compare_outcomes(place, again, outcomes)
    own = again.writer
    assert own is not None
    code, by = text(at(written, "code")), text(at(written, "by"))
    if code and code != own.code:
        why = f"dlperf-orch {by}, code {code[:12]}; this is code {own.code[:12]}"
        findings.leave("one version", f"reports were written by {why}: they may differ by that")
        again = replace(again, writer=Writer(by, code, own.strict))
    english, chinese = (place.path / report_files.html(it) for it in ("en", "zh"))
    language: Language = "zh" if chinese.is_file() and not english.is_file() else "en"
    contents = report_files.contents(place.path, again, language, sweep.folder)
    for name, content in contents.items():
        _compare(place, name, content)
    for name in _find_pages(place.path) - contents.keys():
        findings.differs(name, "", "a file", "no such file in these reports")


def _compare_outcomes(
    place: Folder, again: Report, outcomes: Mapping[str, Mapping[str, object]]
) -> None:
    for trial in again.trials:
        outcome = outcomes.get(trial.trial)
        if outcome is None or trial.log is None:
            continue
        record = f"{trial.path.removesuffix('.log')}.json"
        if outcome.get("code") != (again.writer.code if again.writer else None):
            place.findings.leave("outcomes", f"{record}: judged by another version")
        else:
            _compare_outcome(place.findings, record, trial, outcome)


def _compare_outcome(
    findings: Findings, record: str, trial: Measurement, outcome: Mapping[str, object]
) -> None:
    recorded = outcome.get("state")
    reasons = [f"{problem.code}: {problem.message}" for problem in trial.problems]
    if recorded == "invalid" and trial.state == "valid":
        seen = f"invalid: {' '.join(codes(outcome.get('problems')))}"
        findings.differs(record, "state", seen, "valid: its log is whole")
    elif recorded == "valid" and trial.state == "invalid":
        if {problem.code for problem in trial.problems}.isdisjoint(LATER | MARKS):
            findings.differs(record, "state", "valid", f"invalid: {'; '.join(reasons)}")
    elif recorded == trial.state == "valid" and trial.log:
        derived: dict[str, object] = {
            "throughput": trial.throughput,
            "lines": trial.log.evidence,
            "transport": trial.transport,
        }
        if "STATE-CHANGED" not in {mark.code for mark in trial.marks}:
            derived["marks"] = [asdict(mark) for mark in nodes_seen.list_marks(trial)]
        findings.same(record, "", outcome, derived)


def _compare(place: Folder, name: str, content: bytes) -> None:
    findings = place.findings
    try:
        present = (place.path / name).read_bytes()
    except OSError as error:
        findings.differs(name, "", error.strerror, "a file; `dlperf-orch collect` writes it")
        return
    if present == content:
        return
    if name.endswith(".json") and (written := place.document(name)) is not None:
        differing, inverse = Findings(), Findings()
        differing.same(name, "", written, json.loads(content))
        inverse.same(name, "", json.loads(content), written)
        found = [(it.place, it.written, it.derived) for it in differing.differences]
        found += [
            (it.place, it.derived, "nothing")
            for it in inverse.differences
            if it.written == "nothing"
        ]
        for values in found[:MOST]:
            findings.differs(name, *values)
        if len(found) > MOST:
            findings.differs(name, "", words.count(len(found) - MOST, "more value"), "others")
        return
    lines, needed = (text.decode("utf-8", "replace").split("\n") for text in (present, content))
    pairs = enumerate(zip([*lines, ""], [*needed, ""], strict=False), 1)
    line = next((at for at, (one, other) in pairs if one != other), len(lines))
    shown = (it[line - 1] if line <= len(it) else "no more lines" for it in (lines, needed))
    findings.differs(name, f"line {line}", *shown)


def _find_pages(folder: Path) -> set[str]:
    """Find the files in a sweep's folder that belong to reports, by their names."""
    patterns = ("report*", "results*", "*_result.json", "figures/*")
    found = (path for pattern in patterns for path in folder.glob(pattern) if path.is_file())
    return {path.relative_to(folder).as_posix() for path in found if path.suffix != ".new"}


def _read(path: Path) -> object:
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None


def _show(opening: OpenedSweep, findings: Findings, voice: Voice) -> None:
    for it in findings.differences:
        where = f"{it.file}: {it.place}" if it.place else it.file
        voice.result(f"DIFFERS {where}: written: {it.written}; derived: {it.derived}")
    if left := ", ".join(findings.not_derived):
        voice.line(f"not derived: {left}; --json says why, and docs/verify.md")
    seen = f"{words.count(findings.files, 'file')}, {words.count(findings.numbers, 'number')}"
    count = len(findings.differences)
    differences = words.count(count, "difference") if count else "no difference"
    voice.result(f"{opening.name}: {differences} ({seen} checked)")
