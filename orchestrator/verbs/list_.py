"""list: which playbooks, workloads, images, inventories and sweeps there are."""

from dataclasses import asdict
from pathlib import Path

from orchestrator import errors, workloads
from orchestrator.collecting import sweep_list
from orchestrator.console import Voice
from orchestrator.files import shipped
from orchestrator.state.store import Store


def list_all(store: Store, kind: str, voice: Voice) -> int:
    """Show everything of a kind; exit code."""
    if kind == "sweeps":
        return _list_sweeps(store, voice)
    head: tuple[str, ...]
    rows: list[tuple[str, ...]]
    if kind == "workloads":
        head = ("workload", "title")
        rows = [(name, _find_title(name, voice)) for name in workloads.names()]
    elif kind == "inventories":
        head = ("name", "file")
        rows = [(name, str(path)) for name, path in sorted(shipped.names("inventory").items())]
    else:
        head = ("name", "description", "file")
        files = shipped.names("playbooks" if kind == "playbooks" else "images")
        rows = [(name, _read_description(path), str(path)) for name, path in sorted(files.items())]
    voice.table(kind, head, rows, spare=("file",))
    if not rows:
        voice.result(f"no {kind}")
    voice.document([dict(zip(head, row, strict=True)) for row in rows])
    return 0


def _list_sweeps(store: Store, voice: Voice) -> int:
    rows = sweep_list.rows(store)
    head = ("sweep", "cluster", "created", "trials", "valid", "medians as last collected")
    voice.table("sweeps", head, [row.cells() for row in rows], spare=("created", "cluster"))
    if not rows:
        voice.result("no sweeps")
    voice.document([asdict(row) for row in rows])
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
