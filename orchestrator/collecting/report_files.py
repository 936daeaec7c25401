"""A report, written into a folder and shown on a terminal."""

import contextlib
import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path

from orchestrator import disk, report, words
from orchestrator.console import Voice
from orchestrator.model.report import LogSource, Report
from orchestrator.model.result import NOT_NEEDED
from orchestrator.report import Language
from orchestrator.report.figures import FOLDER
from orchestrator.report.results import EXPORT
from orchestrator.state import records
from orchestrator.state.contents import keep_sums
from orchestrator.state.files import dumps, keep, ours
from orchestrator.state.sweep import Sweep

RESULTS = "results.json"
# Columns that a narrow terminal goes without, in this order.
SPARE = ("interval (coverage)", "peak memory", "transport", "spread", "efficiency")
LONGEST_LINE = 400  # letters of a log's line that a page shows
MOST = 4  # lines of one code behind the table, so that it stays in sight
# Names of our figures, which not all reports have.
_FIGURE = re.compile(r"(scaling|iterations|throttling)(-[0-9]+)?([.]zh)?|trials([.]zh)?")


def html(language: Language) -> str:
    return f"report{report.suffix(language)}.html"


def reports(
    folder: Path,
    measured: Report,
    language: Language,
    logs: Path | None = None,
    *,
    linked: bool = True,
) -> Path:
    """Write all files of a report, and return the path of report.html.

    An existing report in the other language is written anew too, and files of an earlier report
    that this one lacks are removed, so that no stale numbers stay.

    Args:
        logs: the folder that paths of logs start from, or the one log; None for ``folder``.
        linked: whether the logs stay there, so that a page may link to them.

    Raises:
        StoreError: STORE-FULL.
        LocalError: STORE-RIGHTS; the folder cannot be written.
    """
    files = contents(folder, measured, language, logs or folder, linked=linked)
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
    return folder / html(language)


def contents(
    folder: Path, measured: Report, language: Language, logs: Path, *, linked: bool = True
) -> dict[str, bytes]:
    """Return every file of a report by its name below ``folder``, the one that lists them last."""
    sources = {}
    named = [(it.path, it.log) for it in measured.trials if it.log]
    for name, log in (*named, *((it.path, it.log) for it in measured.lone)):
        path = logs if logs.is_file() else logs / name
        sources[name] = LogSource("")
        if path.is_file():
            shown = os.path.relpath(path.resolve(), folder.resolve()) if linked else ""
            sources[name] = LogSource(shown, tuple(_read_lines(path, log.evidence or ())))
    files = {name: dumps(document).encode() for name, document in report.exports(measured).items()}
    for other in report.LANGUAGES:
        names = f"report{report.suffix(other)}.md", html(other)
        if other != language and not any((folder / name).exists() for name in names):
            continue
        texts = report.markdown(measured, other), report.html_page(measured, other, sources)
        pages = {**report.svg_files(measured, other), **dict(zip(names, texts, strict=True))}
        files |= {name: text.encode() for name, text in pages.items()}
    files["results.csv"] = report.csv_text(measured).encode()
    return {**files, RESULTS: dumps(report.document(measured)).encode()}


def _read_lines(path: Path, numbers: Sequence[int]) -> Iterable[tuple[int, str]]:
    """Yield the lines of these numbers, in ascending order; a changed log may lack some."""
    with contextlib.suppress(OSError), open(path, "rb") as file:
        for number, line in enumerate(islice(file, max(numbers, default=0)), 1):
            if number in numbers:
                text = line.decode("utf-8", "backslashreplace").rstrip("\r\n")
                is_long = len(text) > LONGEST_LINE
                yield number, f"{text[:LONGEST_LINE]}…" if is_long else text


def _list_earlier(folder: Path) -> list[str]:
    drawn = [path for path in (folder / FOLDER).glob("*.svg") if _FIGURE.fullmatch(path.stem)]
    figures = [f"{FOLDER}/{path.name}" for path in drawn]
    try:
        names = records.document((folder / RESULTS).read_bytes()).get("exports")
    except (OSError, ValueError):
        return figures  # none yet, or not one of ours
    own = [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
    return [*figures, *(name for name in own if name.endswith(EXPORT) and "/" not in name)]


def write(
    sweep: Sweep,
    measured: Report,
    folder: Path | None = None,
    language: Language = "en",
    *,
    linked: bool = True,
) -> Path:
    """Write a sweep's reports; in its own folder, the default, the checksums of all files too."""
    page = reports(folder or sweep.folder, measured, language, sweep.folder, linked=linked)
    if folder in (None, sweep.folder):
        keep_sums(sweep)
    return page


def present(
    measured: Report, voice: Voice, page: Path | None, names: frozenset[str] | None = None
) -> int:
    """Show the table of a report, and where its page is; return the exit code.

    Args:
        names: of the trials that the exit code is about; None for all, and for lone logs.
    """
    voice.sentences(report.first_lines(measured))
    for table in report.terminal_tables(measured):
        voice.table(*table, SPARE)
    say_reasons(measured, voice)
    voice.result(f"Report: {page}" if page else "No report is written: --out DIR writes one")
    left = {trial.trial for trial in measured.trials if not trial.counts_or_rests}
    is_whole = not measured.incomplete if names is None else names.isdisjoint(left)
    own = {"sweep": measured.source} if measured.method else {}
    return voice.finish({**own, **report.document(measured)}, code=0 if is_whole else 3)


def say_reasons(measured: Report, voice: Voice) -> None:
    """Print why trials and logs do not count, a few lines a code, and how many were not run."""
    by_code: dict[str, list[str]] = {}
    for trial in measured.trials:
        if not trial.counts_or_rests and trial.state != "planned":
            for problem in (*trial.problems, *trial.marks):
                line = f"{trial.trial}: {trial.state}: {problem.code}: {problem.message}"
                by_code.setdefault(problem.code, []).append(line)
    for lone in measured.lone:
        for problem in lone.problems:
            line = f"{words.printable(lone.path)}: {problem.code}: {problem.message}"
            by_code.setdefault(problem.code, []).append(line)
    for code, lines in by_code.items():
        more = words.count(len(lines) - MOST, "line")
        left_out = [f"{code}: {more} more; the report has all of them"] if lines[MOST:] else []
        for line in (*lines[:MOST], *left_out):
            voice.line(line)
    states = Counter(trial.state for trial in measured.trials)
    if missing := states["planned"]:
        voice.line(f"{missing} of {len(measured.trials)} planned trials have not been run")
    if resting := states[NOT_NEEDED]:
        voice.line(f"{words.count(resting, 'trial')} not needed: their cases have settled")
