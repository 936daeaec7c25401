"""The tables of a report as people see them on a terminal."""

from collections.abc import Iterable, Sequence

from orchestrator import words
from orchestrator.model.report import Report
from orchestrator.model.result import Result, Watched

SPARE = ("CI coverage", "interval", "transport", "spread", "efficiency")
"""Columns that a narrow terminal goes without, in this order."""


Shown = tuple[str, Sequence[str], Sequence[Sequence[str]], Sequence[str]]
"""A table's title, head and rows, and the columns that may be hidden, in that order."""


def tables_of(report: Report) -> Iterable[Shown]:
    """Yield medians and speedups, published results, canary, speeds of nodes, logs of no case."""
    if report.results:
        head = ("case", "batch", "precision", report.unit, "speedup", "efficiency")
        more = ("trials", "spread", "interval", "CI coverage", "transport", "marks")
        rows = [_row(report, result) for result in report.results]
        yield report.source, (*head, *more), rows, SPARE
        yield _published_results(report)
        if report.canary:
            yield _canary(report, report.canary)
    speeds = [(it.node, str(it.trials), f"{it.speed:.3f}") for it in report.node_speeds]
    yield "Nodes beside one another", ("node", "trials", "speed"), speeds, ()
    yield _lone(report)


def _published_results(report: Report) -> Shown:
    rows: list[Sequence[str]] = []
    for result in report.results:
        if not (published := report.published_for(result)):
            continue
        first, *others = published
        batch = f"b{first.batch}" if first.batch.isdecimal() else first.batch
        difference = first.difference(result)
        row = (
            first.framework,
            f"{first.placement} {batch}",
            first.precision,
            str(first.throughput),
            "n/a" if difference is None else f"{difference:+z.1%}",
            first.hardware,
            first.source + (f" (and {len(others)} more in the report)" if others else ""),
        )
        rows.append(row)
    head = ("published by", "case", "precision", report.unit, "difference", "GPUs", "source")
    return "Published results of these cases", head, rows, ("source", "GPUs")


def _canary(report: Report, watched: Watched) -> Shown:
    case = watched.case
    title = f"Canary {case.placement}, batch {case.micro_batch_size}, {case.precision}"
    rows = [
        (place, _number(trial.throughput), trial.state, codes)
        for place, trial in zip(watched.places, watched.trials, strict=True)
        for codes in (" ".join(mark.code for mark in (*trial.problems, *watched.marks)),)
    ]
    return title, ("measured at", report.unit, "state", "marks"), rows, ()


def _lone(report: Report) -> Shown:
    rows = [
        (
            str(lone.log.config.get("world_size", "?")),
            str(lone.log.config.get("micro_batch_size", "?")),
            str(lone.log.config.get("precision", "?")),
            _number(lone.throughput),
            _number(lone.log.rate.mean if lone.log.rate else None),
            " ".join(problem.code for problem in lone.problems),
            words.printable(lone.path),
        )
        for lone in report.lone
    ]
    head = ("world size", "batch", "precision", report.unit, "mean of printed", "problems", "log")
    return f"Logs in {report.source}", head, rows, ()


def _number(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.2f}"


def _row(report: Report, result: Result) -> tuple[str, ...]:
    statistics, case = result.statistics, result.case
    interval = statistics.interval if statistics else None
    params = [
        f"{name}={value}"
        for name, value in case.params
        if any(dict(other.case.params).get(name) != value for other in report.results)
    ]
    return (
        " ".join(filter(None, (case.placement, report.names.get(case)))),
        str(case.micro_batch_size),
        " ".join([case.precision, *params]),
        _number(result.median),
        _number(result.speedup),
        f"{result.efficiency:.1%}" if result.efficiency is not None else "n/a",
        f"{statistics.n if statistics else 0}/{report.planned(result)}",
        f"{statistics.spread:.1%}" if statistics and statistics.spread is not None else "",
        f"{interval.low:.2f}-{interval.high:.2f}" if interval else "",
        f"{interval.coverage:.1%}" if interval else "",
        result.transport.removeprefix("-"),
        " ".join(mark.code for mark in result.marks),
    )
