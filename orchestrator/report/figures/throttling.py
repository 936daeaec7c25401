"""When clocks were held down while a trial ran; no figure where none were."""
# ruff: noqa: RUF001 - Chinese has punctuation of its own

from collections.abc import Iterable

from orchestrator.report import labels
from orchestrator.report.figures import figure
from orchestrator.report.figures.figure import LINE, WIDTH, WINDOW, Drawing, Figure
from orchestrator.report.markup import clean
from orchestrator.report.page import Page

MOST = 24
"""Bars of the picture; the marks of trials have all."""
_TOP, _PITCH, _TALL, _EDGE = 42.0, 44.0, 14.0, 8.0


def figures(page: Page) -> Iterable[Figure]:
    """Yield one with a bar for each trial and node whose clocks were held down."""
    rows = [
        (labels.of_case(page.report, result), trial.repeat, clocks)
        for result in page.report.results
        for trial in result.trials
        for clocks in trial.held
    ]
    if not rows:
        return
    drawing, drawn, y = Drawing(), rows[:MOST], _TOP
    drawing.box((_EDGE, 8), (26, _TALL), "window")
    drawing.text((40, 19), page.text(*WINDOW), "small")
    drawing.box((WIDTH / 2, 11), (26, 8), "held")
    drawing.text((WIDTH / 2 + 32, 19), page.text("clocks held down", "时钟被限制"), "small")
    longest_s = max(1.0, *(clocks.last_s for *_, clocks in drawn))
    across = figure.Scale(0, longest_s, _EDGE, WIDTH - _EDGE)
    for case, repeat, clocks in drawn:
        trial = page.text(f"trial {repeat}", f"试验 {repeat}")
        limits = ", ".join(clocks.limits) or page.text("heat or brakes", "过热或功率制动")
        seconds = f"{clocks.spans[0][0]:.1f}-{clocks.spans[-1][1]:.1f} s"
        words = page.listed((case, trial, clocks.node, limits, seconds))
        lines = figure.wrapped(clean(words), WIDTH - 2 * _EDGE)
        drawing.text((_EDGE, y + 12), lines, "small")
        y += LINE * (len(lines) - 1) + 18
        if clocks.window_s is not None:
            first, last = map(across, clocks.window_s)
            drawing.box((first, y), (max(last - first, 1.0), _TALL), "window")
        for first, last in (map(across, span) for span in clocks.spans):
            drawing.box((first, y + 3), (max(last - first, 2.0), 8), "held")
        drawing.line([(across(0), y + _TALL), (across(clocks.last_s), y + _TALL)], "edge")
        y += _PITCH - 18
    yield Figure(
        name="throttling",
        title=page.text("When clocks were held down", "时钟被限制的时段"),
        summary=page.text(
            "Trials and nodes whose clocks heat or brake limits held down:"
            f" {len(rows)}; drawn: {len(drawn)}.",
            f"时钟因过热或功率制动而被限制的试验与节点共 {len(rows)} 个，画出 {len(drawn)} 个。",
        ),
        height=y + 4,
        shapes=drawing.shapes,
    )
