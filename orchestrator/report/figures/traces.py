"""The throughput that logs print over their iterations, with the window that is measured."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from orchestrator.model.result import Measurement, Result
from orchestrator.model.trace import TracePoint
from orchestrator.report import labels, rounding
from orchestrator.report.figures import scales
from orchestrator.report.figures.figure import LINE, WIDTH, Drawing, Figure, numbered
from orchestrator.report.markup import clean
from orchestrator.report.page import Page

_COLUMNS, _MOST, _TALL, _BELOW, _LEFT, _TOP = 2, 8, 96, 30, 50, 54
_WIDE = WIDTH / _COLUMNS - _LEFT - 14
_LABEL = 40
"""Pixels that a number below a panel needs."""
_HIGHEST = 2.0
"""Of the median; what lies above, as after a pause, is drawn at the upper edge."""
Traced = Sequence[tuple[Measurement, Sequence[TracePoint]]]


@dataclass(frozen=True, slots=True)
class _Panel:
    """A case whose logs print rates; ``whole`` is the rate that is drawn as 100 %."""

    label: str
    trials: Traced
    whole: float

    @property
    def lines(self) -> list[str]:
        """Split the label, which stands above the panel."""
        return scales.wrapped(clean(self.label), _WIDE)

    @property
    def points(self) -> list[TracePoint]:
        """Return the points of all trials."""
        return [point for _, points in self.trials for point in points]


def figures(page: Page) -> Iterable[Figure]:
    """Yield figures of a few panels, all with the same axes."""
    panels = [panel for result in page.report.results if (panel := _panel(page, result))]
    if not panels:
        return
    points = [point for panel in panels for point in panel.points]
    first, last = min(point[0] for point in points), max(point[1] for point in points)
    highest = max(point[4] / panel.whole for panel in panels for point in panel.points)
    grid = scales.ticks(min(highest, _HIGHEST), 3)
    axes = scales.Scale(first, max(last, first + 1), 0, _WIDE), grid
    most = max(_COLUMNS, min(_MOST, _COLUMNS * -(-len(panels) // (2 * _COLUMNS))))
    starts = range(0, len(panels), most)  # few panels fill two figures beside one another
    yield from numbered([_figure(page, panels[at : at + most], axes) for at in starts])


def _panel(page: Page, result: Result) -> _Panel | None:
    trials = [(trial, [*trial.trace.points]) for trial in result.trials if trial.trace]
    if not trials:
        return None
    highest = max(point[3] for _, points in trials for point in points)
    return _Panel(labels.of_case(page.report, result), trials, result.median or highest)


def _figure(
    page: Page, panels: Sequence[_Panel], axes: tuple[scales.Scale, Sequence[float]]
) -> Figure:
    drawing = Drawing()
    _legend(page, drawing)
    y = float(_TOP)
    for at in range(0, len(panels), _COLUMNS):
        row = panels[at : at + _COLUMNS]
        y += LINE * max(len(panel.lines) for panel in row) + 6
        for column, panel in enumerate(row):
            _draw(drawing, (_LEFT + column * WIDTH / _COLUMNS, y), axes, panel)
        y += _TALL + _BELOW
    return Figure(
        name="iterations",
        title=page.say("figure.iterations"),
        summary=_summary(page, panels),
        height=y,
        shapes=tuple(drawing.shapes),
    )


def _draw(
    drawing: Drawing,
    corner: tuple[float, float],
    axes: tuple[scales.Scale, Sequence[float]],
    panel: _Panel,
) -> None:
    (left, top), (across, grid) = corner, axes
    across = replace(across, begin=left, end=left + _WIDE)
    up = scales.Scale(0, grid[-1], top + _TALL, top)

    def height(rate: float) -> float:
        return up(min(rate / panel.whole, grid[-1]))

    drawing.lines((left, top - 8 - LINE * (len(panel.lines) - 1)), panel.lines, "small")
    for window in dict.fromkeys(trial.window for trial, _ in panel.trials):
        _window(drawing, across, (top, top + _TALL), window)
    for value in grid:
        drawing.line((left, up(value)), (left + _WIDE, up(value)), "grid")
        drawing.text((left - 5, up(value) + 4), f"{value:.0%}", "end small soft")
    taken = [across(end) for trial, _ in panel.trials for end in trial.window or ()]
    ends = (left, across.low, "small soft"), (left + _WIDE, across.high, "end small soft")
    for x, end, look in ends:
        if all(abs(x - other) > _LABEL for other in taken):
            drawing.text((x, up(0) + 16), str(round(end)), look)
    for trial, points in panel.trials:
        look = "line thin s0 d0" if trial.state == "valid" else "line thin s1 d1"
        spans = [
            (across((begin + end) / 2), height(low), height(high))
            for begin, end, low, _, high in points
            if high > low
        ]
        drawing.spans(spans, f"thin {look.split()[2]}")
        line = [(across((begin + end) / 2), height(mean)) for begin, end, _, mean, _ in points]
        drawing.way(line, look, clean(trial.trial))


def _window(
    drawing: Drawing,
    across: scales.Scale,
    reach: tuple[float, float],
    window: tuple[int, int] | None,
) -> None:
    if window is None or not across.low <= window[0] <= window[1] <= across.high:
        return
    first, last = (across(end) for end in window)
    drawing.box((first, reach[0]), (max(last - first, 1), reach[1] - reach[0]), "window")
    right = "small" if last + _LABEL < across.end else "end small"
    for x, end, look in ((first, window[0], "end small"), (last, window[1], right)):
        drawing.line((x, reach[0]), (x, reach[1] + 4), "edge")
        drawing.text((x, reach[1] + 16), str(end), look)


def _legend(page: Page, drawing: Drawing) -> None:
    places = ((8, 8), (WIDTH / 2, 8), (8, 28))
    for key, (x, y) in zip(("trial_counts", "trial_out", "window"), places, strict=True):
        if key == "window":
            drawing.box((x, y), (26, 14), "window")
            drawing.line((x, y), (x, y + 14), "edge")
            drawing.line((x + 26, y), (x + 26, y + 14), "edge")
        else:
            look = "line thin s0 d0" if key == "trial_counts" else "line thin s1 d1"
            drawing.way([(x, y + 7), (x + 26, y + 7)], look)
        drawing.text((x + 32, y + 11), page.say(f"figure.{key}"), "small")


def _summary(page: Page, panels: Sequence[_Panel]) -> str:
    """Say how far the rates in the windows of trials that count are from their case's median."""
    shares = [
        rate / panel.whole
        for panel in panels
        for trial, points in panel.trials
        if trial.window and trial.state == "valid"
        for first, last, low, _, high in points
        if trial.window[0] <= first and last <= trial.window[1]
        for rate in (low, high)
    ]
    lowest, highest = (
        rounding.share(min(shares, default=None)),
        rounding.share(max(shares, default=None)),
    )
    return page.say("figure.iterations.summary", cases=len(panels), low=lowest, high=highest)
