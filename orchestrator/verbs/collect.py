"""collect: medians, speedups, tables and reports of a sweep, or of a folder of logs; offline.

A folder of logs needs nothing of sweeps, which take 0.15 s to import.
"""

from pathlib import Path
from typing import Annotated, Literal

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
from orchestrator.collecting import report_files
from orchestrator.collecting.folder import report_on


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
    how = reading(sweep_id, logs, workload, between, rule)
    if logs is not None and how is not None:
        if language and out is None:
            raise typer.BadParameter("--lang is of report.html; with --logs that needs --out DIR")
        if strict:
            raise typer.BadParameter("--strict is of sweeps; logs alone have no machine's state")
        measured = report_on(logs, how)
        page = report_files.reports(out, measured, language or "en", logs) if out else None
        return report_files.present(measured, face.voice, page)
    from orchestrator.collecting.sweep import measured as measure
    from orchestrator.state.archives import opened

    with opened(face.store, sweep_id) as opening:
        found = measure(opening.sweep, strict=strict)
        # An archive is never changed: of one, reports are written only with --out.
        folder, page = out or (None if opening.archive else opening.sweep.folder), None
        if folder:
            linked, lang = not opening.archive, language or "en"
            page = report_files.write(opening.sweep, found, folder, lang, linked=linked)
        return report_files.present(found, face.voice, page)
