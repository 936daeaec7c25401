"""The rows of ``list sweeps``: sweeps with their medians as they were last collected."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

from orchestrator import errors, words
from orchestrator.collecting import evidence
from orchestrator.model.facts import JSON
from orchestrator.state.store import Store
from orchestrator.state.sweep import Sweep

MOST = 3
"""Medians in a row of the table; JSON has all."""


@dataclass(frozen=True, slots=True)
class SweepRow:
    """A sweep as ``list sweeps --json`` has it; None is what could not be read.

    Args:
        state: ``readable``, or why it could not be read.
        medians: of each case, as results.json has it; empty before the first collect.
    """

    sweep: str
    cluster: str
    created: str
    trials: int | None
    valid: int | None
    state: str = "readable"
    unit: str | None = None
    medians: tuple[Mapping[str, JSON], ...] = ()

    def cells(self) -> tuple[str, ...]:
        medians = [_describe(median["case"], median["median"]) for median in self.medians]
        shown = f"{', '.join(medians[:MOST])} {self.unit}" if medians else ""
        if (more := len(medians) - MOST) > 0:
            shown += f", and {more} more"
        return (
            self.sweep,
            self.cluster,
            words.moment(self.created),
            "" if self.trials is None else str(self.trials),
            self.state if self.valid is None else str(self.valid),
            shown,
        )


def _describe(case: JSON, value: JSON) -> str:
    if isinstance(case, Mapping) and isinstance(value, int | float):
        return f"{case.get('placement')} {case.get('precision')} {value:.2f}"
    return "?"


def rows(store: Store) -> list[SweepRow]:
    """Return all sweeps of a state folder, those that cannot be read at the end."""
    found = [*map(_row, store.sweeps())]
    for name, why in store.unreadable().items():
        state = "other version" if why.code == "STORE-VERSION" else "damaged"
        found.append(SweepRow(name, state, "", None, None, state))
    return found


def _row(sweep: Sweep) -> SweepRow:
    record = sweep.record()
    row = SweepRow(sweep.id, record.cluster, record.created, len(record.plan.trials), None)
    try:
        histories = sweep.histories()
        rests = evidence.not_needed(sweep, record.plan, histories)
    except errors.DlperfError:
        return replace(row, state="damaged")
    valid = sum(history.state == "valid" for history in histories.values())
    row = replace(row, trials=len(record.plan.trials) - len(rests), valid=valid)
    try:
        results = json.loads((sweep.folder / "results.json").read_bytes())
        medians = tuple(
            {name: result[name] for name in ("case", "median", "trials_valid")}
            for result in results["cases"]
            if result["median"] is not None
        )
        return replace(row, unit=str(results["unit"]) or None, medians=medians)
    except (OSError, ValueError, KeyError, TypeError):  # never collected, or damaged
        return row
