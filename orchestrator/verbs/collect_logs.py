"""collect --logs: the same of a folder of logs; needs nothing of sweeps, nodes and schedulers."""

from dataclasses import replace
from pathlib import Path

from orchestrator import report
from orchestrator.collecting import publications, report_files
from orchestrator.collecting.folder import report_on
from orchestrator.collecting.log_sources import Logs
from orchestrator.collecting.logs import Reading
from orchestrator.collecting.show import Out, say_reasons
from orchestrator.console import Voice
from orchestrator.measuring import case_facts


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
