"""collect: medians, speedups, tables and reports from logs; offline and repeatable."""

from dataclasses import dataclass
from pathlib import Path

from orchestrator import report
from orchestrator.collecting import publications, report_files
from orchestrator.collecting.folder import report_on
from orchestrator.collecting.logs import Reading
from orchestrator.collecting.show import present, say_reasons
from orchestrator.collecting.sweep import measured
from orchestrator.console import Voice
from orchestrator.measuring import case_facts
from orchestrator.report import Language
from orchestrator.state.store import Store


@dataclass(frozen=True, slots=True)
class Out:
    """Where reports on a folder of logs are written, and in which language report.md is."""

    folder: Path
    language: Language


def collect_sweep(
    store: Store,
    sweep_id: str | None,
    voice: Voice,
    language: Language = "en",
    *,
    strict: bool = False,
) -> int:
    """Measure a sweep again from its logs, write its reports, show the table; exit code.

    Args:
        strict: trials that the state of their nodes marks do not count.
    """
    sweep = store.sweep(sweep_id) if sweep_id else store.newest()
    return present(sweep, measured(sweep, strict=strict), voice, language=language)


def collect_logs(folder: Path, reading: Reading, voice: Voice, out: Out | None) -> int:
    """Measure a folder of logs that no sweep of ours made; exit code."""
    workload = reading.resolved()
    measured_logs = report_on(folder, workload, reading.window)
    measured_logs = case_facts.completed(measured_logs, workload, publications.shipped())
    voice.results(measured_logs)
    say_reasons(measured_logs, voice)
    if out is not None:
        report_files.reports(out.folder, measured_logs, out.language)
        voice.result(f"Report: {out.folder / 'report.md'}")
    code = 3 if measured_logs.incomplete else 0
    voice.document({"exit_code": code, **report.document(measured_logs)})
    return code
