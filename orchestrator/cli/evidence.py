"""Commands about what numbers stand on: a sweep as one file."""

from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli.command import Face, command
from orchestrator.cli.options import Which

app = typer.Typer()


@command(app)
def archive(
    face: Face,
    sweep_id: Which = None,
    output: Annotated[
        Path | None, typer.Option(help="The file to write; default: SWEEP-ID.tar.zst here.")
    ] = None,
) -> int:
    """Write a sweep with all its logs and records into one file."""
    from orchestrator.verbs import archive as verb

    return verb.archive(face.store, sweep_id, output, face.voice)
