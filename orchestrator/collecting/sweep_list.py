"""The rows of ``list sweeps``: sweeps with their medians as they were last collected."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from orchestrator import errors, words
from orchestrator.collecting import settled
from orchestrator.model.facts import JSON
from orchestrator.state.store import Store
from orchestrator.state.sweep import Sweep

MOST = 3
"""Medians in a row of the table; JSON has all."""


@dataclass(frozen=True, slots=True)
class SweepRow:
    """A sweep; None is what could not be read.

    Args:
        state: empty, or why it could not be read.
        medians: of each case, as results.json has it; empty before the first collect.
    """

    name: str
    cluster: str
    created: str
    trials: int | None
    valid: int | None
    state: str = ""
    unit: str = ""
    medians: tuple[Mapping[str, JSON], ...] = ()

    def cells(self) -> tuple[str, ...]:
        """It as a row of the table."""
        shown = ", ".join(map(_short, self.medians[:MOST]))
        if shown:
            shown += f" {self.unit}"
        if (more := len(self.medians) - MOST) > 0:
            shown += f", and {more} more"
        return (
            self.name,
            self.cluster or self.state,
            words.moment(self.created),
            "" if self.trials is None else str(self.trials),
            self.state if self.valid is None else str(self.valid),
            shown,
        )

    def document(self) -> dict[str, JSON]:
        """It as ``list sweeps --json`` has it."""
        return {
            "sweep": self.name,
            "cluster": self.cluster or self.state,
            "created": self.created,
            "trials": self.trials,
            "valid": self.valid,
            "state": self.state or "readable",
            "unit": self.unit or None,
            "medians": list(self.medians),
        }


def rows(store: Store) -> list[SweepRow]:
    """All sweeps of a state folder, those that cannot be read at the end."""
    unread = [
        SweepRow(name, "", "", None, None, _unread(why)) for name, why in store.unreadable().items()
    ]
    return [*map(_row, store.sweeps()), *unread]


def _row(sweep: Sweep) -> SweepRow:
    record = sweep.record()
    unit, medians = _medians(sweep)
    planned = len(record.plan.trials)
    try:
        histories = sweep.histories()
        rests = settled.not_needed(sweep, record.plan, histories)
    except errors.DlperfError:
        return SweepRow(sweep.id, record.cluster, record.created, planned, None, "damaged")
    valid = sum(history.state == "valid" for history in histories.values())
    needed = planned - len(rests)
    return SweepRow(
        sweep.id, record.cluster, record.created, needed, valid, unit=unit, medians=medians
    )


def _medians(sweep: Sweep) -> tuple[str, tuple[Mapping[str, JSON], ...]]:
    """Unit and medians in the sweep's results.json; nothing where none can be read."""
    try:
        results = json.loads((sweep.folder / "results.json").read_bytes())
        found = tuple(
            {name: result[name] for name in ("case", "median", "trials_valid")}
            for result in results["cases"]
            if result["median"] is not None
        )
        return str(results["unit"]), found
    except (OSError, ValueError, KeyError, TypeError):
        return "", ()


def _short(median: Mapping[str, JSON]) -> str:
    case, value = median["case"], median["median"]
    if not isinstance(case, Mapping) or not isinstance(value, int | float):
        return "?"
    return f"{case.get('placement')} {case.get('precision')} {value:.2f}"


def _unread(why: errors.DlperfError) -> str:
    return "other version" if why.code == "STORE-VERSION" else "damaged"
