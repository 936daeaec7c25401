"""Throughput by number of GPUs: measured with its interval, ideal, and published."""
# ruff: noqa: RUF001 - Chinese has punctuation of its own

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from orchestrator.model.case import Case
from orchestrator.model.result import Result, Statistics
from orchestrator.report import labels, rounding
from orchestrator.report.figures import scales, style
from orchestrator.report.figures.figure import (
    DIAMOND,
    INTERVAL,
    LINE,
    WIDTH,
    Drawing,
    Figure,
    number_figures,
)
from orchestrator.report.markup import clean
from orchestrator.report.page import Page

_LEFT, _RIGHT, _TALL, _ROW = 64, 484, 280, 20
_APART = 9.0
"""Pixels between cases of equal size, and from a case to what was published of it."""
Points: TypeAlias = Sequence[tuple[Result, Statistics]]


def figures(page: Page) -> Iterable[Figure]:
    """Yield a figure for every few series that have results on different numbers of GPUs."""
    groups: list[Points] = []
    for group in labels.series(page.report):
        points = [(result, result.statistics) for result in group if result.statistics]
        if len({result.case.world_size for result, _ in points}) > 1:
            groups.append(points)
    starts = range(0, len(groups), style.SERIES)
    yield from number_figures([_figure(page, groups[at : at + style.SERIES]) for at in starts])


def _figure(page: Page, groups: Sequence[Points]) -> Figure:
    drawing, by_size, highs = Drawing(), dict[int, list[Case]](), list[float]()
    names = [labels.of_series(page, [result for result, _ in group]) for group in groups]
    top = _legend(page, drawing, groups, names) + 34
    for group in groups:
        for result, found in group:
            by_size.setdefault(result.case.world_size, []).append(result.case)
            highs += found.interval.high if found.interval else found.median, _ideal(group, result)
            highs += (row.throughput for row in page.report.published_for(result)[:1])
    sizes = sorted(by_size)
    grid = scales.ticks(max(highs), 6)
    across = scales.Scale(0, sizes[-1] * 1.06, _LEFT, _RIGHT)
    up = scales.Scale(0, grid[-1], top + _TALL, top)
    for value in grid:
        drawing.line([(_LEFT, up(value)), (_RIGHT, up(value))], "grid")
        tick = f"{value / 1000:g}k" if value >= 10_000 else f"{value:g}"
        drawing.text((_LEFT - 6, up(value) + 4), tick, "end small soft")
    drawing.line([(_LEFT, up(grid[-1])), (_LEFT, up(0)), (_RIGHT, up(0))], "axis")
    drawing.text(((_LEFT + _RIGHT) / 2, up(0) + 38), page.gpus, "mid")
    drawing.text((4, top - 12), page.report.unit)
    _label_sizes(drawing, {across(size): by_size[size] for size in sizes}, up(0))
    gap = min(across(more) - across(less) for less, more in itertools.pairwise(sizes))
    apart = min(_APART, gap / max(map(len, by_size.values())))
    places = {  # cases of equal size are drawn beside one another, so that none hides another
        case: across(size) + apart * (number - (len(cases) - 1) / 2)
        for size, cases in by_size.items()
        for number, case in enumerate(cases)
    }
    for number, group in enumerate(groups):
        _series(page, drawing, number, group, places, up)
    unit, gpus = page.report.unit, page.gpus
    title = page.text(f"Scaling: {unit} by number of {gpus}", f"扩展性：{unit} 随{gpus}的变化")
    said = []
    for name, group in zip(names, groups, strict=True):
        (smallest, _), (largest, found) = group[0], group[-1]
        least, most = smallest.case.world_size, largest.case.world_size
        share = rounding.share(found.median / _ideal(group, largest))
        said.append(
            page.text(
                f"{name}: from {least} to {most} {gpus}; with {most} {gpus} {share} of the ideal.",
                f"{name}：{gpus}从 {least} 到 {most}；为 {most} 时达到理想值的 {share}。",
            )
        )
    return Figure("scaling", title, clean(" ".join(said)), top + _TALL + 46, drawing.shapes)


def _label_sizes(drawing: Drawing, cases: Mapping[float, Sequence[Case]], y: float) -> None:
    """Write the numbers of GPUs below the axis, but none over another or over the edge.

    Args:
        cases: by their places across, ascending; several placements of one size are named.
    """
    end = 0.0
    for x, same in cases.items():
        drawing.line([(x, y), (x, y + 4)], "axis")
        placements = dict.fromkeys(case.placement for case in same)
        label = str(same[0].world_size)
        if len(placements) > 1:
            label += f" ({', '.join(placements)})"
        half = scales.width(label) / 2
        middle = max(half, min(x, WIDTH - half))
        if middle - half >= end:
            drawing.text((middle, y + 18), label, "mid small soft")
            end = middle + half + 4


def _series(
    page: Page,
    drawing: Drawing,
    number: int,
    group: Points,
    places: Mapping[Case, float],
    up: scales.Scale,
) -> None:
    across = [places[result.case] for result, _ in group]
    ideals = [up(_ideal(group, result)) for result, _ in group]
    drawing.line(zip(across, ideals, strict=True), f"ideal s{number}")
    medians = [up(found.median) for _, found in group]
    drawing.line(zip(across, medians, strict=True), f"line s{number} d{number}")
    for x, y, (result, found) in zip(across, medians, group, strict=True):
        if found.interval:
            ends = (x, up(found.interval.low)), (x, up(found.interval.high))
            drawing.line(ends, f"bar s{number}")
        median = rounding.throughput(page.report, found.median)
        words = f"{result.case.placement}: {median} {page.report.unit}"
        drawing.sign((x, y), number, f"s{number} full", words)
        for row in page.report.published_for(result)[:1]:
            place, words = (x + _APART, up(row.throughput)), page.text("published", "公布值")
            drawing.sign(place, DIAMOND, f"s{number} open", words)


def _legend(page: Page, drawing: Drawing, groups: Sequence[Points], names: Sequence[str]) -> float:
    """Explain the signs; return the height of that."""
    y = 14.0
    for number, (name, group) in enumerate(zip(names, groups, strict=True)):
        if scales.width(name) > WIDTH - 60:  # then only the settings that differ
            name = labels.settings([it.case for it in page.report.results], group[0][0].case)
        drawing.line([(8, y), (44, y)], f"line s{number} d{number}")
        drawing.sign((26, y), number, f"s{number} full")
        lines = scales.wrapped(clean(name), WIDTH - 60)
        drawing.text((52, y + 4), lines)
        y += _ROW + LINE * (len(lines) - 1)
    ideal = f"ideal: the smallest case times {page.gpus}"
    for look, words in (
        ("ideal s5", page.text(ideal, f"理想：最小用例按{page.gpus}放大")),
        ("bar s5", page.text(*INTERVAL)),
    ):
        drawing.line([(8, y), (44, y)], look)
        drawing.text((52, y + 4), words)
        y += _ROW
    if page.report.published:
        drawing.sign((26, y), DIAMOND, "s5 open")
        drawing.text((52, y + 4), page.text("published", "公布值"))
        y += _ROW
    return y - 10


def _ideal(group: Points, result: Result) -> float:
    """Return the throughput of a case if that of the smallest case grew with the GPUs."""
    smallest, found = group[0]
    return found.median / smallest.case.world_size * result.case.world_size
