"""Every trial as a dot, by its difference from the median of its case."""

from collections.abc import Iterable, Sequence

from orchestrator.model.result import Result, Statistics
from orchestrator.report import labels, rounding
from orchestrator.report.figures import scales
from orchestrator.report.figures.figure import CROSS, LINE, Drawing, Figure
from orchestrator.report.markup import clean
from orchestrator.report.page import Page

_LEFT, _RIGHT, _TOP, _ROW = 150, 440, 64, 22
_LEAST, _MOST = 0.01, 1.0
"""The most that the axis extends to each side; points beyond are drawn at its end, with numbers."""


def figures(page: Page) -> Iterable[Figure]:
    """Yield one figure if any case has a result."""
    rows = [(result, result.statistics) for result in page.report.results if result.statistics]
    if rows:
        yield _figure(page, rows)


def _figure(page: Page, rows: Sequence[tuple[Result, Statistics]]) -> Figure:
    names = [clean(labels.of_case(page.report, result)) for result, _ in rows]
    wrapped = [scales.wrapped(name, _LEFT - 16) for name in names]
    heights = [max(_ROW, LINE * len(lines) + 6) for lines in wrapped]
    bottom = float(_TOP + sum(heights))
    widest = max(
        max(abs(end / found.median - 1) for end in (found.low, found.high)) for _, found in rows
    )
    reach = scales.ticks(min(max(widest, _LEAST), _MOST), 2)[-1]
    across = scales.Scale(-reach, reach, _LEFT, _RIGHT)
    drawing = Drawing()
    _legend(page, drawing)
    for value in (-reach, -reach / 2, 0.0, reach / 2, reach):
        x = across(value)
        drawing.line([(x, _TOP - 4), (x, bottom)], "grid" if value else "axis")
        percent = f"{value * 100:+.4g}%" if value else "0%"
        drawing.text((x, bottom + 16), percent, "mid small soft")
    drawing.text((across(0), bottom + 36), page.say("figure.from_median"), "mid")
    y = float(_TOP)
    for (result, found), lines, height in zip(rows, wrapped, heights, strict=True):
        y += height / 2
        drawing.text((4, y + 4 - LINE / 2 * (len(lines) - 1)), lines, "small")
        _draw(page, drawing, across, y, result, found)
        y += height / 2
    spreads = [
        (found.spread, name)
        for (_, found), name in zip(rows, names, strict=True)
        if found.spread is not None
    ]
    summary = page.say("figure.trials.single", cases=len(rows))
    if spreads:
        spread, case = max(spreads)
        share = rounding.share(spread)
        summary = page.say("figure.trials.summary", cases=len(rows), spread=share, case=case)
    title = page.say("figure.trials")
    return Figure("trials", title, summary, bottom + 46, drawing.shapes)


def _draw(
    page: Page,
    drawing: Drawing,
    across: scales.Scale,
    y: float,
    result: Result,
    found: Statistics,
) -> None:
    """Draw the interval and the trials of a case; those that do not count are in front."""
    if found.interval:
        ends = found.interval.low, found.interval.high
        drawing.line([(across(end / found.median - 1), y) for end in ends], "bar s5")
    trials = [(it, it.throughput) for it in result.trials if it.throughput is not None]
    apart = min(3.0, 12 / len(trials))  # so that equal trials are seen beside one another
    first = y - apart * (len(trials) - 1) / 2
    places = {trial.trial: first + apart * number for number, (trial, _) in enumerate(trials)}
    for trial, value in sorted(trials, key=lambda pair: pair[0].state != "valid"):
        difference = value / found.median - 1
        signed = rounding.signed(difference)
        words = f"{trial.trial}: {rounding.throughput(page.report, value)} ({signed})"
        number, look = (1, "s1 open") if trial.marks else (0, "s0 open")
        if trial.state != "valid":
            number, look = CROSS, "out"
        place = across(difference), places[trial.trial]
        drawing.sign(place, number, look, words)
        if not across.low <= difference <= across.high:
            side, look = (-8, "end small bad") if difference > 0 else (8, "small bad")
            drawing.text((place[0] + side, place[1] + 4), signed, look)
    drawing.text((_RIGHT + 10, y + 4), rounding.of_trials(page.report, result), "small soft")


def _legend(page: Page, drawing: Drawing) -> None:
    signs = {
        "counts_alone": (0, "s0 open"),
        "marked": (1, "s1 open"),
        "not_counted": (CROSS, "out"),
    }
    for number, key in enumerate((*signs, "interval")):
        x, y = 10 + 180 * (number % 2), 14 + 20 * (number // 2)
        if key in signs:
            drawing.sign((x, y), *signs[key])
        else:
            drawing.line([(x - 6, y), (x + 6, y)], "bar s5")
        drawing.text((x + 12, y + 4), page.say(f"figure.{key}"), "small")
