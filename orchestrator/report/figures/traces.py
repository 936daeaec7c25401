"""The rates that logs print over their iterations, with the windows that are measured."""
# ruff: noqa: RUF001 - Chinese has punctuation of its own

from collections.abc import Iterable, Sequence

from orchestrator.model.log import TracePoint
from orchestrator.model.result import Measurement
from orchestrator.report import labels
from orchestrator.report.figures import figure
from orchestrator.report.figures.figure import WIDTH, WINDOW, Drawing, Figure
from orchestrator.report.page import Page

_LEFT, _RIGHT, _TOP, _TALL = 50.0, WIDTH - 14.0, 54.0, 200.0
_LABEL = 40
"""Pixels that a number below the axis needs."""
_HIGHEST = 2.0
"""Of the median; what lies above, as after a pause, is drawn at the upper edge."""
_Traces = Sequence[tuple[Measurement, Sequence[TracePoint]]]
"""Trials with their rates over the median of the case; without a median, over their highest."""


def figures(page: Page) -> Iterable[Figure]:
    """Yield one figure, with a line for each trial, if any log prints rates."""
    traces: list[tuple[Measurement, list[TracePoint]]] = []
    for result in page.report.results:
        for trial in result.trials:
            points = trial.log.trace if trial.log else ()
            whole = result.median or max((point[4] for point in points), default=1.0)
            shares = [(*it[:2], it[2] / whole, it[3] / whole, it[4] / whole) for it in points]
            if shares:
                traces.append((trial, shares))
    if traces:
        # Trials that do not count are drawn over the others.
        yield _figure(page, sorted(traces, key=lambda pair: pair[0].state != "valid"))


def _figure(page: Page, traces: _Traces) -> Figure:
    drawing, bottom = Drawing(), _TOP + _TALL
    counts, out = "line thin s0", "line thin s1 d1"
    for look, x, words in (
        (counts, 8, page.text("trial that counts", "计入的试验")),
        (out, WIDTH / 2, page.text("trial that does not count", "不计入的试验")),
    ):
        drawing.line([(x, 15), (x + 26, 15)], look)
        drawing.text((x + 32, 19), words, "small")
    drawing.box((8, 28), (26, 14), "window")
    drawing.text((40, 39), page.text(*WINDOW), "small")
    every = [point for _, points in traces for point in points]
    begin, end = min(point[0] for point in every), max(point[1] for point in every)
    across = figure.Scale(begin, max(end, begin + 1), _LEFT, _RIGHT)
    grid = figure.ticks(min(max(point[4] for point in every), _HIGHEST), 5)
    up = figure.Scale(0, grid[-1], bottom, _TOP)
    numbers = [(across.low, "small soft"), (across.high, "end small soft")]
    for window in dict.fromkeys(trial.log.window for trial, _ in traces if trial.log):
        if window and across.low <= window[0] <= window[1] <= across.high:
            first, last = map(across, window)
            drawing.box((first, _TOP), (max(last - first, 1), _TALL), "window")
            drawing.line([(first, _TOP), (first, bottom + 4)], "edge")
            drawing.line([(last, _TOP), (last, bottom + 4)], "edge")
            right = "small" if last + _LABEL < _RIGHT else "end small"
            numbers += (window[0], "end small"), (window[1], right)
    for value in grid:
        drawing.line([(_LEFT, up(value)), (_RIGHT, up(value))], "grid")
        drawing.text((_LEFT - 5, up(value) + 4), f"{value:.0%}", "end small soft")
    written = list[float]()
    for value, look in reversed(numbers):  # those of windows first
        if all(abs(across(value) - x) > _LABEL for x in written):
            drawing.text((across(value), bottom + 16), str(round(value)), look)
            written.append(across(value))
    for trial, points in traces:
        look = counts if trial.state == "valid" else out
        places = [
            (across((first + last) / 2), up(rate))
            for first, last, *rates in points
            for rate in dict.fromkeys(rates)  # the lowest, the mean and the highest
        ]
        drawing.line(places, look, trial.trial)
    shares = [
        rate
        for trial, points in traces
        if trial.state == "valid" and trial.log and (window := trial.log.window)
        for first, last, low, _, high in points
        if window[0] <= first and last <= window[1]
        for rate in (low, high)
    ]
    low, high = (labels.share(edge(shares, default=None)) for edge in (min, max))
    title = page.text(
        "Speed over iterations, as the logs print it (100% is the median of the case)",
        "日志打印的速率随迭代的变化（用例中位数为 100%）",
    )
    summary = page.text(
        f"A line for each of {len(traces)} trials; the shaded part is the window that is measured,"
        f" in which rates lie between {low} and {high}.",
        f"{len(traces)} 次试验各一条线；阴影部分为测量窗口，"
        f"窗口内的速率介于 {low} 与 {high} 之间。",
    )
    return Figure("iterations", title, summary, bottom + 30, drawing.shapes)
