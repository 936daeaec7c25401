"""Commands about the evidence for numbers: verify, explain, archive."""

from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli.command import Face, command
from orchestrator.cli.options import (
    TRIALS,
    LogRule,
    Logs,
    LogWorkload,
    Which,
    WhichFile,
    Window,
    reading,
)

app = typer.Typer()


@command(app)
def archive(
    face: Face,
    sweep_id: Which = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "--out", "-o", help="The file to write; default: SWEEP-ID.tar.zst here."
        ),
    ] = None,
) -> int:
    """Write a sweep with all its logs and records into one file."""
    from orchestrator.verbs import archive as verb

    return verb.archive(face.store, sweep_id, output, face.voice)


@command(app)
def verify(face: Face, sweep_id: WhichFile = None) -> int:
    """Derive every number again from raw logs. Every sha256 is checked, what differs is named."""
    from orchestrator.verbs import verify as verb

    return verb.verify(face.store, sweep_id, face.voice)


@command(app)
def explain(
    face: Face,
    case: Annotated[
        str,
        typer.Argument(
            metavar="CASE",
            help="As reports call it, such as 4x8, 4n8g/amp/256, or a trial's name.",
            autocompletion=TRIALS,
        ),
    ],
    sweep_id: WhichFile = None,
    logs: Logs = None,
    workload: LogWorkload = None,
    between: Window = None,
    rule: LogRule = None,
) -> int:
    """Show how a case's number came to be. Trials, log lines, formula, nodes, command."""
    from orchestrator.verbs import explain as verb

    how = reading(sweep_id, logs, workload, between, rule)
    if logs is not None and how is not None:
        return verb.explain_logs(logs, case, how, face.voice)
    return verb.explain(face.store, case, sweep_id, face.voice)
