"""The command that makes nodes ready to measure."""

from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli.command import Face, command
from orchestrator.cli.options import IMAGES, PLAYBOOKS, DryRun, Inventory, Nodes, needs, whole
from orchestrator.signals import SIGNALS

app = typer.Typer()


@command(app, has_state=False)
def init(
    face: Face,
    hosts: Annotated[
        list[str] | None, typer.Argument(metavar="[USER@]HOST...", help="Or localhost.")
    ] = None,
    hostfile: Annotated[Path | None, typer.Option(help="A hostfile of OpenMPI.")] = None,
    ansible: Annotated[
        Path | None, typer.Option(help="Output of `ansible-inventory --list`, or INI.")
    ] = None,
    scontrol: Annotated[
        str | None, typer.Option(metavar="FILE|-", help="Output of `scontrol show nodes`.")
    ] = None,
    slurm: Annotated[
        str | None,
        typer.Option(metavar="PARTITION", help="Ask one node of it by srun; on a login node."),
    ] = None,
    account: Annotated[str | None, typer.Option(help="With --slurm: who is charged.")] = None,
    nodes: Nodes = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write here; default: print it.")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace the file; what it was is kept beside it.")
    ] = False,
    name: Annotated[str | None, typer.Option(help="Of the cluster; default: the file's.")] = None,
    user: Annotated[str | None, typer.Option(help="Who logs in; default: you.")] = None,
    port: Annotated[
        int | None, typer.Option(parser=whole(1, 65535), metavar="N", help="Where sshd listens.")
    ] = None,
    identity: Annotated[str | None, typer.Option(help="The SSH key to offer.")] = None,
    agent: Annotated[bool, typer.Option("--agent", help="Let ssh-agent sign.")] = False,
    known_hosts: Annotated[str | None, typer.Option(help="File of trusted host keys.")] = None,
    jump: Annotated[
        str | None, typer.Option(metavar="[USER@]HOST[:PORT]", help="Reach hosts through it.")
    ] = None,
) -> int:
    """Ask machines what they have, and write an inventory of them."""
    needs("--out", out is not None, force=force)
    from orchestrator.verbs import init as verb

    sources = verb.Sources(tuple(hosts or ()), hostfile, ansible, scontrol, slurm, account, nodes)
    login = verb.Login(user, port, identity, agent, known_hosts, jump)
    return verb.init(sources, login, face.voice, out, name, force)


@command(app, nodes=True)
def provision(
    face: Face,
    inventory: Inventory,
    dry_run: DryRun = False,
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
    measure: Annotated[
        bool,
        typer.Option("--measure", help="Then measure the speed of nodes alone, in pairs and all."),
    ] = False,
    by: Annotated[
        list[str] | None,
        typer.Option(
            help="With --measure: a playbook that packs; default: node-speed and all-reduce.",
            autocompletion=PLAYBOOKS,
        ),
    ] = None,
    nodes: Nodes = None,
) -> int:
    """Prepare images on nodes, and check that they are fit."""
    needs("--measure", measure, by=by)
    from orchestrator.sweeping.requested import Caller
    from orchestrator.verbs import provision as verb

    playbooks = tuple(by or ()) if measure else None
    options = verb.ProvisionOptions(
        inventory, tuple(image or ()), nodes, bundle, lock, recount, playbooks
    )
    if dry_run:
        return verb.dry_run(face.store, options, face.voice)
    return verb.provision(face.store, options, Caller(face.voice, SIGNALS))
