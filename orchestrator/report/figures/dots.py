"""Every trial as a dot, by its difference from the median of its case."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from orchestrator.model.result import Measurement, Result
from orchestrator.report import labels, rounding
from orchestrator.report.figures import scales
from orchestrator.report.figures.figure import LINE, Drawing, Figure
from orchestrator.report.markup import clean
from orchestrator.report.page import Page

_LEFT, _RIGHT, _TOP, _ROW = 150, 440, 64, 22
_LEAST, _MOST = 0.01, 1.0
"""How far the axis reaches to each side; what lies beyond is drawn at its end, with its number."""


@dataclass(frozen=True, slots=True)
class _Row:
    """A case with a median, and its trials that have a number."""

    label: str
    result: Result
    median: float
    trials: Sequence[tuple[Measurement, float]]

    @property
    def lines(self) -> list[str]:
        """Split the label, which stands left of the axis."""
        return scales.wrapped(clean(self.label), _LEFT - 16)

    @property
    def height(self) -> float:
        """Pixels for the lines of the label, and for the trials."""
        return max(_ROW, LINE * len(self.lines) + 6)

    @property
    def widest(self) -> float:
        """Return the largest distance of a trial that counts from the median."""
        counting = [value for trial, value in self.trials if trial.state == "valid"]
        return max((abs(value / self.median - 1) for value in counting), default=0.0)


def figures(page: Page) -> Iterable[Figure]:
    """Yield one figure if any case has a result."""
    rows = [row for result in page.report.results if (row := _row(page, result))]
    if rows:
        yield _figure(page, rows)


def _row(page: Page, result: Result) -> _Row | None:
    if result.statistics is None:
        return None
    trials = [(trial, trial.throughput) for trial in result.trials if trial.throughput is not None]
    return _Row(labels.of_case(page.report, result), result, result.statistics.median, trials)


def _figure(page: Page, rows: Sequence[_Row]) -> Figure:
    widest = max(row.widest for row in rows)
    reach = scales.ticks(min(max(widest, _LEAST), _MOST), 2)[-1]
    bottom = _TOP + sum(row.height for row in rows)
    across = scales.Scale(-reach, reach, _LEFT, _RIGHT)
    drawing = Drawing()
    _legend(page, drawing)
    for value in (-reach, -reach / 2, 0.0, reach / 2, reach):
        look = "grid" if value else "axis"
        drawing.line((across(value), _TOP - 4), (across(value), bottom), look)
        drawing.text((across(value), bottom + 16), _percent(value), "mid small soft")
    drawing.text((across(0), bottom + 36), page.say("figure.from_median"), "mid")
    y = float(_TOP)
    for row in rows:
        _draw(page, drawing, across, y + row.height / 2, row)
        y += row.height
    return Figure(
        name="trials",
        title=page.say("figure.trials"),
        summary=_summary(page, rows),
        height=bottom + 46,
        shapes=tuple(drawing.shapes),
    )


def _draw(page: Page, drawing: Drawing, across: scales.Scale, y: float, row: _Row) -> None:
    drawing.lines((4, y + 4 - LINE / 2 * (len(row.lines) - 1)), row.lines, "small")
    found = row.result.statistics
    if found and found.interval:
        low, high = (
            min(max(value / row.median - 1, across.low), across.high)
            for value in (found.interval.low, found.interval.high)
        )
        drawing.line((across(low), y), (across(high), y), "bar s5")
        for value in (low, high):
            drawing.line((across(value), y - 4), (across(value), y + 4), "bar s5")
    apart = min(3.0, 12 / len(row.trials))  # so that equal trials are seen beside one another
    places = {trial.trial: apart * n for n, (trial, _) in enumerate(row.trials)}
    middle = apart * (len(row.trials) - 1) / 2
    for trial, value in sorted(row.trials, key=lambda pair: pair[0].state != "valid"):
        difference = value / row.median - 1
        number = rounding.throughput(page.report, value)
        words = f"{trial.trial}: {number} ({rounding.signed(difference)})"
        x = across(min(max(difference, across.low), across.high))
        place = x, y + places[trial.trial] - middle
        if trial.state != "valid":
            drawing.cross(place, words)
        else:
            drawing.point(
                place, 1 if trial.marks else 0, "s1 open" if trial.marks else "s0 open", words
            )
        if not across.low <= difference <= across.high:
            side = -8 if difference > 0 else 8
            look = "end small bad" if difference > 0 else "small bad"
            drawing.text((place[0] + side, place[1] + 4), rounding.signed(difference), look)
    counts = rounding.of_trials(page.report, row.result)
    drawing.text((_RIGHT + 10, y + 4), counts, "small soft")


def _legend(page: Page, drawing: Drawing) -> None:
    for number, key in enumerate(("counts_alone", "marked", "not_counted", "interval")):
        x, y = 10 + 180 * (number % 2), 14 + 20 * (number // 2)
        if key == "counts_alone":
            drawing.point((x, y), 0, "s0 open")
        elif key == "marked":
            drawing.point((x, y), 1, "s1 open")
        elif key == "not_counted":
            drawing.cross((x, y))
        else:
            drawing.line((x - 6, y), (x + 6, y), "bar s5")
            for end in (x - 6, x + 6):
                drawing.line((end, y - 4), (end, y + 4), "bar s5")
        drawing.text((x + 12, y + 4), page.say(f"figure.{key}"), "small")


def _percent(value: float) -> str:
    return f"{value * 100:+.4g}%" if value else "0%"


def _summary(page: Page, rows: Sequence[_Row]) -> str:
    spreads = [
        (found.spread, row.label)
        for row in rows
        if (found := row.result.statistics) and found.spread is not None
    ]
    if not spreads:
        return page.say("figure.trials.single", cases=len(rows))
    widest, label = max(spreads)
    return page.say(
        "figure.trials.summary", cases=len(rows), spread=rounding.share(widest), case=clean(label)
    )
