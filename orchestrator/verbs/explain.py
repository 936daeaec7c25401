"""explain: how the number of one case came to be, on one page."""

from typing import Annotated

import typer

from orchestrator.cli.command import Face, command
from orchestrator.cli.options import LogRule, Logs, LogWorkload, WhichFile, Window, reading
from orchestrator.collecting import explanation
from orchestrator.collecting.folder import escape_path, report_on
from orchestrator.collecting.sweep import measured
from orchestrator.state.archives import opened


@command("explain", "explain 2x2", "explain 4n8g/amp/256 rn50-amp")
def explain(
    face: Face,
    case: Annotated[
        str,
        typer.Argument(metavar="CASE", help="Such as 4x8, 4n8g/amp/256, or a trial's name."),
    ],
    sweep_id: WhichFile = None,
    logs: Logs = None,
    workload: LogWorkload = None,
    between: Window = None,
    rule: LogRule = None,
) -> int:
    how = reading(sweep_id, logs, workload, between, rule)
    if logs is not None and how is not None:
        above = logs if logs.is_dir() else logs.parent
        page, document = explanation.explain(report_on(logs, how), above, escape_path(case))
    else:
        with opened(face.store, sweep_id) as opening:
            sweep = opening.sweep
            page, document = explanation.explain(measured(sweep), sweep.folder, case, sweep)
    face.voice.sentences(page)
    return face.voice.finish(document, code=3 if document["median"] is None else 0)
