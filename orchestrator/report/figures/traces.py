"""The throughput that logs print over their iterations, with the window that is measured."""
# ruff: noqa: RUF001 - Chinese has punctuation of its own

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from orchestrator.model.result import Measurement
from orchestrator.model.trace import TracePoint
from orchestrator.report import labels, rounding
from orchestrator.report.figures import scales
from orchestrator.report.figures.figure import LINE, WIDTH, WINDOW, Drawing, Figure, number_figures
from orchestrator.report.markup import clean
from orchestrator.report.page import Page

_COLUMNS, _MOST, _TALL, _BELOW, _LEFT, _TOP = 2, 8, 96, 30, 50, 54
_WIDE = WIDTH / _COLUMNS - _LEFT - 14
_LABEL = 40
"""Pixels that a number below a panel needs."""
_HIGHEST = 2.0
"""Of the median; what lies above, as after a pause, is drawn at the upper edge."""
_COUNTS, _OUT = "line thin s0", "line thin s1 d1"


@dataclass(frozen=True, slots=True)
class _Panel:
    """A case whose logs print rates.

    Args:
        lines: of its name, which is above the panel.
        whole: the rate that is drawn as 100 %.
    """

    lines: Sequence[str]
    trials: Sequence[tuple[Measurement, Sequence[TracePoint]]]
    whole: float


def figures(page: Page) -> Iterable[Figure]:
    """Yield figures of a few panels, all with the same axes."""
    panels = []
    for result in page.report.results:
        trials = [(trial, [*trial.trace.points]) for trial in result.trials if trial.trace]
        if trials:
            name = clean(labels.of_case(page.report, result))
            fastest = max(point[3] for _, points in trials for point in points)
            panels.append(_Panel(scales.wrapped(name, _WIDE), trials, result.median or fastest))
    points = [
        (begin, end, high / panel.whole)
        for panel in panels
        for _, trace in panel.trials
        for begin, end, _, _, high in trace
    ]
    if points:
        begins, ends, highs = zip(*points, strict=True)
        first, last = min(begins), max(ends)
        across = scales.Scale(first, max(last, first + 1), 0, _WIDE)
        grid = scales.ticks(min(max(highs), _HIGHEST), 3)
        groups = [panels[at : at + _MOST] for at in range(0, len(panels), _MOST)]
        yield from number_figures([_figure(page, group, across, grid) for group in groups])


def _figure(
    page: Page, panels: Sequence[_Panel], across: scales.Scale, grid: Sequence[float]
) -> Figure:
    drawing, y = Drawing(), float(_TOP)
    for look, x, words in (
        (_COUNTS, 8, page.text("trial that counts", "计入的试验")),
        (_OUT, WIDTH / 2, page.text("trial that does not count", "不计入的试验")),
    ):
        drawing.line([(x, 15), (x + 26, 15)], look)
        drawing.text((x + 32, 19), words, "small")
    drawing.box((8, 28), (26, 14), "window")
    drawing.text((40, 39), page.text(*WINDOW), "small")
    for at in range(0, len(panels), _COLUMNS):
        row = panels[at : at + _COLUMNS]
        y += LINE * max(len(panel.lines) for panel in row) + 6
        for column, panel in enumerate(row):
            left = _LEFT + column * WIDTH / _COLUMNS
            up = scales.Scale(0, grid[-1], y + _TALL, y)
            _draw(drawing, replace(across, begin=left, end=left + _WIDE), up, grid, panel)
        y += _TALL + _BELOW
    shares = [
        rate / panel.whole
        for panel in panels
        for trial, points in panel.trials
        if trial.window and trial.state == "valid"
        for first, last, low, _, high in points
        if trial.window[0] <= first and last <= trial.window[1]
        for rate in (low, high)
    ]
    low, high = (rounding.share(end(shares, default=None)) for end in (min, max))
    title = page.text(
        "Speed over iterations, as the logs print it (100% is the median of the case)",
        "日志打印的速率随迭代的变化（用例中位数为 100%）",
    )
    summary = page.text(
        f"A panel for each of {len(panels)} cases, all with the same axes, and a line for each"
        " trial; the shaded part is the window that is measured, in which rates lie between"
        f" {low} and {high}.",
        f"{len(panels)} 个用例各有一幅小图，坐标轴相同，每次试验一条线；阴影部分为测量窗口，"
        f"窗口内的速率介于 {low} 与 {high} 之间。",
    )
    return Figure("iterations", title, summary, y, drawing.shapes)


def _draw(
    drawing: Drawing, across: scales.Scale, up: scales.Scale, grid: Sequence[float], panel: _Panel
) -> None:
    left, right, top, bottom = across.begin, across.end, up.end, up.begin
    drawing.text((left, top - 8 - LINE * (len(panel.lines) - 1)), panel.lines, "small")
    labeled = list[float]()
    for window in dict.fromkeys(trial.window for trial, _ in panel.trials):
        if window and across.low <= window[0] <= window[1] <= across.high:
            first, last = map(across, window)
            drawing.box((first, top), (max(last - first, 1), _TALL), "window")
            look = "small" if last + _LABEL < right else "end small"
            for x, end, side in ((first, window[0], "end small"), (last, window[1], look)):
                drawing.line([(x, top), (x, bottom + 4)], "edge")
                drawing.text((x, bottom + 16), str(end), side)
            labeled += first, last
    for value in grid:
        drawing.line([(left, up(value)), (right, up(value))], "grid")
        drawing.text((left - 5, up(value) + 4), f"{value:.0%}", "end small soft")
    for value, look in ((across.low, "small soft"), (across.high, "end small soft")):
        x = across(value)
        if all(abs(x - other) > _LABEL for other in labeled):
            drawing.text((x, bottom + 16), str(round(value)), look)
    for trial, points in panel.trials:
        look = _COUNTS if trial.state == "valid" else _OUT
        places = [
            (across((begin + end) / 2), *(up(rate / panel.whole) for rate in rates))
            for begin, end, *rates in points
        ]
        reaches = (f"M{x:.1f} {low:.1f}V{high:.1f}" for x, low, _, high in places if high < low)
        if spans := "".join(reaches):
            drawing.path(spans, look)
        drawing.line([(x, mean) for x, _, mean, _ in places], look, trial.trial)
