"""The tables of a report as people see them on a terminal."""

from typing import TYPE_CHECKING

from orchestrator import words
from orchestrator.model.report import Report
from orchestrator.model.result import Result

if TYPE_CHECKING:
    from orchestrator.console.voice import Voice

SPARE = ("CI coverage", "interval", "transport", "spread", "efficiency")
"""Columns that a narrow terminal goes without, in this order."""


def show(report: Report, voice: "Voice") -> None:
    """Print medians and speedups, published results, and logs of no case."""
    unit = report.unit
    head: tuple[str, ...] = (
        "case",
        "batch",
        "precision",
        unit,
        "speedup",
        "efficiency",
        "trials",
        "spread",
    )
    head += ("interval", "CI coverage", "transport", "marks")
    voice.table(report.source, head, [_row(report, result) for result in report.results], SPARE)
    rows = []
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
    head = ("published by", "case", "precision", unit, "difference", "GPUs", "source")
    voice.table("Published results of these cases", head, rows, ("source", "GPUs"))
    keys = ("world_size", "micro_batch_size", "precision")
    lone = [
        (
            *(str(it.log.config.get(key, "?")) for key in keys),
            _number(it.throughput),
            _number(it.log.rate.mean if it.log.rate else None),
            " ".join(problem.code for problem in it.problems),
            words.printable(it.path),
        )
        for it in report.lone
    ]
    head = ("world size", "batch", "precision", unit, "mean of printed", "problems", "log")
    voice.table(f"Logs in {report.source}", head, lone)


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
