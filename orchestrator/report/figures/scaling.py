"""Throughput by number of GPUs: measured with its interval, ideal, and published."""

from collections.abc import Iterable, Sequence

from orchestrator.model.result import Result, Statistics
from orchestrator.report import labels as names
from orchestrator.report import rounding
from orchestrator.report.figures import scales, style
from orchestrator.report.figures.figure import WIDTH, Drawing, Figure, numbered
from orchestrator.report.markup import shown
from orchestrator.report.page import Page

_LEFT, _RIGHT, _TALL, _ROW = 64, 484, 280, 20
Point = tuple[Result, Statistics]


def figures(page: Page) -> Iterable[Figure]:
    """One for every few series that have a result on different numbers of GPUs."""
    groups = [group for group in map(_measured, names.series(page.report)) if _scales(group)]
    starts = range(0, len(groups), style.SERIES)
    yield from numbered([_figure(page, groups[at : at + style.SERIES]) for at in starts])


def _measured(group: Sequence[Result]) -> list[Point]:
    """Return the cases that have a result."""
    return [(result, result.statistics) for result in group if result.statistics]


def _scales(group: Sequence[Point]) -> bool:
    return len({result.case.world_size for result, _ in group}) > 1


def _figure(page: Page, groups: Sequence[Sequence[Point]]) -> Figure:
    labels = [names.of_series(page, [result for result, _ in group]) for group in groups]
    drawing, top = Drawing(), 44 + _ROW * (len(groups) + 2 + bool(page.report.published))
    points = [point for group in groups for point in group]
    sizes = sorted({result.case.world_size for result, _ in points})
    highest = max(
        max(_high(one), _ideal(group, one[0]), *_published(page, one[0]))
        for group in groups
        for one in group
    )
    grid = scales.ticks(highest, 6)
    across = scales.Scale(0, sizes[-1] * 1.04, _LEFT, _RIGHT)
    up = scales.Scale(0, grid[-1], top + _TALL, top)
    _axes(page, drawing, (across, up), (sizes, grid))
    for number, group in enumerate(groups):
        _series(page, drawing, (across, up), number, group)
        _legend(page, drawing, number, (labels[number], group))
    _legend_of_others(page, drawing, len(groups))
    return Figure(
        name="scaling",
        title=page.say("figure.scaling", unit=page.report.unit),
        summary=_summary(page, groups, labels),
        height=top + _TALL + 46,
        shapes=tuple(drawing.shapes),
    )


def _axes(
    page: Page,
    drawing: Drawing,
    places: tuple[scales.Scale, scales.Scale],
    marks: tuple[Sequence[int], Sequence[float]],
) -> None:
    (across, up), (sizes, grid) = places, marks
    for value in grid:
        drawing.line((_LEFT, up(value)), (_RIGHT, up(value)), "grid")
        drawing.text((_LEFT - 6, up(value) + 4), scales.tick_text(value), "end small soft")
    drawing.line((_LEFT, up(0)), (_RIGHT, up(0)), "axis")
    drawing.line((_LEFT, up(0)), (_LEFT, up(grid[-1])), "axis")
    labelled = scales.apart([across(size) for size in sizes], 18)
    for size, is_labelled in zip(sizes, labelled, strict=True):
        drawing.line((across(size), up(0)), (across(size), up(0) + 4), "axis")
        if is_labelled:
            drawing.text((across(size), up(0) + 18), str(size), "mid small soft")
    drawing.text(((_LEFT + _RIGHT) / 2, up(0) + 38), page.say("figure.gpus"), "mid")
    drawing.text((4, up(grid[-1]) - 10), page.report.unit)


def _series(
    page: Page,
    drawing: Drawing,
    places: tuple[scales.Scale, scales.Scale],
    number: int,
    group: Sequence[Point],
) -> None:
    across, up = places
    largest = group[-1][0]
    ends = [(across(0), up(0)), (across(largest.case.world_size), up(_ideal(group, largest)))]
    drawing.way(ends, f"ideal s{number}")
    line = [(across(result.case.world_size), up(found.median)) for result, found in group]
    drawing.way(line, f"line s{number} d{number}")
    for result, found in group:
        x = across(result.case.world_size)
        if found.interval:
            low, high = up(found.interval.low), up(found.interval.high)
            drawing.line((x, low), (x, high), f"bar s{number}")
            for y in (low, high):
                drawing.line((x - 5, y), (x + 5, y), f"bar s{number}")
        median = rounding.throughput(page.report, found.median)
        words = f"{result.case.placement}: {median} {page.report.unit}"
        drawing.point((x, up(found.median)), _marker(number), f"s{number} full", words)
        for value in _published(page, result):
            drawing.point((x, up(value)), 3, f"s{number} open", page.say("figure.published"))


def _marker(number: int) -> int:
    """The marker of a series; the diamond is for published results."""
    return number if number < 3 else number + 1


def _legend(page: Page, drawing: Drawing, number: int, series: tuple[str, Sequence[Point]]) -> None:
    """In full, or where that is too long by what the series differ in."""
    label, ((first, _), *_) = series
    if scales.width(label) > WIDTH - 60:
        label = names.of_settings(page.report, first.case)
    y = 14 + _ROW * number
    drawing.way([(8, y), (44, y)], f"line s{number} d{number}")
    drawing.point((26, y), _marker(number), f"s{number} full")
    drawing.text((52, y + 4), scales.fitted(shown(label), WIDTH - 60))


def _legend_of_others(page: Page, drawing: Drawing, groups: int) -> None:
    y = 14 + _ROW * groups
    drawing.way([(8, y), (44, y)], "ideal s5")
    ideal = page.say("figure.ideal")
    drawing.text((52, y + 4), ideal)
    y += _ROW
    drawing.line((26, y - 7), (26, y + 7), "bar s5")
    for end in (y - 7, y + 7):
        drawing.line((21, end), (31, end), "bar s5")
    drawing.text((52, y + 4), page.say("figure.interval"))
    if page.report.published:
        drawing.point((26, y + _ROW), 3, "s5 open")
        drawing.text((52, y + _ROW + 4), page.say("figure.published"))


def _ideal(group: Sequence[Point], result: Result) -> float:
    """The throughput of a case if that of the smallest one grew with the number of GPUs."""
    smallest, found = group[0]
    return found.median / smallest.case.world_size * result.case.world_size


def _high(point: Point) -> float:
    _, found = point
    return found.interval.high if found.interval else found.median


def _published(page: Page, result: Result) -> tuple[float, ...]:
    return tuple(row.throughput for row in page.report.published_for(result)[:1])


def _summary(page: Page, groups: Sequence[Sequence[Point]], labels: Sequence[str]) -> str:
    parts = [
        page.say(
            "figure.scaling.summary",
            series=label,
            least=group[0][0].case.world_size,
            most=group[-1][0].case.world_size,
            share=rounding.share(group[-1][1].median / _ideal(group, group[-1][0])),
        )
        for group, label in zip(groups, labels, strict=True)
    ]
    return shown(" ".join(parts))
