"""Throughput by number of GPUs: measured with its interval, ideal, and published."""

import itertools
from collections.abc import Iterable, Mapping, Sequence

from orchestrator.model.case import Case
from orchestrator.model.result import Result, Statistics
from orchestrator.report import labels as names
from orchestrator.report import rounding
from orchestrator.report.figures import scales, style
from orchestrator.report.figures.figure import LINE, WIDTH, Drawing, Figure, numbered
from orchestrator.report.markup import clean
from orchestrator.report.page import Page

_LEFT, _RIGHT, _TALL, _ROW = 64, 484, 280, 20
_APART = 9.0
"""Pixels between cases of equal size, and from a case to what was published of it."""
Point = tuple[Result, Statistics]


def figures(page: Page) -> Iterable[Figure]:
    """Yield a figure for every few series that have results on different numbers of GPUs."""
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
    drawing = Drawing()
    top = _legend(page, drawing, groups, labels) + 34
    points = [point for group in groups for point in group]
    cases = sorted((result.case for result, _ in points), key=lambda case: case.world_size)
    sizes: dict[int, dict[str, None]] = {}
    for case in cases:
        sizes.setdefault(case.world_size, {})[case.placement] = None
    highest = max(
        max(_high(one), _ideal(group, one[0]), *_published(page, one[0]))
        for group in groups
        for one in group
    )
    grid = scales.ticks(highest, 6)
    across = scales.Scale(0, cases[-1].world_size * 1.06, _LEFT, _RIGHT)
    up = scales.Scale(0, grid[-1], top + _TALL, top)
    _axes(page, drawing, (across, up), (sizes, grid))
    places = _places(across, points)
    for number, group in enumerate(groups):
        _series(page, drawing, (across, up), number, [(*one, places[one[0].case]) for one in group])
    return Figure(
        name="scaling",
        title=page.say("figure.scaling", unit=page.report.unit),
        summary=_summary(page, groups, labels),
        height=top + _TALL + 46,
        shapes=tuple(drawing.shapes),
    )


def _places(across: scales.Scale, points: Sequence[Point]) -> dict[Case, float]:
    """Place cases of equal size beside one another, so that none hides another."""
    by_size: dict[int, list[Case]] = {}
    for result, _ in points:
        by_size.setdefault(result.case.world_size, []).append(result.case)
    sizes = sorted(by_size)
    gap = min((across(b) - across(a) for a, b in itertools.pairwise(sizes)), default=_APART)
    apart = min(_APART, gap / max(map(len, by_size.values())))
    return {
        case: across(size) + apart * (number - (len(cases) - 1) / 2)
        for size, cases in by_size.items()
        for number, case in enumerate(cases)
    }


def _axes(
    page: Page,
    drawing: Drawing,
    places: tuple[scales.Scale, scales.Scale],
    marks: tuple[Mapping[int, Iterable[str]], Sequence[float]],
) -> None:
    (across, up), (sizes, grid) = places, marks
    for value in grid:
        drawing.line((_LEFT, up(value)), (_RIGHT, up(value)), "grid")
        drawing.text((_LEFT - 6, up(value) + 4), scales.tick_text(value), "end small soft")
    drawing.line((_LEFT, up(0)), (_RIGHT, up(0)), "axis")
    drawing.line((_LEFT, up(0)), (_LEFT, up(grid[-1])), "axis")
    for size in sizes:
        drawing.line((across(size), up(0)), (across(size), up(0) + 4), "axis")
    texts = [(across(size), _size(size, placements)) for size, placements in sizes.items()]
    for x, text in scales.apart(texts, WIDTH):
        drawing.text((x, up(0) + 18), text, "mid small soft")
    drawing.text(((_LEFT + _RIGHT) / 2, up(0) + 38), page.say("figure.gpus"), "mid")
    drawing.text((4, up(grid[-1]) - 12), page.report.unit)


def _size(size: int, placements: Iterable[str]) -> str:
    """Return a label; where several placements have one size, they are named from left to right."""
    names = [*placements]
    return str(size) if len(names) == 1 else f"{size} ({', '.join(names)})"


def _series(
    page: Page,
    drawing: Drawing,
    scale: tuple[scales.Scale, scales.Scale],
    number: int,
    group: Sequence[tuple[Result, Statistics, float]],
) -> None:
    across, up = scale
    largest = group[-1][0]
    ideal = _ideal([(result, found) for result, found, _ in group], largest)
    ends = [(across(0), up(0)), (across(largest.case.world_size), up(ideal))]
    drawing.way(ends, f"ideal s{number}")
    drawing.way([(x, up(found.median)) for _, found, x in group], f"line s{number} d{number}")
    for result, found, x in group:
        if found.interval:
            _interval(drawing, x, (up(found.interval.low), up(found.interval.high)), number)
        median = rounding.throughput(page.report, found.median)
        words = f"{result.case.placement}: {median} {page.report.unit}"
        drawing.point((x, up(found.median)), _marker(number), f"s{number} full", words)
        for value in _published(page, result):
            drawing.point(
                (x + _APART, up(value)), 3, f"s{number} open", page.say("figure.published")
            )


def _interval(drawing: Drawing, x: float, ends: tuple[float, float], number: int) -> None:
    drawing.line((x, ends[0]), (x, ends[1]), f"bar s{number}")
    for y in ends:
        drawing.line((x - 5, y), (x + 5, y), f"bar s{number}")


def _marker(number: int) -> int:
    """Return the marker of a series; the diamond is kept for published results."""
    return number if number < 3 else number + 1


def _legend(
    page: Page, drawing: Drawing, groups: Sequence[Sequence[Point]], labels: Sequence[str]
) -> float:
    """Explain the signs; the height of that. Series are named by what they differ in if needed."""
    y = 14.0
    for number, (label, ((first, _), *_)) in enumerate(zip(labels, groups, strict=True)):
        if scales.width(label) > WIDTH - 60:
            label = names.of_settings(page.report, first.case)
        drawing.way([(8, y), (44, y)], f"line s{number} d{number}")
        drawing.point((26, y), _marker(number), f"s{number} full")
        lines = scales.wrapped(clean(label), WIDTH - 60)
        drawing.lines((52, y + 4), lines, "")
        y += _ROW + LINE * (len(lines) - 1)
    drawing.way([(8, y), (44, y)], "ideal s5")
    drawing.text((52, y + 4), page.say("figure.ideal"))
    y += _ROW
    _interval(drawing, 26, (y - 7, y + 7), 5)
    drawing.text((52, y + 4), page.say("figure.interval"))
    if page.report.published:
        y += _ROW
        drawing.point((26, y), 3, "s5 open")
        drawing.text((52, y + 4), page.say("figure.published"))
    return y + 10


def _ideal(group: Sequence[Point], result: Result) -> float:
    """Return the throughput of a case if that of the smallest case grew with the GPUs."""
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
    return clean(" ".join(parts))
