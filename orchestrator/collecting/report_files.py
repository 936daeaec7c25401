"""The files of a report, written into a folder."""

import contextlib
import re
from pathlib import Path

from orchestrator import disk, report
from orchestrator.collecting import log_sources
from orchestrator.collecting.log_sources import Logs
from orchestrator.model.report import Report
from orchestrator.report import Language
from orchestrator.report.figures import FOLDER
from orchestrator.report.upstream import NAME
from orchestrator.state import records
from orchestrator.state.files import dumps, keep, ours

RESULTS = "results.json"
HTML = "report.html"
_FIGURE = re.compile(r"(scaling|machines|topology|iterations)(-[0-9]+)?|trials")
"""Names of figures of ours, which not all reports have."""


def reports(folder: Path, measured: Report, language: Language, logs: Logs | None = None) -> None:
    """Write results.json, results.csv, report.md with its figures, report.html, result files.

    Files of an earlier report that this one does not write are removed, so that no stale numbers
    stay beside it.

    Args:
        logs: None where they lie in ``folder``.

    Raises:
        StoreError: STORE-FULL.
        LocalError: STORE-RIGHTS; the folder cannot be written.
    """
    files, earlier = contents(folder, measured, language, logs or Logs(folder)), _earlier(folder)
    for name, content in files.items():
        keep(folder / name, content)
    for name in earlier:
        if name not in files:
            with ours(folder / name):
                (folder / name).unlink(missing_ok=True)
    disk.remove_unfinished([*folder.glob("*.new"), *(folder / FOLDER).glob("*.new")])
    with contextlib.suppress(OSError):  # there is none, or it holds something
        (folder / FOLDER).rmdir()


def contents(folder: Path, measured: Report, language: Language, logs: Logs) -> dict[str, bytes]:
    """Every file of a report by its name below ``folder``, the one that lists them last."""
    figures = report.svg_files(measured, language)
    exports = report.exports(measured)
    sources = log_sources.of(measured, logs, folder)
    files = {
        **{name: dumps(document).encode() for name, document in exports.items()},
        **{name: text.encode() for name, text in figures.items()},
        "results.csv": report.csv_text(measured).encode(),
        "report.md": report.markdown(measured, language).encode(),
        HTML: report.html_page(measured, language, sources).encode(),
    }
    return {**files, RESULTS: dumps(report.document(measured, language)).encode()}


def _earlier(folder: Path) -> list[str]:
    """Names of figures in a folder, and of result files that its results.json lists as its own."""
    drawn = [path for path in (folder / FOLDER).glob("*.svg") if _FIGURE.fullmatch(path.stem)]
    figures = [f"{FOLDER}/{path.name}" for path in drawn]
    try:
        names = records.document((folder / RESULTS).read_bytes()).get("exports")
    except (OSError, ValueError):
        return figures  # none yet, or not one of ours
    own = [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
    return [*figures, *(name for name in own if name.endswith(NAME) and "/" not in name)]
