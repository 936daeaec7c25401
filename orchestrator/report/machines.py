"""The state of the machines beside what was measured: tables, and its JSON."""

from collections.abc import Callable, Iterable
from dataclasses import asdict
from statistics import median

from orchestrator.model.facts import JSON
from orchestrator.model.result import Measurement, Result
from orchestrator.model.telemetry import MachineState
from orchestrator.report import rounding
from orchestrator.report.markdown_page import Page
from orchestrator.report.tables import Row, Table, case_cell

HEADS = (
    *("moments", "sm_clock", "memory_clock", "power"),
    *("temperature", "utilisation", "others", "steal", "load", "limits", "energy"),
)
OF_HOSTS = ("load", "others", "steal")
OF_GPUS = tuple(key for key in HEADS if key not in OF_HOSTS)
"""Two tables where a page has no room for one."""


def states(page: Page) -> list[Table]:
    """Build the tables of GPUs and of processors, a row for each case of which any was seen."""
    seen = [(result, _row(page, result)) for result in page.report.results if _states(result)]
    found = []
    for name, keys in (("clocks", OF_GPUS), ("processors", OF_HOSTS)) if seen else ():
        first, *others = (HEADS.index(key) for key in keys)
        told = [at for at in others if {row[at] for _, row in seen} != {rounding.NONE}]
        head, places = page.heads("case", *HEADS), (first, *told)
        rows: list[Row] = [
            (case_cell(page, result), *(row[at] for at in places)) for result, row in seen
        ]
        found.append(
            Table(page.say(f"machines.{name}"), (head[0], *(head[1 + at] for at in places)), rows)
        )
    return found


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
    return {**asdict(state), "limits": limits}


def _states(result: Result) -> tuple[MachineState, ...]:
    return tuple(state for trial in result.valid for state in trial.machines)


def _row(page: Page, result: Result) -> tuple[str, ...]:
    states = _states(result)

    def middle(value: Callable[[MachineState], float | None], decimals: int = 0) -> str:
        values = [number for state in states if (number := value(state)) is not None]
        return rounding.fixed(median(values) if values else None, decimals)

    steals = [state.steal for state in states if state.steal is not None]
    return (
        str(sum(state.moments for state in states)),
        middle(lambda state: state.sm_mhz),
        middle(lambda state: state.memory_mhz),
        middle(lambda state: state.power_w),
        middle(lambda state: state.temperature_c),
        middle(lambda state: state.utilisation_pct),
        middle(lambda state: state.others_cpus, 1),
        rounding.share(median(steals) if steals else None),
        middle(lambda state: state.load, 1),
        _limits(page, states),
        rounding.short(result.energy_per_sample, 3),
    )


def _limits(page: Page, states: Iterable[MachineState]) -> str:
    told = [state.limits for state in states if state.limits is not None]
    names = sorted({name for limits in told for name in limits})
    none_seen = page.say("limits.none") if told else rounding.NONE
    return ", ".join(names) if names else none_seen
