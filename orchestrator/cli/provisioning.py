"""The command that makes nodes ready to measure."""

from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli.command import Face, command
from orchestrator.cli.options import IMAGES, Inventory, Nodes

app = typer.Typer()


@command(app, nodes=True)
def provision(
    face: Face,
    inventory: Inventory,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be done; change nothing.")
    ] = False,
    lock: Annotated[
        bool, typer.Option("--lock", help="Resolve digests and checksums; write the lock file.")
    ] = False,
    image: Annotated[
        list[str] | None,
        typer.Option(
            help="Prepare this image; default: those of the inventory.", autocompletion=IMAGES
        ),
    ] = None,
    bundle: Annotated[
        Path | None, typer.Option(help="Take images and downloads from this folder.")
    ] = None,
    recount: Annotated[
        bool, typer.Option("--recount", help="Count files of data sets again.")
    ] = False,
    nodes: Nodes = None,
) -> int:
    """Prepare images on the nodes, and check whether the nodes are fit to measure."""
    from orchestrator.verbs import provision as verb

    options = verb.ProvisionOptions(inventory, tuple(image or ()), nodes, bundle, lock, recount)
    return (verb.dry_run if dry_run else verb.provision)(face.store, options, face.voice)
