"""SM clocks over the time of trials in which heat or brakes held clocks down."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from orchestrator.model.report import Report
from orchestrator.model.telemetry import Course
from orchestrator.report import labels, rounding
from orchestrator.report.figures import scales
from orchestrator.report.figures.figure import WIDTH, Drawing, Figure, Table, numbered
from orchestrator.report.markdown_page import Page
from orchestrator.report.markup import shown

MOST, NODES = 12, 4
"""Trials that are drawn, and nodes of each."""
_ROWS = 4  # trials of one picture: about a screen
_TOP, _TALL, _LINE, _LEFT, _RIGHT = 34.0, 56.0, 16.0, 44.0, WIDTH - 10.0


@dataclass(frozen=True, slots=True)
class _Row:
    """A trial with the nodes whose clocks were held down."""

    label: str
    courses: Sequence[Course]


def figures(page: Page) -> Iterable[Figure]:
    """Draw the throttled trials, a few in each figure; none without any."""
    rows = _rows(page, page.report)
    parts = [rows[at : at + _ROWS] for at in range(0, min(len(rows), MOST), _ROWS)]
    yield from numbered([_figure(page, part, len(rows)) for part in parts])


def _rows(page: Page, report: Report) -> list[_Row]:
    found = []
    for result in report.results:
        for trial in result.trials:
            held = [course for course in trial.courses if any(it.held for it in course.stretches)]
            number = page.say("figure.trial", number=trial.repeat)
            label = page.say("comma").join((labels.of_case(report, result), number))
            if held:
                found.append(_Row(shown(label), held[:NODES]))
    return found


def _figure(page: Page, rows: Sequence[_Row], count: int) -> Figure:
    drawing, y = Drawing(), _TOP
    drawing.box((8, 8), (26, 14), "window")
    drawing.text((40, 19), page.say("figure.window"), "small")
    drawing.hatched((WIDTH / 2, 8), (26, 14), "held")
    drawing.text((WIDTH / 2 + 32, 19), page.say("figure.held_down"), "small")
    lines = []
    for row in rows:
        y += _LINE
        drawing.text((4, y), scales.fitted(row.label, WIDTH - 8), "strong")
        for number, course in enumerate(row.courses):
            y += _LINE
            line = _held(page, course)
            lines.append(page.say("colon").join((row.label, line)))
            drawing.way([(4, y - 4), (30, y - 4)], f"line thin s{number} d{number}")
            drawing.text((35, y), scales.fitted(line, WIDTH - 40), "small")
        y += 14
        _panel(page, drawing, y, row.courses)
        y += _TALL + 26
    return Figure(
        name="throttling",
        title=page.say("figure.throttling"),
        summary=page.say(
            "figure.throttling.summary", trials=min(count, MOST), all=count, held="; ".join(lines)
        ),
        height=y,
        shapes=tuple(drawing.shapes),
        table=_table(page, rows),
    )


def _held(page: Page, course: Course) -> str:
    """Return a node's line: what held its clocks down, and when."""
    limits = sorted({name for piece in course.stretches for name in piece.limits})
    spans = (f"{_seconds(first)}-{_seconds(last)}" for first, last in _spans(course))
    return shown(
        page.say(
            "figure.throttling.held",
            node=course.node,
            limits=", ".join(limits) or page.say("figure.throttling.counted"),
            seconds=page.say("comma").join(spans),
        )
    )


def _spans(course: Course) -> Iterable[tuple[float, float]]:
    """Yield first and last second of each run of pieces with held clocks."""
    for is_held, run in groupby(course.stretches, key=lambda piece: piece.held):
        pieces = list(run)
        if is_held:
            yield pieces[0].first_s, pieces[-1].last_s


def _panel(page: Page, drawing: Drawing, top: float, courses: Sequence[Course]) -> None:
    last_s = max(course.stretches[-1].last_s for course in courses)
    known = [piece.sm_mhz for course in courses for piece in course.stretches if piece.sm_mhz]
    grid = scales.ticks(max(known, default=1.0), 2)
    across = scales.Scale(0, last_s, _LEFT, _RIGHT)
    up = scales.Scale(0, grid[-1], top + _TALL, top)
    if window := next((course.window_s for course in courses if course.window_s), None):
        first, last = (across(min(max(end, 0.0), last_s)) for end in window)
        drawing.box((first, top), (max(last - first, 1), _TALL), "window")
    for value in (grid[0], grid[-1]):
        drawing.line((_LEFT, up(value)), (_RIGHT, up(value)), "grid")
        drawing.text((_LEFT - 4, up(value) + 4), scales.tick_text(value), "end small soft")
    drawing.text((_LEFT, up(0) + 14), "0", "small soft")
    drawing.text(
        (_RIGHT, up(0) + 14), page.say("figure.seconds", seconds=f"{last_s:.0f}"), "end small soft"
    )
    for first, last in dict.fromkeys(span for course in courses for span in _spans(course)):
        drawing.hatched((across(first), top), (max(across(last) - across(first), 2), _TALL), "held")
    for number, course in enumerate(courses):
        for is_known, run in groupby(course.stretches, key=lambda piece: piece.sm_mhz is not None):
            line = [
                (across(second), up(piece.sm_mhz or 0))
                for piece in run
                for second in (piece.first_s, piece.last_s)
            ]
            if is_known:
                drawing.way(line, f"line thin s{number} d{number}", shown(course.node))


def _table(page: Page, rows: Sequence[_Row]) -> Table:
    cells = [
        (
            row.label,
            shown(course.node),
            f"{_seconds(piece.first_s)}-{_seconds(piece.last_s)}",
            "" if piece.sm_mhz is None else rounding.fixed(piece.sm_mhz, 0),
            (", ".join(piece.limits) or page.say("figure.throttling.counted"))
            if piece.held
            else "",
        )
        for row in rows
        for course in row.courses
        for piece in course.stretches
    ]
    return Table(page.heads("case", "node", "seconds", "sm_clock", "limits"), cells)


def _seconds(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
