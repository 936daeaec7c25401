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
from orchestrator.report.results import EXPORT
from orchestrator.state import records
from orchestrator.state.files import dumps, keep, ours

RESULTS = "results.json"
_FIGURE = re.compile(r"(scaling|iterations|throttling)(-[0-9]+)?([.]zh)?|trials([.]zh)?")
"""Names of figures of ours, which not all reports have."""


def html(language: Language) -> str:
    """Return the name of the page in a language: report.html or report.zh.html."""
    return f"report{report.suffix(language)}.html"


def reports(folder: Path, measured: Report, language: Language, logs: Logs | None = None) -> None:
    """Write results.json, results.csv, report.md with its figures, report.html, result files.

    A report in the other language that is there is written anew too: both have the same numbers.
    Files of an earlier report that this one does not write are removed, so that no stale numbers
    stay beside it.

    Args:
        logs: None where they lie in ``folder``.

    Raises:
        StoreError: STORE-FULL.
        LocalError: STORE-RIGHTS; the folder cannot be written.
    """
    files = contents(folder, measured, language, logs or Logs(folder))
    earlier = _list_earlier(folder)
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
    """Return every file of a report by its name below ``folder``, the one that lists them last."""
    sources = log_sources.of(measured, logs, folder)
    files = {name: dumps(document).encode() for name, document in report.exports(measured).items()}
    for other in report.LANGUAGES:
        names = f"report{report.suffix(other)}.md", html(other)
        if other != language and not any((folder / name).exists() for name in names):
            continue
        figures = report.svg_files(measured, other)
        files |= {name: text.encode() for name, text in figures.items()}
        texts = report.markdown(measured, other), report.html_page(measured, other, sources)
        files |= {name: text.encode() for name, text in zip(names, texts, strict=True)}
    files["results.csv"] = report.csv_text(measured).encode()
    return {**files, RESULTS: dumps(report.document(measured)).encode()}


def _list_earlier(folder: Path) -> list[str]:
    """List the figures in a folder, and the result files that its results.json lists."""
    drawn = [path for path in (folder / FOLDER).glob("*.svg") if _FIGURE.fullmatch(path.stem)]
    figures = [f"{FOLDER}/{path.name}" for path in drawn]
    try:
        names = records.document((folder / RESULTS).read_bytes()).get("exports")
    except (OSError, ValueError):
        return figures  # none yet, or not one of ours
    own = [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
    return [*figures, *(name for name in own if name.endswith(EXPORT) and "/" not in name)]
