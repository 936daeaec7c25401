"""The rows of ``list sweeps``: sweeps with their medians as they were last collected."""

import json
from collections.abc import Mapping
from typing import Any

from orchestrator import errors, words
from orchestrator.collecting import evidence
from orchestrator.state.store import Store
from orchestrator.state.sweep import Sweep

MOST = 3
"""Medians in a row of the table; JSON has all."""
# What could not be read is None; no median is known before the first collect.
_UNREAD: Mapping[str, Any] = {
    "trials": None,
    "valid": None,
    "state": "readable",
    "unit": None,
    "medians": (),
}


def cells(row: Mapping[str, Any]) -> tuple[str, ...]:
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


def rows(store: Store) -> list[dict[str, Any]]:
    """Return all sweeps of a state folder, those that cannot be read at the end."""
    found = [*map(_row, store.sweeps())]
    for name, why in store.unreadable().items():
        state = "other version" if why.code == "STORE-VERSION" else "damaged"
        found.append({"sweep": name, "cluster": state, "created": "", **_UNREAD, "state": state})
    return found


def _row(sweep: Sweep) -> dict[str, Any]:
    record = sweep.record()
    row: dict[str, Any] = {
        "sweep": sweep.id,
        "cluster": record.cluster,
        "created": record.created,
        **_UNREAD,
    }
    row["trials"] = len(record.plan.trials)
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
        cells(collected)
    except (OSError, ValueError, KeyError, TypeError):  # never collected, or damaged
        return row
    return collected
