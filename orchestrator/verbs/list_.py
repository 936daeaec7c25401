"""list: which playbooks, workloads, images, inventories and sweeps there are."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from orchestrator import errors, workloads
from orchestrator.cli.command import Face, command
from orchestrator.cli.options import among
from orchestrator.collecting import sweep_list
from orchestrator.console import Voice
from orchestrator.files import shipped

KINDS = ("playbooks", "workloads", "images", "inventories", "sweeps")
SWEEPS = ("sweep", "cluster", "created", "trials", "valid", "medians as last collected")


@command("list")
def list_all(
    face: Face,
    kind: Annotated[str, typer.Argument(metavar="|".join(KINDS), autocompletion=among(*KINDS))],
) -> int:
    """Show everything of a kind; exit code."""
    voice = face.voice
    if kind == "sweeps":
        found = sweep_list.rows(face.store)
        voice.table(kind, SWEEPS, [row.cells() for row in found], spare=("created", "cluster"))
        rows = [asdict(row) for row in found]
    else:
        if kind == "workloads":
            rows = [
                {"workload": name, "title": _find_title(name, voice)} for name in workloads.names()
            ]
        elif kind == "inventories":
            files = sorted(shipped.names("inventory").items())
            rows = [{"name": name, "file": str(path)} for name, path in files]
        elif kind in ("playbooks", "images"):
            files = sorted(shipped.names("playbooks" if kind == "playbooks" else "images").items())
            rows = [
                {"name": name, "description": _read_description(path), "file": str(path)}
                for name, path in files
            ]
        else:
            raise errors.UsageError(
                f"there are no {kind!r} to list", code="NO-KIND", fix=f"one of {', '.join(KINDS)}"
            )
        voice.listing(kind, rows, spare=("file",))
    if not rows:
        voice.result(f"no {kind}")
    voice.document(rows)
    return 0


def _read_description(path: Path) -> str:
    """Return the file's description even if the rest is invalid; ``?`` if it is no YAML."""
    from orchestrator.files import yaml_reader  # the other lists need no YAML

    try:
        data = yaml_reader.read(path).data
    except errors.ConfigError:
        return "?"
    words = data.get("description", "") if isinstance(data, dict) else ""
    return words if isinstance(words, str) else "?"


def _find_title(workload: str, voice: Voice) -> str:
    try:
        found = workloads.find(workload)
    except errors.LocalError as error:
        voice.line(str(error))
        return "?"
    return found.title if found else "?"
