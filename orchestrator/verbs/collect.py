"""collect: medians, speedups, tables and reports of a sweep, or of a folder of logs; offline.

A folder of logs needs nothing of sweeps, which take 0.15 s to import; and it is read by other
processes while this one imports.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from orchestrator.cli.command import Face, command
from orchestrator.cli.options import (
    LogRule,
    Logs,
    LogWorkload,
    Strict,
    WhichFile,
    Window,
    reading,
)

if TYPE_CHECKING:
    from orchestrator.model.report import Report
    from orchestrator.report import Language


@command(
    "collect",
    "collect --lang zh --out report-zh",
    "collect --logs old --workload ngc_pytorch_rn50 --window 20:120",
)
def collect(
    face: Face,
    sweep_id: WhichFile = None,
    logs: Logs = None,
    workload: LogWorkload = None,
    between: Window = None,
    rule: LogRule = None,
    out: Annotated[Path | None, typer.Option(help="Folder to write reports into.")] = None,
    language: Annotated[
        Literal["en", "zh"] | None, typer.Option("--lang", help="Of report.html; default: en.")
    ] = None,
    strict: Strict = False,
) -> int:
    """Measure from logs, write reports, show the table; exit code.

    Reports on an archive, which is never changed, are written only with ``--out``.
    """
    how = reading(sweep_id, logs, workload, between, rule)
    if logs is not None and how is not None:
        if language and out is None:
            raise typer.BadParameter("--lang is of report.md; with --logs that needs --out DIR")
        if strict:
            raise typer.BadParameter(
                "--strict is of sweeps; a folder of logs tells no machine's state"
            )
        from orchestrator.collecting import folder

        with folder.start(logs, how) as report:
            return _present_logs(logs, report(), face, out, language or "en")
    from orchestrator.collecting.show import Out, present
    from orchestrator.collecting.sweep import measured
    from orchestrator.state.opened import opened

    with opened(face.store, sweep_id) as opening:
        if opening.archive and not out:
            face.voice.line(f"{opening.archive} stays as it is; --out FOLDER writes reports")
        to = out or (None if opening.archive else opening.sweep.folder)
        found = measured(opening.sweep, strict=strict)
        where = Out(to, language or "en", linked=not opening.archive)
        return present(opening.sweep, found, face.voice, where)


def _present_logs(
    folder: Path, measured: "Report", face: Face, out: Path | None, language: "Language"
) -> int:
    from orchestrator import report
    from orchestrator.collecting import report_files, show
    from orchestrator.collecting.log_sources import Logs

    voice = face.voice
    voice.sentences(report.first_lines(measured))
    voice.results(measured)
    show.say_reasons(measured, voice)
    if out is None:
        voice.result("No report is written: --out DIR writes one")
    else:
        report_files.reports(out, measured, language, Logs(folder))
        voice.result(f"Report: {out / report_files.html(language)}")
    return voice.finish(report.document(measured), code=3 if measured.incomplete else 0)
