"""collect: medians, speedups, tables and reports of a sweep, or of a folder of logs; offline."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator import report
from orchestrator.collecting import report_files
from orchestrator.collecting.log_sources import Logs
from orchestrator.collecting.show import Out, present, say_reasons
from orchestrator.console import Voice
from orchestrator.model.report import Report

if TYPE_CHECKING:  # a folder of logs needs nothing of sweeps, which take 0.15 s to import
    from orchestrator.state.store import Store


def collect_sweep(store: "Store", name: str | None, voice: Voice, out: Out, *, strict: bool) -> int:
    """Measure a sweep again from its logs, write its reports, show the table; exit code.

    Reports on an archive, which is never changed, are written only where ``out`` has a folder.

    Args:
        strict: trials that the state of their nodes marks do not count.
    """
    from orchestrator.collecting.sweep import measured
    from orchestrator.state.opened import opened

    with opened(store, name) as opening:
        if opening.archive and not out.folder:
            voice.line(f"{opening.archive} stays as it is; --out FOLDER writes reports")
        to = out.folder or (None if opening.archive else opening.sweep.folder)
        found = measured(opening.sweep, strict=strict)
        return present(
            opening.sweep, found, voice, replace(out, folder=to, linked=not opening.archive)
        )


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
