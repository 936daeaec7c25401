"""verify: every number derived once more from raw logs, and compared with what is written."""

from dataclasses import asdict

from orchestrator import words
from orchestrator.console import Voice
from orchestrator.state import lock
from orchestrator.state.opened import OpenedSweep, opened
from orchestrator.state.store import Store
from orchestrator.verifying import check
from orchestrator.verifying.differences import Difference, Findings


def verify(store: Store, name: str | None, voice: Voice) -> int:
    """Compare a sweep or an archive with its own raw logs, and say what differs; exit code.

    Raises:
        StoreError: LOCKED, it runs and its files still change.
    """
    with opened(store, name) as opening:
        if holder := opening.sweep.lock().holder():
            raise lock.refused(f"sweep {opening.sweep.id}", holder)
        findings = check.verified(opening.sweep.folder.resolve())
        code = 3 if findings.differences else 0
        _say(opening, findings, voice)
        voice.document({"exit_code": code, "sweep": opening.sweep.id, **_document(findings)})
    return code


def _say(opening: OpenedSweep, findings: Findings, voice: Voice) -> None:
    for difference in findings.differences:
        voice.result(_line(difference))
    if left := ", ".join(findings.not_derived):
        voice.line(f"not derived: {left}; --json says why, and docs/verify.md")
    seen = f"{words.count(findings.files, 'file')}, {words.count(findings.numbers, 'number')}"
    count = len(findings.differences)
    differences = words.count(count, "difference") if count else "no difference"
    voice.result(f"{opening.name}: {differences} ({seen} checked)")


def _line(difference: Difference) -> str:
    where = f"{difference.file}: {difference.place}" if difference.place else difference.file
    return f"DIFFERS {where}: written: {difference.written}; derived: {difference.derived}"


def _document(findings: Findings) -> dict[str, object]:
    return {
        "differences": [asdict(difference) for difference in findings.differences],
        "not_derived": {what: list(why) for what, why in findings.not_derived.items()},
        "files_checked": findings.files,
        "numbers_checked": findings.numbers,
    }
