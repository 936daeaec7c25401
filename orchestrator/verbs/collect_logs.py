"""collect --logs: the same of a folder of logs; needs nothing of sweeps, nodes and schedulers."""

from pathlib import Path

from orchestrator import report
from orchestrator.collecting import report_files
from orchestrator.collecting.log_sources import Logs
from orchestrator.collecting.show import Out, say_reasons
from orchestrator.console import Voice
from orchestrator.model.report import Report


def collect_logs(folder: Path, measured: Report, voice: Voice, out: Out) -> int:
    """Show, and write, what was measured of logs that no sweep of ours made; exit code."""
    voice.sentences(report.first_lines(measured))
    voice.results(measured)
    say_reasons(measured, voice)
    if out.folder is None:
        voice.result("No report is written: --out DIR writes one")
    else:
        report_files.reports(out.folder, measured, out.language, Logs(folder))
        voice.result(f"Report: {out.folder / report_files.html(out.language)}")
    return voice.finish(report.document(measured), code=3 if measured.incomplete else 0)
