"""list: which playbooks, workloads, images, inventories and sweeps there are."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from orchestrator import errors, words, workloads
from orchestrator.cli.command import Face, command
from orchestrator.collecting import evidence
from orchestrator.console import Voice
from orchestrator.files import shipped
from orchestrator.state.sweep import Sweep

SWEEPS = ("sweep", "cluster", "created", "trials", "valid", "medians as last collected")
MOST = 3
"""Medians in a row of the table; JSON has all."""
# What could not be read is None; no median is known before the first collect.
_UNREAD = {"trials": None, "valid": None, "state": "readable", "unit": None, "medians": ()}


@command("list", "list playbooks", "list sweeps")
def list_all(
    face: Face,
    kind: Literal["playbooks", "workloads", "images", "inventories", "sweeps"],
) -> int:
    voice = face.voice
    rows: list[dict[str, Any]] = []
    if kind == "sweeps":
        rows += map(_row, face.store.sweeps())
        for name, why in face.store.unreadable().items():
            state = "other version" if why.code == "STORE-VERSION" else "damaged"
            unread = {**_UNREAD, "state": state}
            rows.append({"sweep": name, "cluster": state, "created": "", **unread})
        voice.table(kind, SWEEPS, [*map(build_cells, rows)], spare=("created", "cluster"))
    elif kind == "workloads":
        rows += (
            {"workload": name, "title": _find_title(name, voice)} for name in workloads.names()
        )
        voice.listing(kind, rows)
    else:
        files = shipped.names("inventory" if kind == "inventories" else kind)
        for name, path in sorted(files.items()):
            about = {} if kind == "inventories" else {"description": _read_description(path)}
            rows.append({"name": name, **about, "file": str(path)})
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


def build_cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the row of the table for a row of JSON."""
    medians = [
        f"{it['case']['placement']} {it['case']['precision']} {it['median']:.2f}"
        for it in row["medians"]
    ]
    shown = f"{', '.join(medians[:MOST])} {row['unit']}" if medians else ""
    if (more := len(medians) - MOST) > 0:
        shown += f", and {more} more"
    return (
        row["sweep"],
        row["cluster"],
        words.moment(row["created"]),
        "" if row["trials"] is None else str(row["trials"]),
        row["state"] if row["valid"] is None else str(row["valid"]),
        shown,
    )


def _row(sweep: Sweep) -> dict[str, Any]:
    record = sweep.record()
    named = {"sweep": sweep.id, "cluster": record.cluster, "created": record.created}
    row: dict[str, Any] = {**named, **_UNREAD, "trials": len(record.plan.trials)}
    try:
        histories = sweep.histories()
        row["trials"] -= len(evidence.not_needed(sweep, record.plan, histories))
    except errors.DlperfError:
        return {**row, "state": "damaged"}
    row["valid"] = sum(history.state == "valid" for history in histories.values())
    try:
        results = json.loads((sweep.folder / "results.json").read_bytes())
        medians = tuple(
            {name: result[name] for name in ("case", "median", "trials_valid")}
            for result in results["cases"]
            if result["median"] is not None
        )
        collected = {**row, "unit": str(results["unit"]) or None, "medians": medians}
        build_cells(collected)
    except (OSError, ValueError, KeyError, TypeError):  # never collected, or damaged
        return row
    return collected
