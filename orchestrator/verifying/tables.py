"""Every table of a report's pages, row by row, compared with what follows from the logs."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from orchestrator.verifying import columns
from orchestrator.verifying.cases import DerivedCase
from orchestrator.verifying.columns import Document, Value
from orchestrator.verifying.differences import Findings, at, items, number, text
from orchestrator.verifying.pages import Table

Rule = Callable[[str, Document], Value | None]
Subject = tuple[Document, Rule]
"""What a row is about, and how its cells follow from it."""
_POINT = re.compile(r"(?P<name>[^:]+): (?P<values>-?\d+(?:\.\d+)? .*)")
_KINDS: tuple[tuple[str, frozenset[str]], ...] = (
    ("canary", frozenset({"place"})),
    ("trials", frozenset({"sha256", "log"})),
    ("trials", frozenset({"evidence"})),
    ("dots", frozenset({"from_median"})),
    ("iterations", frozenset({"iterations"})),
    ("scaling", frozenset({"ideal"})),
    ("sureness", frozenset({"interval", "spread"})),
    ("machines", frozenset({"moments"})),
    ("speeds", frozenset({"speed", "node"})),
    ("published", frozenset({"published", "source"})),
    ("final", frozenset({"throughput", "trials"})),
)
"""Tables by the columns that they have; the first that fits."""


@dataclass(frozen=True, slots=True)
class Report:
    """What tables are compared with.

    Args:
        cases: with ``labels``, what pages may call them.
        series: the same, those together that differ in their placement only.
        traces: by label and repeat, the mean rate from one iteration to another.
    """

    cases: Sequence[Document]
    series: Sequence[Sequence[Document]]
    canary: Sequence[Document]
    speeds: Sequence[Document]
    traces: Mapping[tuple[str, int], Mapping[tuple[int, ...], float]]

    @property
    def trials(self) -> Iterator[Document]:
        """Of all cases, with ``from_median`` and what is said of their case."""
        for case in self.cases:
            middle = number(case.get("median"))
            for trial in items(case.get("trials")):
                value = number(trial.get("throughput"))
                far = (value / middle - 1) * 100 if value is not None and middle else None
                own = {key: case.get(key) for key in ("case", "labels")}
                yield {**own, **trial, "from_median": far}


def report(
    documents: Sequence[Document],
    derived: Sequence[DerivedCase],
    canary: Sequence[Document],
    speeds: Sequence[Document],
) -> Report:
    """What follows from cases and their documents."""
    groups: dict[str, list[Document]] = {}
    labelled: list[Document] = []
    traces, single = {}, len({case.settings for case in derived}) == 1
    for document, case in zip(documents, derived, strict=True):
        labels = _labels(document, documents, single)
        labelled.append({**document, "labels": labels})
        groups.setdefault(case.settings, []).append(labelled[-1])
        for trial in case.trials:
            repeat = int(number(trial.plan.get("repeat")) or 0)
            if trial.state == "valid":
                traces[labels[0], repeat] = trial.derived.trace
    first = number(canary[0].get("throughput")) if canary else None
    with_first = [{**trial, "to_first": _far(trial, first)} for trial in canary]
    return Report(labelled, list(groups.values()), with_first, speeds, traces)


def _far(trial: Document, first: float | None) -> float | None:
    value = number(trial.get("throughput"))
    return (value / first - 1) * 100 if value and first else None


def _labels(case: Document, cases: Sequence[Document], single: bool) -> list[str]:
    """What pages call a case: its name, else its placement with whatever is not the same in all."""
    facts = [it.get("case") for it in cases]
    own = case.get("case")
    placement, precision, batch = (
        str(at(own, key)) for key in ("placement", "precision", "micro_batch_size")
    )
    names = ("device", "accumulation_steps", "tensor_parallel", "pipeline_parallel")
    params = [key for key in own if key.startswith("params.")] if isinstance(own, Mapping) else []
    differing = [
        f"{key.removeprefix('params.')}={at(own, key)}"
        for key in (*names, *params)
        if any(at(other, key) != at(own, key) for other in facts)
    ]
    settings = f"{precision.upper()}({', '.join((f'BS={batch}', *differing))})"
    label = placement if single else f"{placement} {settings}"
    token = f"{at(own, 'nodes')}n{at(own, 'gpus_per_node')}g"
    return [text(case.get("name")) or label, placement, token]


def check(findings: Findings, file: str, tables: Sequence[Table], report: Report) -> None:
    """Compare every table of a page whose numbers are derived."""
    beside = ("dots", "iterations", "scaling") if file.endswith(".md") else ("iterations",)
    by_kind: dict[str, list[tuple[Table, int, list[str]]]] = {
        kind: [] for kind, _ in _KINDS if kind not in beside
    }
    for table in tables:
        rows = [(table, *row) for row in table.rows if any(row[1][1:])]  # else a title of a group
        by_kind.setdefault(_kind(table), []).extend(rows)
    for kind, rows in by_kind.items():
        if kind == "iterations":
            _check_traces(findings, file, rows, report)
        elif kind == "gpus":
            _check_by_gpus(findings, file, rows, report)
        elif kind:
            _check_rows(findings, file, rows, _subjects(kind, rows, report))


def _kind(table: Table) -> str:
    keys = [columns.key(head) for head in table.head]
    known = (kind for kind, needed in _KINDS if needed <= {*keys})
    return next(known, "gpus" if keys[:1] == ["gpus"] else "")


def _check_rows(
    findings: Findings,
    file: str,
    rows: Sequence[tuple[Table, int, list[str]]],
    subjects: Sequence[Subject],
) -> None:
    if len(rows) != len(subjects):
        head = ", ".join(rows[0][0].head[:4]) if rows else ""
        findings.differs(file, head, f"{len(rows)} rows", f"{len(subjects)} rows")
        return
    for (table, line, cells), (document, rule) in zip(rows, subjects, strict=True):
        for head, cell in zip(table.head, cells, strict=False):
            key = columns.key(head)
            value, shown = rule(key, document), columns.plain(key, cell)
            if value is None:
                continue
            findings.numbers += 1
            if not columns.fits(shown, value):
                findings.differs(file, f"line {line}, {head}", cell, columns.words(value))


def _subjects(
    kind: str, rows: Sequence[tuple[Table, int, list[str]]], report: Report
) -> list[Subject]:
    """What the rows of a kind of table are about, in their order."""
    if kind == "canary":
        return [(trial, columns.of_trial) for trial in report.canary]
    if kind == "trials":
        return [(trial, columns.of_trial) for trial in _by_log(rows, report)]
    if kind == "dots":
        return [(it, columns.of_dot) for it in report.trials if it["from_median"] is not None]
    if kind == "speeds":
        return [(speed, columns.of_speed) for speed in report.speeds]
    if kind == "scaling":
        points = (case for group in report.series for case in _scaled(group))
        return [(case, columns.of_point) for case in points]
    if kind == "published":
        pairs = [(case, it) for case in report.cases for it in items(case.get("published"))]
        return [({**case, "published": [it]}, columns.of_published) for case, it in pairs]
    return [(case, columns.of_case) for case in _cases(kind, rows, report)]


def _by_log(rows: Sequence[tuple[Table, int, list[str]]], report: Report) -> list[Document]:
    """The trials, in the order in which a page names their logs."""
    by_log = {text(trial.get("log")): trial for trial in report.trials if trial.get("log")}
    rest = [trial for trial in report.trials if not trial.get("log")]
    named = [by_log.pop(cell, None) for _, _, cells in rows for cell in cells if cell in by_log]
    places = [any(cell.startswith("logs/") for cell in cells) for _, _, cells in rows]
    found, without = iter([it for it in named if it]), iter(rest)
    ordered = [next(found if has_log else without, {}) for has_log in places]
    return [*ordered, *by_log.values(), *without]


def _cases(
    kind: str, rows: Sequence[tuple[Table, int, list[str]]], report: Report
) -> list[Document]:
    if kind == "machines":
        return [case for case in report.cases if columns.states(case)]
    if kind == "final" and not any(text(case.get("name")) for case in report.cases):
        return [case for group in report.series for case in group]
    if kind == "final":  # in groups of their own
        names = [cell for _, _, cells in rows for cell in cells[:2] if cell]
        place = {name: count for count, name in enumerate(names)}
        return sorted(report.cases, key=lambda case: place.get(text(case.get("name")), 0))
    return [*report.cases]


def _scaled(group: Sequence[Document]) -> list[Document]:
    """The cases of a figure's line, with what the smallest one promises."""
    sized = [(number(at(case, "case", "world_size")) or 1, case) for case in group]
    known = sorted((it for it in sized if it[1].get("median")), key=lambda it: it[0])
    if len({size for size, _ in known}) < 2:
        return []
    least, smallest = known[0]
    of_one = (number(smallest.get("median")) or 0) / least
    return [{**case, "ideal": of_one * size} for size, case in known]


