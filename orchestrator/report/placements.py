"""Tables with a row for each placement: nodes, GPUs, batch size, throughput, speedup and more."""

from collections.abc import Sequence

from orchestrator.model.result import Measurement, Result
from orchestrator.report import cells, labels, rounding
from orchestrator.report.markdown_page import Page, escaped, table


def final(page: Page) -> str:
    """A table for each group of ``series``."""
    return "\n\n".join(_final(page, group) for group in labels.series(page.report))


def every_trial(page: Page) -> str:
    """A row for every trial of every case, in the same groups."""
    groups = labels.series(page.report)
    titles = [_title(page, group) + "\n\n" if len(groups) > 1 else "" for group in groups]
    tables = [_trials(page, group) for group in groups]
    return "\n\n".join(title + rows for title, rows in zip(titles, tables, strict=True))


def _title(page: Page, group: Sequence[Result]) -> str:
    return f"### {escaped(labels.of_series(page, group))}"


def _final(page: Page, group: Sequence[Result]) -> str:
    layout = page.report.layout
    head = (layout.nodes, layout.gpus, layout.batch, layout.throughput)
    rows = [
        (
            *_place(result),
            rounding.fixed(result.median, layout.decimals),
            _speedup(page, result),
            rounding.share(result.efficiency),
            rounding.of_trials(page.report, result, page.language),
        )
        for result in group
    ]
    further = page.heads("speedup", "efficiency", "trials")
    return f"{_title(page, group)}\n\n{table((*head, *further), rows)}"


def _trials(page: Page, group: Sequence[Result]) -> str:
    layout = page.report.layout
    head = (layout.nodes, layout.gpus, layout.batch, layout.throughput)
    rows = [
        (*_place(result), _throughput(page, trial), *cells.trial(page, trial))
        for result in group
        for trial in result.trials
    ]
    return table((*head, *page.heads(*cells.TRIAL)), rows)


def _place(result: Result) -> tuple[str, str, str]:
    case = result.case
    return str(case.nodes), str(case.gpus_per_node), str(case.micro_batch_size)


def _throughput(page: Page, trial: Measurement) -> str:
    return rounding.fixed(trial.throughput, page.report.layout.decimals)


def _speedup(page: Page, result: Result) -> str:
    if result.speedup is not None:
        return f"{result.speedup:.2f}"
    return page.say("no_baseline") if result.statistics else rounding.NONE
