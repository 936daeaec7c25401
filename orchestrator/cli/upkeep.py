"""Commands that maintain nodes between sweeps: host keys, leftovers, bundles, data sets."""

from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli.command import Face, command
from orchestrator.cli.options import (
    IMAGES,
    INVENTORIES,
    DataSet,
    DryRun,
    FitInventory,
    Inventory,
    Nodes,
)
from orchestrator.signals import SIGNALS

app = typer.Typer()
data_sets = typer.Typer(
    help="Check data sets on the nodes, and prepare them there.",
    no_args_is_help=True,
)


@command(app, nodes=True)
def clean(
    face: Face,
    inventory: FitInventory = None,
    images: Annotated[
        bool, typer.Option("--images", help="Also remove derived images that no site uses.")
    ] = False,
    dry_run: DryRun = False,
) -> int:
    """Remove what finished sweeps left on nodes. Only those of this state folder."""
    from orchestrator.verbs import clean as verb

    return verb.clean(face.store, inventory, face.voice, with_images=images, dry_run=dry_run)


@command(app, nodes=True)
def trust(
    face: Face,
    inventory: Inventory,
    fingerprint: Annotated[
        list[str] | None, typer.Option(help="Trust keys with this fingerprint, SHA256:...")
    ] = None,
) -> int:
    """Show nodes' host keys, and trust them after a yes. They are added to known_hosts."""
    from orchestrator.verbs import trust as verb

    return verb.trust(inventory, face.voice, tuple(fingerprint or ()))


@command(app, nodes=True)
def bundle(
    face: Face,
    inventory: Annotated[
        str, typer.Argument(help="A provisioned inventory.", autocompletion=INVENTORIES)
    ],
    folder: Annotated[Path, typer.Argument(help="Where the bundle is written.")],
    image: Annotated[
        list[str] | None,
        typer.Option(help="Default: all that are provisioned.", autocompletion=IMAGES),
    ] = None,
) -> int:
    """Write images and downloads into a folder. `provision --bundle` takes them from there."""
    from orchestrator.verbs import bundle as verb

    return verb.bundle(face.store, inventory, folder, tuple(image or ()), face.voice)


@command(data_sets, "check", nodes=True)
def data_check(
    face: Face, name: DataSet, inventory: FitInventory = None, nodes: Nodes = None
) -> int:
    """Check that a data set is complete and the same on every node."""
    from orchestrator.verbs import data as verb

    return verb.check(face.store, verb.DataOptions(name, inventory, nodes), face.voice)


@command(data_sets, "prepare", nodes=True)
def data_prepare(
    face: Face,
    name: DataSet,
    inventory: FitInventory = None,
    source: Annotated[
        str | None, typer.Option("--from", help="Folder of the sources, on every node.")
    ] = None,
    labels: Annotated[
        Path | None, typer.Option(help="File here: classes of ImageNet's validation images.")
    ] = None,
    nodes: Nodes = None,
    dry_run: DryRun = False,
) -> int:
    """Prepare a data set on nodes that lack it. Nothing is overwritten."""
    from orchestrator.verbs import data as verb

    options = verb.DataOptions(name, inventory, nodes, source, labels)
    if dry_run:
        return verb.dry_run(face.store, options, face.voice)
    return verb.prepare(face.store, options, face.voice, SIGNALS)
