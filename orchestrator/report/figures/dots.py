"""Every trial as a dot, by its difference from the median of its case."""
# ruff: noqa: RUF001 - Chinese has punctuation of its own

from collections.abc import Iterable, Sequence

from orchestrator.model.result import Result, Statistics
from orchestrator.report import labels
from orchestrator.report.figures import figure
from orchestrator.report.figures.figure import CROSS, INTERVAL, LINE, Drawing, Figure
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
    wrapped = [figure.wrapped(name, _LEFT - 16) for name in names]
    heights = [max(_ROW, LINE * len(lines) + 6) for lines in wrapped]
    bottom = float(_TOP + sum(heights))
    widest = max(
        max(abs(end / found.median - 1) for end in (found.low, found.high)) for _, found in rows
    )
    reach = figure.ticks(min(max(widest, _LEAST), _MOST), 2)[-1]
    across = figure.Scale(-reach, reach, _LEFT, _RIGHT)
    drawing = Drawing()
    for place, sign, words in (
        ((10, 14), (0, "s0 open"), page.text("counts", "计入")),
        ((190, 14), (1, "s1 open"), page.text("counts, with a mark", "计入但有标记")),
        ((10, 34), (CROSS, "out"), page.text("does not count", "不计入")),
    ):
        drawing.sign(place, *sign)
        drawing.text((place[0] + 12, place[1] + 4), words, "small")
    drawing.line([(184, 34), (196, 34)], "bar s5")
    drawing.text((202, 38), page.text(*INTERVAL), "small")
    for value in (-reach, -reach / 2, 0.0, reach / 2, reach):
        x = across(value)
        drawing.line([(x, _TOP - 4), (x, bottom)], "grid" if value else "axis")
        percent = f"{value * 100:+.4g}%" if value else "0%"
        drawing.text((x, bottom + 16), percent, "mid small soft")
    below = page.text("difference from the median", "与中位数的差异")
    drawing.text((across(0), bottom + 36), below, "mid")
    y = float(_TOP)
    for (result, found), lines, height in zip(rows, wrapped, heights, strict=True):
        y += height / 2
        drawing.text((4, y + 4 - LINE / 2 * (len(lines) - 1)), lines, "small")
        _draw(page, drawing, across, y, result, found)
        y += height / 2
    summary = page.text(
        f"{len(rows)} cases with a result, each of a single trial.",
        f"{len(rows)} 个有结果的用例，各只有一次试验。",
    )
    pairs = zip(rows, names, strict=True)
    spreads = [(it.spread, name) for (_, it), name in pairs if it.spread is not None]
    if spreads:
        spread, case = max(spreads)
        share = labels.share(spread)
        summary = page.text(
            f"{len(rows)} cases with a result; the widest spread of trials that count is {share},"
            f" in {case}.",
            f"{len(rows)} 个有结果的用例；有效试验的最大离散度为 {share}，出现在 {case}。",
        )
    title = page.text(
        "All trials, by their difference from the median of their case",
        "全部试验与所属用例中位数的差异",
    )
    return Figure("trials", title, summary, bottom + 46, drawing.shapes)


def _draw(
    page: Page,
    drawing: Drawing,
    across: figure.Scale,
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
        signed = labels.signed(difference)
        words = f"{trial.trial}: {labels.throughput(page.report, value)} ({signed})"
        number, look = (1, "s1 open") if trial.marks else (0, "s0 open")
        if trial.state != "valid":
            number, look = CROSS, "out"
        place = across(difference), places[trial.trial]
        drawing.sign(place, number, look, words)
        if not across.low <= difference <= across.high:
            side, look = (-8, "end small bad") if difference > 0 else (8, "small bad")
            drawing.text((place[0] + side, place[1] + 4), signed, look)
    drawing.text((_RIGHT + 10, y + 4), labels.of_trials(page.report, result), "small soft")
