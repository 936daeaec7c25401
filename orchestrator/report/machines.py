"""The state of the machines beside what was measured: a table, and its JSON."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from statistics import median

from orchestrator.model.facts import JSON
from orchestrator.model.result import Measurement, Result
from orchestrator.model.telemetry import MachineState
from orchestrator.report import labels, rounding
from orchestrator.report.markdown_page import Page, escaped, table

HEADS = (
    *("moments", "sm_clock", "memory_clock", "power"),
    *("temperature", "utilisation", "others", "steal", "load", "limits", "energy"),
)
OF_HOSTS = ("load", "others", "steal")
OF_GPUS = tuple(key for key in HEADS if key not in OF_HOSTS)
"""Two tables where a page has no room for one."""


def states(page: Page) -> Sequence[str]:
    """What the tables are, and of GPUs and of processors a row per case of which any was seen."""
    rows = [(labels.of_case(page.report, result), *cells) for result, cells in values(page)]
    if not rows:
        return ()
    return (page.say("machines.how"), *(_table(page, rows, keys) for keys in (OF_GPUS, OF_HOSTS)))


def _table(page: Page, rows: Sequence[Sequence[str]], keys: Sequence[str]) -> str:
    """Columns of these keys; those behind the first one without what nobody tells."""
    first, *others = (1 + HEADS.index(key) for key in keys)
    told = [place for place in others if {row[place] for row in rows} != {rounding.NONE}]
    places, head = (0, first, *told), page.heads("case", *HEADS)
    return table([head[it] for it in places], [[escaped(row[it]) for it in places] for row in rows])


def values(page: Page) -> list[tuple[Result, tuple[str, ...]]]:
    """The cells of that table behind the case, as they are."""
    return [(result, _row(page, result)) for result in page.report.results if _states(result)]


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
