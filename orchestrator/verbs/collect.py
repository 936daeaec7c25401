"""collect: medians, speedups, tables and reports of a sweep, or of a folder of logs; offline."""

from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.collecting import report_files
from orchestrator.collecting.folder import report_on
from orchestrator.collecting.logs import Reading
from orchestrator.console import Voice
from orchestrator.report import Language

if TYPE_CHECKING:  # a folder of logs needs nothing of sweeps, which take 0.15 s to import
    from orchestrator.state.store import Store


def collect_sweep(
    store: "Store",
    name: str | None,
    voice: Voice,
    out: Path | None,
    language: Language,
    *,
    strict: bool,
) -> int:
    """Measure a sweep again from its logs, write its reports, show the table; exit code.

    Reports on an archive, which is never changed, are written only where ``out`` is a folder.

    Args:
        strict: trials that the state of their nodes marks do not count.
    """
    from orchestrator.collecting.sweep import measured
    from orchestrator.state.opened import opened

    with opened(store, name) as opening:
        found = measured(opening.sweep, strict=strict)
        folder = out or (None if opening.archive else opening.sweep.folder)
        if folder:
            report_files.write(opening.sweep, found, folder, language, linked=not opening.archive)
        return report_files.present(found, voice, folder and folder / report_files.html(language))


def collect_logs(
    folder: Path, reading: Reading, voice: Voice, out: Path | None, language: Language
) -> int:
    """Measure logs that no sweep of ours made, write the reports, show the table; exit code."""
    measured = report_on(folder, reading)
    if out:
        report_files.reports(out, measured, language, folder)
    return report_files.present(measured, voice, out and out / report_files.html(language))
