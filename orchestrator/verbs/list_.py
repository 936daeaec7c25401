"""list: which playbooks, workloads, images, inventories and sweeps there are."""

from pathlib import Path
from typing import Literal

from orchestrator import errors, workloads
from orchestrator.cli.command import Face, command
from orchestrator.collecting import sweep_list
from orchestrator.console import Voice
from orchestrator.files import shipped

SWEEPS = ("sweep", "cluster", "created", "trials", "valid", "medians as last collected")


@command("list", "list playbooks", "list sweeps")
def list_all(
    face: Face,
    kind: Literal["playbooks", "workloads", "images", "inventories", "sweeps"],
) -> int:
    voice = face.voice
    if kind == "sweeps":
        rows = sweep_list.rows(face.store)
        voice.table(kind, SWEEPS, [*map(sweep_list.cells, rows)], spare=("created", "cluster"))
    else:
        if kind == "workloads":
            rows = [
                {"workload": name, "title": _find_title(name, voice)} for name in workloads.names()
            ]
        elif kind == "inventories":
            files = sorted(shipped.names("inventory").items())
            rows = [{"name": name, "file": str(path)} for name, path in files]
        else:
            files = sorted(shipped.names(kind).items())
            rows = [
                {"name": name, "description": _read_description(path), "file": str(path)}
                for name, path in files
            ]
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
        return workloads.require(workload).title
    except errors.LocalError as error:
        voice.line(str(error))
        return "?"
