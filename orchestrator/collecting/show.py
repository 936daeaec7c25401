"""A report, written into its folder and shown."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from orchestrator import report, words
from orchestrator.collecting import report_files
from orchestrator.collecting.log_sources import Logs
from orchestrator.console import Voice
from orchestrator.model.report import Report
from orchestrator.model.result import NOT_NEEDED, Measurement
from orchestrator.report import Language
from orchestrator.state import contents
from orchestrator.state.sweep import Sweep

MOST = 4
"""Lines of one code behind the table, so that it stays in sight."""


@dataclass(frozen=True, slots=True)
class Out:
    """The folder that reports are written to, None for none, and their language.

    Args:
        linked: whether the logs stay where they are, so that a page may lead to them.
    """

    folder: Path | None
    language: Language = "en"
    linked: bool = True


def present(
    sweep: Sweep, measured: Report, voice: Voice, out: Out, names: frozenset[str] | None = None
) -> int:
    """Write a sweep's reports, show its table and where they are; exit code.

    Args:
        names: of the trials that the exit code is about; None for all.
    """
    write(sweep, measured, out)
    voice.sentences(report.first_lines(measured))
    voice.results(measured)
    say_reasons(measured, voice)
    if out.folder is not None:
        voice.result(f"Report: {out.folder / report_files.html(out.language)}")
    trials_chosen = [trial for trial in measured.trials if names is None or trial.trial in names]
    code = 3 if any(not trial.counts_or_rests for trial in trials_chosen) else 0
    return voice.finish({"sweep": sweep.id, **report.document(measured)}, code=code)


def write(sweep: Sweep, measured: Report, out: Out) -> None:
    """Write a sweep's reports; in its own folder the checksums of all its files too."""
    if out.folder is not None:
        logs = Logs(sweep.folder, linked=out.linked)
        report_files.reports(out.folder, measured, out.language, logs)
    if out.folder == sweep.folder:
        contents.keep_sums(sweep)


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
        marks = () if trial.counts_or_rests else trial.marks  # others are in the first lines
        for problem in (*trial.problems, *marks):
            if trial.state not in ("planned", NOT_NEEDED):
                line = f"{trial.trial}: {trial.state}: {problem.code}: {problem.message}"
                by_code.setdefault(problem.code, []).append(line)
    for code, lines in by_code.items():
        yield from lines[:MOST]
        if len(lines) > MOST:
            more = words.count(len(lines) - MOST, "line")
            yield f"{code}: {more} more; the report has all of them"
