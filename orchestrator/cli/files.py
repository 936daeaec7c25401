"""Commands that reach no node: checking files, listing what is shipped, trying parsers."""

import sys
from typing import Annotated

import typer

from orchestrator import errors
from orchestrator.cli.command import Face, command
from orchestrator.cli.options import WORKLOADS, Window, among, whole, window
from orchestrator.model.log import Rule

KINDS = ("playbooks", "workloads", "images", "inventories", "sweeps")
app = typer.Typer()
inspecting = typer.Typer(
    help="Parse a recorded output, and print it as JSON.", no_args_is_help=True
)
FileOrDash = Annotated[str, typer.Argument(metavar="FILE|-")]


@command(app, has_state=False)
def published(
    face: Face,
    framework: Annotated[str, typer.Option(metavar="GLOB", help="Such as oneflow-*.")] = "*",
    model: Annotated[str, typer.Option(metavar="GLOB", help="Such as bert*.")] = "*",
    precision: Annotated[str, typer.Option(metavar="GLOB", help="Such as amp*.")] = "*",
    hardware: Annotated[str, typer.Option(metavar="GLOB", help="Such as A100*.")] = "*",
) -> int:
    """List published results of these benchmarks, with their sources."""
    from orchestrator.verbs import published as verb

    return verb.list_published(
        face.voice, framework=framework, model=model, precision=precision, hardware=hardware
    )


@command(app, has_state=False)
def check(
    face: Face, files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Or names.")]
) -> int:
    """Check inventories, playbooks and image files. Nothing is reached or changed."""
    from orchestrator.verbs import check as verb

    return verb.check(files, face.voice)


@command(app, has_state=False)
def schema(
    _face: Face,
    kind: Annotated[
        str,
        typer.Argument(metavar="inventory|playbook", autocompletion=among("inventory", "playbook")),
    ],
) -> int:
    """Print the JSON Schema of a kind of file, for editors."""
    from orchestrator.verbs import check as verb

    sys.stdout.write(verb.schema(kind))
    return 0


@command(app, "list")
def list_all(
    face: Face,
    kind: Annotated[str, typer.Argument(metavar="|".join(KINDS), autocompletion=among(*KINDS))],
) -> int:
    """List what is here and what is shipped."""
    from orchestrator.verbs import list_ as verb

    if kind not in KINDS:
        fix = f"one of {', '.join(KINDS)}"
        raise errors.UsageError(f"there are no {kind!r} to list", code="NO-KIND", fix=fix)
    return verb.list_all(face.store, kind, face.voice)


def _inspect(face: Face, kind: str, file: str) -> int:
    from orchestrator.verbs import inspect as verb

    return verb.inspect_text(kind, file, face.voice)


@command(inspecting, has_state=False, json_only=True)
def topology(face: Face, file: FileOrDash) -> int:
    """Read `nvidia-smi topo -m`."""
    return _inspect(face, "topology", file)


@command(inspecting, has_state=False, json_only=True)
def ibstat(face: Face, file: FileOrDash) -> int:
    """Read `ibstat`."""
    return _inspect(face, "ibstat", file)


@command(inspecting, has_state=False, json_only=True)
def gpu(face: Face, file: FileOrDash) -> int:
    """Read `nvidia-smi -q -x`."""
    return _inspect(face, "gpu", file)


@command(inspecting, has_state=False, json_only=True)
def log(
    face: Face,
    file: FileOrDash,
    workload: Annotated[str, typer.Option(help="What wrote the log.", autocompletion=WORKLOADS)],
    between: Window = None,
    rule: Annotated[Rule | None, typer.Option(help="How throughput is taken from it.")] = None,
    global_batch_size: Annotated[int | None, typer.Option(parser=whole(1), metavar="N")] = None,
) -> int:
    """Read a training log."""
    from orchestrator.collecting.logs import Reading
    from orchestrator.verbs import inspect as verb

    reading = Reading(workload, window(between), rule)
    return verb.inspect_log(file, reading, global_batch_size, face.voice)
