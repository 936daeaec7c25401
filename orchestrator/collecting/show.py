"""A report, written into its folder and shown."""

from orchestrator import report, words
from orchestrator.collecting import report_files
from orchestrator.console import Voice
from orchestrator.model.report import Report
from orchestrator.report import Language
from orchestrator.state.store import Sweep


def present(
    sweep: Sweep,
    measured: Report,
    voice: Voice,
    names: frozenset[str] | None = None,
    *,
    language: Language = "en",
) -> int:
    """Write a sweep's reports, show its table and where they are; exit code.

    Args:
        names: of the trials that the exit code is about; None for all.
        language: of report.md.
    """
    report_files.reports(sweep.folder, measured, language)
    if measured.shared_machine:
        voice.result(report.SHARED_MACHINE)
    voice.results(measured)
    say_reasons(measured, voice)
    voice.result(f"Report: {sweep.folder / 'report.md'}")
    trials = [trial for result in measured.results for trial in result.trials]
    trials_chosen = [trial for trial in trials if names is None or trial.trial in names]
    code = 3 if any(trial.state != "valid" for trial in trials_chosen) else 0
    voice.document({"exit_code": code, "sweep": sweep.id, **report.document(measured)})
    return code


def say_reasons(measured: Report, voice: Voice) -> None:
    trials = [trial for result in measured.results for trial in result.trials]
    for trial in trials:
        for problem in (*trial.problems, *trial.marks):
            if trial.state != "planned":
                voice.line(f"{trial.trial}: {trial.state}: {problem.code}: {problem.message}")
    missing = sum(trial.state == "planned" for trial in trials)
    if missing:
        voice.line(f"{missing} of {len(trials)} planned trials have not been run")
    for lone in measured.lone:
        for problem in lone.problems:
            path = words.printable(lone.path)
            voice.line(f"{path}: {problem.code}: {problem.message}")
