"""The files of a report, written into a folder."""

from pathlib import Path

from orchestrator import report
from orchestrator.model.report import Report
from orchestrator.report import Language
from orchestrator.report.upstream import NAME
from orchestrator.state import records
from orchestrator.state.store import dumps, write

RESULTS = "results.json"


def reports(folder: Path, measured: Report, language: Language) -> None:
    """Write results.json, results.csv, report.md and DLPerf's result files.

    Result files of an earlier report that this one does not write are removed, so that no stale
    numbers stay beside it.
    """
    exports, earlier = report.exports(measured), _earlier(folder)
    for name, document in exports.items():
        write(folder / name, dumps(document).encode())
    write(folder / RESULTS, dumps(report.document(measured)).encode())
    write(folder / "results.csv", report.csv_text(measured).encode())
    write(folder / "report.md", report.markdown(measured, language).encode())
    for name in earlier:
        if name not in exports:
            (folder / name).unlink(missing_ok=True)


def _earlier(folder: Path) -> list[str]:
    """Names of the result files that the results.json in a folder lists as its own."""
    try:
        names = records.document((folder / RESULTS).read_bytes()).get("exports")
    except (OSError, ValueError):
        return []  # none yet, or not one of ours
    own = [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
    return [name for name in own if name.endswith(NAME) and "/" not in name]
