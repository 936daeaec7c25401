"""The state of the machines beside what was measured: tables, and its JSON."""

from collections.abc import Callable, Iterable
from dataclasses import asdict
from statistics import median

from orchestrator.model.facts import JSON
from orchestrator.model.result import Measurement, Result
from orchestrator.model.telemetry import MachineState
from orchestrator.report import rounding
from orchestrator.report.page import Page
from orchestrator.report.tables import case_span
from orchestrator.report.tree import Row, Table

HEADS = (
    *("moments", "sm_clock", "memory_clock", "power"),
    *("temperature", "utilisation", "others", "steal", "load", "limits", "energy"),
)
OF_HOSTS = ("moments", "load", "others", "steal")
OF_GPUS = tuple(key for key in HEADS if key not in OF_HOSTS)
"""Two tables where a page has no room for one."""
NEEDED = ("moments", "others", "load")
"""Columns that say so where nothing was observed."""


def states(page: Page) -> list[Table]:
    """Build the tables of GPUs and of processors: a row for each case with a valid trial.

    A column is left out if nothing of it was observed in any case, unless it is a needed one.
    """
    counting = [result for result in page.report.results if result.valid]
    if not any(map(_states, counting)):
        return []
    seen = [(result, _row(page, result)) for result in counting]
    found, nothing = [], page.say("not_observed")
    for name, keys in (("clocks", OF_GPUS), ("processors", OF_HOSTS)):
        places = [
            place
            for key in keys
            for place in (HEADS.index(key),)
            if key in NEEDED or any(row[place] != nothing for _, row in seen)
        ]
        if not places:
            continue
        head = page.heads("case", *(HEADS[place] for place in places))
        rows: list[Row] = [
            (case_span(page, result), *(row[place] for place in places)) for result, row in seen
        ]
        found.append(Table(page.say(f"machines.{name}"), head, rows))
    return found


def describe_span(page: Page) -> str:
    """Say of which time the state is, and of how many trials it is not that of the window."""
    trials = (trial for result in page.report.results for trial in result.valid)
    spans = [{state.span for state in trial.machines} for trial in trials]
    unplaced = sum("run" in span for span in spans)
    said = page.say("machines.unplaced", count=unplaced) if unplaced else ""
    return page.say("machines.how") + said


def document(trial: Measurement) -> dict[str, JSON]:
    """What results.json says of the machines of a trial; unknown values are null, never 0."""
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


def _row(page: Page, result: Result) -> tuple[str, ...]:
    states = _states(result)

    def middle(value: Callable[[MachineState], float | None], decimals: int = 0) -> str:
        values = [number for state in states if (number := value(state)) is not None]
        return rounding.fixed(median(values), decimals) if values else nothing

    nothing = page.say("not_observed")
    steals = [state.steal for state in states if state.steal is not None]
    energy = result.energy_per_sample
    return (
        str(sum(state.moments for state in states)),
        middle(lambda state: state.sm_mhz),
        middle(lambda state: state.memory_mhz),
        middle(lambda state: state.power_w),
        middle(lambda state: state.temperature_c),
        middle(lambda state: state.utilisation_pct),
        middle(lambda state: state.others_cpus, 1),
        rounding.share(median(steals)) if steals else nothing,
        middle(lambda state: state.load, 1),
        _limits(page, states),
        nothing if energy is None else rounding.short(energy, 3),
    )


def _limits(page: Page, states: Iterable[MachineState]) -> str:
    told = [state.limits for state in states if state.limits is not None]
    names = sorted({name for limits in told for name in limits})
    return ", ".join(names) or page.say("limits.none" if told else "not_observed")
