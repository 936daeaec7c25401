"""Tables of the state of the machines beside what was measured."""

from statistics import median

from orchestrator.model.result import Result
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
TABLES = {
    "clocks": (*[*MEDIANS][:5], "limits", "energy"),
    "processors": ("moments", "load", "others", "steal"),
}
NEEDED = frozenset({"moments", "load", "others"})
"""Columns that say so where nothing was observed; others are left out if all cases lack them."""


def states(page: Page) -> list[Table]:
    """Build the tables of GPUs and of processors: a row for each case with a valid trial."""
    counting = [result for result in page.report.results if result.valid]
    if not any(trial.machines for result in counting for trial in result.valid):
        return []
    tables: list[Table] = []
    rows = [(case_span(page, result), _cells(page, result)) for result in counting]
    for name, columns in TABLES.items():
        keys = [key for key in columns if key in NEEDED or any(cells[key] for _, cells in rows)]
        if keys:
            nothing = page.say("not_observed")
            shown: list[Row] = [
                (case, *(cells[key] or nothing for key in keys)) for case, cells in rows
            ]
            title = page.say(f"machines.{name}")
            tables.append(Table(title, page.heads("case", *keys), shown))
    return tables


def describe_span(page: Page) -> str:
    """Say of which time the state is, and of how many trials it is not that of the window."""
    trials = (trial for result in page.report.results for trial in result.valid)
    unplaced = sum(any(it.span == "run" for it in trial.machines) for trial in trials)
    more = page.say("machines.unplaced", count=unplaced) if unplaced else ""
    return page.say("machines.how") + more


def _cells(page: Page, result: Result) -> dict[str, str]:
    """Return the cell of each column, empty where nothing was observed."""
    states = [state for trial in result.valid for state in trial.machines]

    def get_median(name: str) -> float | None:
        values = [value for it in states if (value := getattr(it, name)) is not None]
        return median(values) if values else None

    numbers = {
        "steal": rounding.share(get_median("steal")),
        "energy": rounding.short(result.energy_per_sample, 3),
        **{
            key: rounding.fixed(get_median(name), digits) for key, (name, digits) in MEDIANS.items()
        },
    }
    answers = [it.limits for it in states if it.limits is not None]
    limits = ", ".join(sorted({name for names in answers for name in names}))
    return {
        **{key: "" if number == rounding.NONE else number for key, number in numbers.items()},
        "moments": str(sum(state.moments for state in states)),
        "limits": limits or (page.say("limits.none") if answers else ""),
    }
