"""Tables with a row per number of GPUs, and a column per precision and batch size.

Source: the form of DLPerf's report on NGC TensorFlow ResNet-50.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from orchestrator.model.result import Result
from orchestrator.report import labels, placements, rounding
from orchestrator.report.markdown_page import Page, escaped, table

ABSENT = "-"


def final(page: Page) -> str:
    """Throughputs, then speedups, then the table of ``placements``."""
    parts = [
        f"{escaped(title)}\n\n{table([escaped(cell) for cell in head], rows)}"
        for title, head, rows in wide(page)
    ]
    return "\n\n".join((*parts, page.heading("details"), placements.final(page)))


def wide(page: Page) -> Iterable[tuple[str, Sequence[str], Sequence[Sequence[str]]]]:
    """Title, heads and cells of the table of throughputs, then of that of speedups."""
    decimals = page.report.layout.decimals
    unit = page.say("by_gpus", unit=page.report.unit)
    yield unit, *_table(page, lambda result: _throughput(result, decimals))
    yield page.say("speedups"), *_table(page, _speedup)


def _table(
    page: Page, cell: Callable[[Result], str]
) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    columns = labels.series(page.report)
    heads = [labels.of_settings(page.report, column[0].case) for column in columns]
    by_place = [{result.case.placement: result for result in column} for column in columns]
    rows = [
        (label, *(cell(results[place]) if place in results else ABSENT for results in by_place))
        for place, label in _rows(page)
    ]
    return (*page.heads("gpus"), *heads), rows


def _throughput(result: Result, decimals: int) -> str:
    if all(trial.state == "planned" for trial in result.trials):
        return ABSENT
    return rounding.fixed(result.median, decimals)


def _speedup(result: Result) -> str:
    return ABSENT if result.speedup is None else f"{result.speedup:.2f}"


def _rows(page: Page) -> list[tuple[str, str]]:
    """Return placement and label; two placements of as many GPUs are told apart."""
    cases = (result.case for result in page.report.results)
    sizes = {case.placement: case.world_size for case in cases}
    times = Counter(sizes.values())
    return [
        (place, str(size) if times[size] == 1 else f"{size} ({place})")
        for place, size in sizes.items()
    ]
