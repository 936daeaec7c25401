"""collect: medians, speedups, tables and reports from logs; offline and repeatable."""

from dataclasses import replace
from pathlib import Path

from orchestrator import report
from orchestrator.collecting import publications, report_files
from orchestrator.collecting.folder import report_on
from orchestrator.collecting.log_sources import Logs
from orchestrator.collecting.logs import Reading
from orchestrator.collecting.show import Out, present, say_reasons
from orchestrator.collecting.sweep import measured
from orchestrator.console import Voice
from orchestrator.measuring import case_facts
from orchestrator.state.opened import opened
from orchestrator.state.store import Store


def collect_sweep(
    store: Store, name: str | None, voice: Voice, out: Out, *, strict: bool = False
) -> int:
    """Measure a sweep again from its logs, write its reports, show the table; exit code.

    Reports on an archive, which is never changed, are written only where ``out`` has a folder.

    Args:
        strict: trials that the state of their nodes marks do not count.
    """
    with opened(store, name) as opening:
        if opening.archive and not out.folder:
            voice.line(f"{opening.archive} stays as it is; --out FOLDER writes reports")
        to = out.folder or (None if opening.archive else opening.sweep.folder)
        found = measured(opening.sweep, strict=strict)
        return present(
            opening.sweep, found, voice, replace(out, folder=to, linked=not opening.archive)
        )


def collect_logs(folder: Path, reading: Reading, voice: Voice, out: Out) -> int:
    """Measure a folder of logs that no sweep of ours made; exit code."""
    workload = reading.resolved()
    measured_logs = report_on(folder, workload, reading.window)
    measured_logs = replace(measured_logs, commands=(reading.command(measured_logs.source),))
    measured_logs = case_facts.completed(measured_logs, workload, publications.shipped())
    voice.sentences(report.first_lines(measured_logs))
    voice.results(measured_logs)
    say_reasons(measured_logs, voice)
    if out.folder is not None:
        logs = Logs(folder)
        report_files.reports(out.folder, measured_logs, out.language, logs)
        voice.result(f"Report: {out.folder / report_files.HTML}")
    code = 3 if measured_logs.incomplete else 0
    voice.document({"exit_code": code, **report.document(measured_logs)})
    return code
