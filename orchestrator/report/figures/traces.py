"""The throughput that logs print over their iterations, with the window that is measured."""

from collections.abc import Iterable, Sequence

from orchestrator.model.result import Measurement, Result
from orchestrator.model.trace import TracePoint
from orchestrator.report import labels, rounding
from orchestrator.report.figures import scales
from orchestrator.report.figures.figure import WIDTH, Data, Drawing, Figure, numbered
from orchestrator.report.markup import shown
from orchestrator.report.page import Page

_COLUMNS, _MOST, _TALL, _ROW, _LEFT, _GAP, _TOP = 2, 8, 96, 158, 50, 14, 54


def figures(page: Page) -> Iterable[Figure]:
    """A panel per case of which a log prints rates, a few in each figure."""
    panels = [
        (labels.of_case(page.report, result), trials)
        for result in page.report.results
        if (trials := _traced(result))
    ]
    most = max(_COLUMNS, min(_MOST, _COLUMNS * -(-len(panels) // (2 * _COLUMNS))))
    starts = range(0, len(panels), most)  # few panels fill two figures beside one another
    yield from numbered([_figure(page, panels[at : at + most]) for at in starts])


_LABEL = 40
"""Pixels that a number below a panel needs."""
Traced = Sequence[tuple[Measurement, Sequence[TracePoint]]]
Panel = tuple[str, Traced]


def _traced(result: Result) -> Traced:
    return [(trial, [*trial.trace.points]) for trial in result.trials if trial.trace]


def _figure(page: Page, panels: Sequence[Panel]) -> Figure:
    drawing = Drawing()
    _legend(page, drawing)
    pitch = WIDTH / _COLUMNS
    for number, (label, trials) in enumerate(panels):
        left = _LEFT + number % _COLUMNS * pitch
        top = _TOP + number // _COLUMNS * _ROW + 20
        _draw(drawing, (left, top), pitch - _LEFT - _GAP, (label, trials))
    return Figure(
        name="iterations",
        title=page.say("figure.iterations", unit=page.report.unit),
        summary=page.say("figure.iterations.summary", cases=len(panels)),
        height=_TOP + _ROW * -(-len(panels) // _COLUMNS) + 6,
        shapes=tuple(drawing.shapes),
        data=_data(page, panels),
    )


def _draw(drawing: Drawing, corner: tuple[float, float], wide: float, panel: Panel) -> None:
    (left, top), (label, trials) = corner, panel
    every = [point for _, points in trials for point in points]
    firsts, lasts, _, _, highs = zip(*every, strict=True)
    first, last, grid = min(firsts), max(lasts), scales.ticks(max(highs), 3)
    across = scales.Scale(first, max(last, first + 1), left, left + wide)
    up = scales.Scale(0, grid[-1], top + _TALL, top)
    drawing.text((left, top - 8), scales.fitted(label, wide), "small")
    for window in dict.fromkeys(trial.window for trial, _ in trials):
        _window(drawing, across, (top, top + _TALL), window)
    for value in grid:
        drawing.line((left, up(value)), (left + wide, up(value)), "grid")
        drawing.text((left - 5, up(value) + 4), scales.tick_text(value), "end small soft")
    taken = [across(end) for trial, _ in trials for end in trial.window or ()]
    for x, end, look in ((left, first, "small soft"), (left + wide, last, "end small soft")):
        if all(abs(x - other) > _LABEL for other in taken):
            drawing.text((x, up(0) + 16), str(end), look)
    for trial, points in trials:
        is_valid = trial.state == "valid"
        look = "line thin s0 d0" if is_valid else "line thin s1 d1"
        spans = [
            (across((begin + end) / 2), up(low), up(high))
            for begin, end, low, _, high in points
            if high > low
        ]
        drawing.spans(spans, f"thin {look.split()[2]}")
        line = [(across((begin + end) / 2), up(mean)) for begin, end, _, mean, _ in points]
        drawing.way(line, look, shown(trial.trial))


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


def _data(page: Page, panels: Sequence[Panel]) -> Data:
    most = max(trial.repeat for _, trials in panels for trial, _ in trials)
    rows: list[tuple[str, ...]] = []
    for label, trials in panels:
        cells = {
            (first, last, trial.repeat): rounding.short(mean, 1)
            for trial, points in trials
            for first, last, _, mean, _ in points
        }
        spans = sorted({(first, last) for first, last, _ in cells})
        for first, last in spans:
            values = (cells.get((first, last, repeat), "") for repeat in range(1, most + 1))
            rows.append((label, str(first) if first == last else f"{first}-{last}", *values))
    repeats = (page.say("figure.trial", number=repeat) for repeat in range(1, most + 1))
    return ((*page.heads("case", "iterations"), *repeats), rows)
