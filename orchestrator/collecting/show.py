"""A report, written into its folder and shown."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from orchestrator import report, words
from orchestrator.collecting import report_files
from orchestrator.console import Voice
from orchestrator.model.report import Report
from orchestrator.model.result import NOT_NEEDED, Measurement
from orchestrator.report import Language
from orchestrator.state import contents
from orchestrator.state.sweep import Sweep

MOST = 4
"""Lines of one code behind the table, so that it stays in sight."""


def write(
    sweep: Sweep,
    measured: Report,
    folder: Path | None = None,
    language: Language = "en",
    *,
    linked: bool = True,
) -> None:
    """Write a sweep's reports; in its own folder, the default, the checksums of all files too."""
    report_files.reports(folder or sweep.folder, measured, language, sweep.folder, linked=linked)
    if folder in (None, sweep.folder):
        contents.keep_sums(sweep)


def present(
    measured: Report, voice: Voice, page: Path | None, names: frozenset[str] | None = None
) -> int:
    """Show the table of a report, and where its page is; exit code.

    Args:
        page: None where no report was written.
        names: of the trials that the exit code is about; None for all, and for lone logs.
    """
    voice.sentences(report.first_lines(measured))
    voice.results(measured)
    say_reasons(measured, voice)
    voice.result(f"Report: {page}" if page else "No report is written: --out DIR writes one")
    left = {trial.trial for trial in measured.trials if not trial.counts_or_rests}
    is_whole = not measured.incomplete if names is None else names.isdisjoint(left)
    own = {"sweep": measured.source} if measured.method else {}
    return voice.finish({**own, **report.document(measured)}, code=0 if is_whole else 3)


def say_reasons(measured: Report, voice: Voice) -> None:
    """Say why trials do not count: some lines of each code. Marks are in the first lines."""
    for line in reasons(measured.trials):
        voice.line(line)
    states = Counter(trial.state for trial in measured.trials)
    if missing := states["planned"]:
        voice.line(f"{missing} of {len(measured.trials)} planned trials have not been run")
    if resting := states[NOT_NEEDED]:
        voice.line(f"{words.count(resting, 'trial')} not needed: their cases have settled")
    for lone in measured.lone:
        for problem in lone.problems:
            path = words.printable(lone.path)
            voice.line(f"{path}: {problem.code}: {problem.message}")


def reasons(trials: Iterable[Measurement]) -> Iterator[str]:
    """Yield why trials that ran do not count: some lines of each code, and how many more."""
    by_code: dict[str, list[str]] = {}
    for trial in trials:
        if trial.counts_or_rests or trial.state == "planned":
            continue  # marks of trials that count are in the first lines
        for problem in (*trial.problems, *trial.marks):
            line = f"{trial.trial}: {trial.state}: {problem.code}: {problem.message}"
            by_code.setdefault(problem.code, []).append(line)
    for code, lines in by_code.items():
        yield from lines[:MOST]
        if len(lines) > MOST:
            more = words.count(len(lines) - MOST, "line")
            yield f"{code}: {more} more; the report has all of them"
