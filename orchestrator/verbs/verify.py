"""verify: check a sweep against its raw logs, and its reports against a second rendering."""

import json
from collections.abc import Mapping
from dataclasses import asdict, replace

from orchestrator import errors, words
from orchestrator.cli.command import Face, command
from orchestrator.cli.options import WhichFile
from orchestrator.collecting import nodes_seen, report_files
from orchestrator.collecting.report_files import RESULTS
from orchestrator.collecting.sweep import measured
from orchestrator.model.report import Report, Writer
from orchestrator.model.telemetry import MARKS
from orchestrator.report import Language
from orchestrator.state import lock
from orchestrator.state.archives import opened
from orchestrator.state.sweep import Sweep
from orchestrator.verifying import chain, formulas
from orchestrator.verifying.findings import Findings, at, codes, items, text
from orchestrator.verifying.folder import Folder

MOST = 30
"""Most differences that are printed; one changed log changes many numbers."""
LATER = frozenset({"SAME-EVIDENCE", "PROVENANCE", "LOG-CHANGED", "OUTCOME-CHANGED", "MISSING"})
"""Problems that other trials or later edits cause, so that a trial's own outcome lacks them."""


@command("verify", "verify", "verify smoke.tar.zst")
def verify(face: Face, sweep_id: WhichFile = None) -> int:
    with opened(face.store, sweep_id) as opening:
        if holder := opening.sweep.lock().holder():
            raise lock.refused(f"sweep {opening.sweep.id}", holder)
        found = check_sweep(opening.sweep)
        for it in found.differences[:MOST]:
            where = f"{it.file}: {it.place}" if it.place else it.file
            face.voice.result(f"DIFFERS {where}: written: {it.written}; derived: {it.derived}")
        if len(found.differences) > MOST:
            face.voice.result(f"DIFFERS: {len(found.differences) - MOST} more; --json has all")
        if left := ", ".join(found.not_derived):
            face.voice.line(f"not derived: {left}; --json says why, and docs/verify.md")
        seen = f"{words.count(found.files, 'file')}, {words.count(found.numbers, 'number')} checked"
        count = len(found.differences)
        differences = words.count(count, "difference") if count else "no difference"
        face.voice.result(f"{opening.name}: {differences} ({seen})")
        document = {
            "sweep": opening.sweep.id,
            "differences": [asdict(difference) for difference in found.differences],
            "not_derived": found.not_derived,
            "files_checked": found.files,
            "numbers_checked": found.numbers,
        }
        return face.voice.finish(document, code=3 if count else 0)


def check_sweep(sweep: Sweep) -> Findings:
    """Check the checksums, then the numbers, then that measuring again gives the same reports."""
    findings = Findings()
    place = Folder(sweep.folder.resolve(), findings)
    record = place.sealed("sweep.json")
    planned = items(at(record, "plan", "trials"))
    names = ("nodes", "gpus_per_node", "micro_batch_size")
    sizes = [at(it, "case", name) for it in planned for name in names]
    if record is None or not planned or not all(isinstance(size, int) for size in sizes):
        findings.differs("sweep.json", "plan", "no plan", "trials of cases")
        return findings
    outcomes = chain.check(place, record)
    formulas.check(place, record)
    _compare_reports(sweep, place, outcomes)
    return findings


def _compare_reports(
    sweep: Sweep, place: Folder, outcomes: Mapping[str, Mapping[str, object]]
) -> None:
    """Measure the sweep again; compare its outcomes and reports with the new ones."""
    findings = place.findings
    written = at(place.document(RESULTS), "written")
    try:
        again = measured(sweep, strict=at(written, "strict") is True)
    except errors.DlperfError as error:
        findings.leave("reports", f"{error.code}: {error.cause}")
        if error.code not in ("NO-WORKLOAD", "PLUG-IN"):
            findings.differs("sweep.json", "", error.cause, "a record that can be read")
        return
    own = again.writer
    assert own is not None
    _compare_outcomes(findings, again, outcomes)
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
    for pattern in ("report*", "results*", "*_result.json", "figures/*"):
        for path in sorted(place.path.glob(pattern)):
            name = path.relative_to(place.path).as_posix()
            if path.is_file() and path.suffix != ".new" and name not in contents:
                findings.differs(name, "", "a file", "no such file in these reports")


def _compare_outcomes(
    findings: Findings, again: Report, outcomes: Mapping[str, Mapping[str, object]]
) -> None:
    for trial in again.trials:
        outcome, record = outcomes.get(trial.trial), f"{trial.path.removesuffix('.log')}.json"
        if outcome is None or trial.log is None:
            continue
        if outcome.get("code") != (again.writer.code if again.writer else None):
            findings.leave("outcomes", f"{record}: judged by another version")
            continue
        states, problems = (outcome.get("state"), trial.state), [it.code for it in trial.problems]
        if states == ("invalid", "valid"):
            seen = f"invalid: {' '.join(codes(outcome.get('problems')))}"
            findings.differs(record, "state", seen, "valid: its log is whole")
        elif states == ("valid", "invalid") and (LATER | MARKS).isdisjoint(problems):
            findings.differs(record, "state", "valid", f"invalid: {' '.join(problems)}")
        elif states == ("valid", "valid"):
            derived = {
                "throughput": trial.throughput,
                "lines": trial.log.evidence,
                "transport": trial.transport,
            }
            findings.same(record, "", outcome, derived)
            if "STATE-CHANGED" not in {mark.code for mark in trial.marks}:
                marks = [asdict(mark) for mark in nodes_seen.list_marks(trial)]
                findings.same(record, "marks", outcome.get("marks"), marks)


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
        derived, inverse = json.loads(content), Findings()
        findings.same(name, "", written, derived)
        inverse.same(name, "", derived, written)
        for it in inverse.differences:
            if it.written == "nothing":
                findings.differs(name, it.place, it.derived, "nothing")
        return
    lines, needed = (text.decode("utf-8", "replace").split("\n") for text in (present, content))
    pairs = enumerate(zip([*lines, ""], [*needed, ""], strict=False), 1)
    line = next((at for at, (one, other) in pairs if one != other), len(lines))
    shown = (it[line - 1] if line <= len(it) else "no more lines" for it in (lines, needed))
    findings.differs(name, f"line {line}", *shown)
