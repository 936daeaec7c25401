"""Numbers behind figures: the tables of their data, and what points say of themselves."""

import re
from collections.abc import Sequence

from orchestrator.verifying import columns, shown
from orchestrator.verifying.columns import Document, Value
from orchestrator.verifying.differences import Findings, at, number, text
from orchestrator.verifying.pages import Row
from orchestrator.verifying.shown import Report

_POINT = re.compile(r"(?P<name>[^:]+): (?P<values>-?\d+(?:\.\d+)? .*)")


def check_by_gpus(findings: Findings, file: str, rows: Sequence[Row], report: Report) -> None:
    """A row for each number of GPUs, a column for each series: throughputs, then speedups."""
    for row in rows:
        gpus, *cells = row.cells
        key = "median" if row.head is rows[0].head else "speedup"
        for group, cell in zip(report.series, cells, strict=False):
            own = [case for case in group if _is_of(gpus, case)]
            value = number(own[0].get(key)) if own else None
            findings.numbers += 1
            if not columns.fits(cell, [value]):
                findings.differs(file, f"line {row.line}", cell, value)


def _is_of(gpus: str, case: Document) -> bool:
    """Whether a row such as ``8`` or ``8 (2x4)`` is of a case."""
    size, _, placement = gpus.partition(" ")
    if placement:
        return placement == f"({at(case, 'case', 'placement')})"
    return size == str(at(case, "case", "world_size"))


def check_traces(findings: Findings, file: str, rows: Sequence[Row], report: Report) -> None:
    """The mean of the rates that each log prints between two iterations."""
    left = {(label, *span) for (label, _), trace in report.traces.items() for span in trace}
    for row in rows:
        label, span, *cells = row.cells
        first, _, last = span.partition("-")
        ends = tuple(int(end) for end in (first, last or first) if end.isdecimal())
        left.discard((label, *ends))
        for repeat, cell in enumerate(cells, 1):
            trace = report.traces.get((label, repeat))
            if trace is None:  # it does not count
                continue
            findings.numbers += 1
            value = trace.get(ends)
            if not columns.fits(cell, [value]):
                findings.differs(file, f"line {row.line}, trial {repeat}", cell, value)
    if left and rows:
        lacking = ", ".join(map(str, min(left)))
        findings.differs(file, "iterations", f"no row of {lacking}", f"{len(left)} rows more")


def check_points(findings: Findings, file: str, titles: Sequence[str], report: Report) -> None:
    """Compare what points of figures say of themselves: a trial, or a case, with its number."""
    points: dict[str, list[Value]] = {}
    for trial in shown.trials(report.cases):
        values = [number(trial.get(key)) for key in ("throughput", "from_median")]
        points.setdefault(text(trial.get("trial")), []).append(values)
    for case in report.cases:
        placement = str(at(case, "case", "placement"))
        points.setdefault(placement, []).append([number(case.get("median"))])
    if "/iterations" in file:  # a line for each trial
        for title in titles[1:]:
            if title not in points:
                findings.differs(file, title, "a line", "no such trial")
    for found in filter(None, map(_POINT.fullmatch, titles)):
        findings.numbers += 1
        own = points.get(found["name"], [])
        if not any(columns.fits(found["values"], values) for values in own):
            derived = " or ".join(map(columns.words, own)) or "no such point"
            findings.differs(file, found["name"], found["values"], derived)


def scaled(group: Sequence[Document]) -> list[Document]:
    """The cases of a figure's line, with what the smallest one promises."""
    sized = [(number(at(case, "case", "world_size")) or 1, case) for case in group]
    known = sorted((it for it in sized if it[1].get("median")), key=lambda it: it[0])
    if len({size for size, _ in known}) < 2:
        return []
    least, smallest = known[0]
    of_one = (number(smallest.get("median")) or 0) / least
    return [{**case, "ideal": of_one * size} for size, case in known]