def _check_traces(
    findings: Findings, file: str, rows: Sequence[tuple[Table, int, list[str]]], report: Report
) -> None:
    """The mean of the rates that each log prints between two iterations."""
    left = {(label, *span) for (label, _), trace in report.traces.items() for span in trace}
    for _, line, (label, span, *cells) in rows:
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
                findings.differs(file, f"line {line}, trial {repeat}", cell, value)
    if left and rows:
        lacking = ", ".join(map(str, min(left)))
        findings.differs(file, "iterations", f"no row of {lacking}", f"{len(left)} rows more")


def _check_by_gpus(
    findings: Findings, file: str, rows: Sequence[tuple[Table, int, list[str]]], report: Report
) -> None:
    """A row for each number of GPUs, a column for each series: throughputs, then speedups."""
    tables = list({id(table): table for table, _, _ in rows})
    for table, line, (gpus, *cells) in rows:
        key = "median" if id(table) == tables[0] else "speedup"
        for group, cell in zip(report.series, cells, strict=False):
            own = [case for case in group if _is_of(gpus, case)]
            value = number(own[0].get(key)) if own else None
            findings.numbers += 1
            if not columns.fits(cell, [value]):
                findings.differs(file, f"line {line}", cell, value)


def _is_of(gpus: str, case: Document) -> bool:
    """Whether a row such as ``8`` or ``8 (2x4)`` is of a case."""
    size, _, placement = gpus.partition(" ")
    if placement:
        return placement == f"({at(case, 'case', 'placement')})"
    return size == str(at(case, "case", "world_size"))


def check_points(findings: Findings, file: str, titles: Sequence[str], report: Report) -> None:
    """Compare what points of figures say of themselves: a trial, or a case, with its number."""
    points: dict[str, list[Value]] = {}
    for trial in report.trials:
        values = [number(trial.get(key)) for key in ("throughput", "from_median")]
        points.setdefault(text(trial.get("trial")), []).append(values)
    for case in report.cases:
        placement = str(at(case, "case", "placement"))
        points.setdefault(placement, []).append([number(case.get("median"))])
    if file.endswith("iterations.svg"):  # a line for each trial
        for title in titles[1:]:
            if title not in points:
                findings.differs(file, title, "a line", "no such trial")
    for found in filter(None, map(_POINT.fullmatch, titles)):
        findings.numbers += 1
        own = points.get(found["name"], [])
        if not any(columns.fits(found["values"], values) for values in own):
            derived = " or ".join(map(columns.words, own)) or "no such point"
            findings.differs(file, found["name"], found["values"], derived)
