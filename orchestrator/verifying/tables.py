"""Every table of a report's pages, row by row, compared with what follows from the logs."""

from collections.abc import Sequence

from orchestrator.verifying import columns, figures, heads, shown
from orchestrator.verifying.columns import Document, Rule
from orchestrator.verifying.differences import Findings, items, text
from orchestrator.verifying.pages import Row
from orchestrator.verifying.shown import Report

Subject = tuple[Document, Rule]
"""What a row is about, and how its cells follow from it."""
_KINDS: tuple[tuple[str, frozenset[str]], ...] = (
    ("canary", frozenset({"place"})),
    ("dots", frozenset({"from_median"})),
    ("trials", frozenset({"trial", "state"})),
    ("evidence", frozenset({"case", "trial"})),
    ("iterations", frozenset({"iterations"})),
    ("scaling", frozenset({"ideal"})),
    ("sureness", frozenset({"interval", "spread"})),
    ("machines", frozenset({"moments"})),
    ("throttling", frozenset({"seconds", "node"})),
    ("hosts", frozenset({"case", "load"})),
    ("speeds", frozenset({"speed", "node"})),
    ("published", frozenset({"published", "source"})),
    ("final", frozenset({"throughput", "trials"})),
)
"""Tables by the columns that they have; the first that fits."""


_ONLY_HTML = ("dots", "scaling", "throttling")
_ONLY_MARKDOWN = ("evidence", "hosts")
_OTHERS = {
    "iterations": figures.check_traces,
    "gpus": figures.check_by_gpus,
}


def check(findings: Findings, file: str, rows: Sequence[Row], report: Report) -> None:
    """Compare every row of a page's tables whose numbers are derived."""
    beside = ("iterations", *(_ONLY_HTML if file.endswith(".md") else _ONLY_MARKDOWN))
    by_kind: dict[str, list[Row]] = {kind: [] for kind, _ in _KINDS if kind not in beside}
    for row in rows:
        if any(row.cells[1:]):  # else the title of a group
            by_kind.setdefault(_kind(row), []).append(row)
    for kind, own in by_kind.items():
        if other := _OTHERS.get(kind):
            other(findings, file, own, report)
        elif kind:
            _check_rows(findings, file, own, _subjects(kind, file, own, report))


def _kind(row: Row) -> str:
    keys = [heads.key(head) for head in row.head]
    known = (kind for kind, needed in _KINDS if needed <= {*keys})
    return next(known, "gpus" if keys[:1] == ["gpus"] else "")


def _check_rows(
    findings: Findings,
    file: str,
    rows: Sequence[Row],
    subjects: Sequence[Subject],
) -> None:
    if len(rows) != len(subjects):
        head = ", ".join(rows[0].head[:4]) if rows else ""
        findings.differs(file, head, f"{len(rows)} rows", f"{len(subjects)} rows")
        return
    for row, (document, rule) in zip(rows, subjects, strict=True):
        columns.check_row(findings, file, row, document, rule)


def _subjects(kind: str, file: str, rows: Sequence[Row], report: Report) -> list[Subject]:
    """What the rows of a kind of table are about, in their order."""
    lists: dict[str, tuple[Sequence[Document], Rule]] = {
        "canary": (report.canary, columns.of_trial),
        "speeds": (report.speeds, columns.of_speed),
        "throttling": (report.held, columns.of_held),
    }
    if kind in lists:
        documents, rule = lists[kind]
        return [(document, rule) for document in documents]
    if kind in ("trials", "evidence"):
        cases = report.cases if file.endswith(".html") else _in_groups(rows, report)
        return [(trial, columns.of_trial) for trial in shown.trials(cases)]
    if kind == "dots":
        points = [trial for trial in shown.trials(report.cases) if trial["from_median"] is not None]
        return [(trial, columns.of_dot) for trial in points]
    if kind == "scaling":
        points = [case for group in report.series for case in figures.scaled(group)]
        return [(case, columns.of_point) for case in points]
    if kind == "published":
        pairs = [(case, it) for case in report.cases for it in items(case.get("published"))]
        return [({**case, "published": [it]}, columns.of_published) for case, it in pairs]
    cases = _in_groups(rows, report) if kind == "final" else report.cases
    if kind in ("machines", "hosts"):
        cases = [
            case
            for case in cases
            if case.get("trials_valid") and any(map(columns.states, report.cases))
        ]
    return [(case, columns.of_case) for case in cases]


def _in_groups(rows: Sequence[Row], report: Report) -> Sequence[Document]:
    """The cases series by series; those with names of their own in the groups of a page."""
    if not any(text(case.get("name")) for case in report.cases):
        return [case for group in report.series for case in group]
    names = [cell for row in rows for cell in row.cells[:2] if cell]
    place = {name: count for count, name in reversed([*enumerate(names)])}
    return sorted(report.cases, key=lambda case: place.get(text(case.get("name")), 0))
