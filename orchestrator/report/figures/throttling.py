"""When clocks were held down while a trial ran; no figure where none were."""

from collections.abc import Iterable, Sequence

from orchestrator.model.telemetry import HeldClocks
from orchestrator.report import labels
from orchestrator.report.figures import scales
from orchestrator.report.figures.figure import LINE, WIDTH, Drawing, Figure
from orchestrator.report.markup import Element, clean
from orchestrator.report.page import Page

NAME = "throttling"
MOST = 24
"""Bars of the picture; the marks of trials have all."""
_TOP, _PITCH, _TALL, _EDGE = 42.0, 44.0, 14.0, 8.0
_Row = tuple[str, HeldClocks]


def figures(page: Page) -> Iterable[Figure]:
    """Yield one with a bar for each trial and node whose clocks were held down."""
    rows = [
        (
            page.listed(
                (labels.of_case(page.report, result), page.say("figure.trial", number=trial.repeat))
            ),
            clocks,
        )
        for result in page.report.results
        for trial in result.trials
        for clocks in trial.held
    ]
    if rows:
        shapes, height = _shapes(page, rows[:MOST])
        yield Figure(
            name=NAME,
            title=page.say("figure.throttling"),
            summary=page.say("figure.throttling.summary", bars=len(rows), drawn=len(rows[:MOST])),
            height=height,
            shapes=shapes,
        )


def _shapes(page: Page, rows: Sequence[_Row]) -> tuple[tuple[Element, ...], float]:
    """Draw a bar for each row; the shapes and how high they are."""
    drawing = Drawing()
    drawing.box((_EDGE, 8), (26, 14), "window")
    drawing.text((40, 19), page.say("figure.window"), "small")
    drawing.hatched((WIDTH / 2, 8), (26, 14), "held")
    drawing.text((WIDTH / 2 + 32, 19), page.say("figure.held_down"), "small")
    longest_s = max(1.0, *(clocks.last_s for _, clocks in rows))
    across = scales.Scale(0, longest_s, _EDGE, WIDTH - _EDGE)
    y = _TOP
    for label, clocks in rows:
        limits = ", ".join(clocks.limits) or page.say("figure.throttling.counted")
        seconds = f"{clocks.spans[0][0]:.1f}-{clocks.spans[-1][1]:.1f} s"
        words = page.listed((label, clocks.node, limits, seconds))
        lines = scales.wrapped(clean(words), WIDTH - 2 * _EDGE)
        drawing.lines((_EDGE, y + 12), lines, "small")
        y += LINE * (len(lines) - 1)
        if clocks.window_s is not None:
            first, last = (across(min(max(it, 0.0), longest_s)) for it in clocks.window_s)
            drawing.box((first, y + 18), (max(last - first, 1.0), _TALL), "window")
        for first_s, last_s in clocks.spans:
            wide = max(across(last_s) - across(first_s), 2.0)
            drawing.hatched((across(first_s), y + 18), (wide, _TALL), "held")
        drawing.line((across(0), y + 18 + _TALL), (across(clocks.last_s), y + 18 + _TALL), "edge")
        y += _PITCH
    return tuple(drawing.shapes), y + 4
