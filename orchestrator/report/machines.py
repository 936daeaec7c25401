"""The state of the machines beside what was measured: tables, and its JSON."""

from collections.abc import Iterable
from dataclasses import asdict
from statistics import median

from orchestrator.model.facts import JSON
from orchestrator.model.result import Measurement, Result
from orchestrator.model.telemetry import MachineState
from orchestrator.report import rounding
from orchestrator.report.page import Page
from orchestrator.report.tables import case_span
from orchestrator.report.tree import Row, Table

MEDIANS = {
    "sm_clock": ("sm_mhz", 0),
    "memory_clock": ("memory_mhz", 0),
    "power": ("power_w", 0),
    "temperature": ("temperature_c", 0),
    "utilisation": ("utilisation_pct", 0),
    "load": ("load", 1),
    "others": ("others_cpus", 1),
}
"""By column, the field of a state that its median is of, and how many decimals are printed."""
OF_HOSTS = ("moments", "load", "others", "steal")
NEEDED = frozenset({"moments", "load", "others"})
"""Columns that say so where nothing was observed."""


def states(page: Page) -> list[Table]:
    """Build the tables of GPUs and of processors: a row for each case with a valid trial.

    A column is left out if nothing of it was observed in any case, unless it is a needed one.
    """
    counting = [result for result in page.report.results if result.valid]
    if not any(map(_states, counting)):
        return []
    rows, nothing = [(result, _row(page, result)) for result in counting], page.say("not_observed")
    seen = [
        key for key in rows[0][1] if key in NEEDED or any(row[key] != nothing for _, row in rows)
    ]
    of_gpus = [key for key in seen if key not in OF_HOSTS]
    found = []
    for name, keys in (("clocks", of_gpus), ("processors", [it for it in OF_HOSTS if it in seen])):
        if keys:
            cells: list[Row] = [
                (case_span(page, result), *(row[key] for key in keys)) for result, row in rows
            ]
            found.append(Table(page.say(f"machines.{name}"), page.heads("case", *keys), cells))
    return found


def describe_span(page: Page) -> str:
    """Say of which time the state is, and of how many trials it is not that of the window."""
    trials = (trial for result in page.report.results for trial in result.valid)
    spans = [{state.span for state in trial.machines} for trial in trials]
    unplaced = sum("run" in span for span in spans)
    said = page.say("machines.unplaced", count=unplaced) if unplaced else ""
    return page.say("machines.how") + said


def document(trial: Measurement) -> dict[str, JSON]:
    """Return the machines of a trial for results.json; unknown values are null, never 0."""
    energy = trial.energy
    return {
        "machines": [_machine(state) for state in trial.machines],
        "energy_j": energy.joules if energy else None,
        "energy_per_sample_j": energy.per_sample if energy else None,
        "energy_source": energy.source if energy else None,
    }


def _machine(state: MachineState) -> dict[str, JSON]:
    limits = None if state.limits is None else list(state.limits)
    values = {**asdict(state), "limits": limits}
    unseen = [key for key, it in values.items() if it is None and key != "memory_peak_mib"]
    return {**values, "not_observed": unseen}  # memory_mib is there as soon as its peak is


def _states(result: Result) -> tuple[MachineState, ...]:
    return tuple(state for trial in result.valid for state in trial.machines)


def _row(page: Page, result: Result) -> dict[str, str]:
    """Return the cell of each column, those of GPUs in their order."""
    states, nothing = _states(result), page.say("not_observed")

    def get_values(name: str) -> list[float]:
        return [value for it in states if (value := getattr(it, name)) is not None]

    middles = {
        key: rounding.fixed(median(values), decimals) if (values := get_values(name)) else nothing
        for key, (name, decimals) in MEDIANS.items()
    }
    steals, energy = get_values("steal"), result.energy_per_sample
    return {
        "moments": str(sum(state.moments for state in states)),
        **middles,
        "steal": rounding.share(median(steals)) if steals else nothing,
        "limits": _limits(page, states),
        "energy": nothing if energy is None else rounding.short(energy, 3),
    }


def _limits(page: Page, states: Iterable[MachineState]) -> str:
    told = [state.limits for state in states if state.limits is not None]
    names = sorted({name for limits in told for name in limits})
    return ", ".join(names) or page.say("limits.none" if told else "not_observed")
