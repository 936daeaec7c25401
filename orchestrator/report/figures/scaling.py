"""Throughput by number of GPUs: measured with its interval, ideal, and published."""
# ruff: noqa: RUF001 - Chinese has punctuation of its own

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from orchestrator.model.case import Case
from orchestrator.model.result import Result, Statistics
from orchestrator.report import labels
from orchestrator.report.figures import figure
from orchestrator.report.figures.figure import DIAMOND, INTERVAL, LINE, WIDTH, Drawing, Figure
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
    starts = range(0, len(groups), figure.SERIES)
    for number, start in enumerate(starts, 1):
        found = _figure(page, groups[start : start + figure.SERIES])
        if len(starts) > 1:
            found = replace(found, title=f"{found.title} ({number}/{len(starts)})")
        yield found if number == 1 else replace(found, name=f"{found.name}-{number}")


def _figure(page: Page, groups: Sequence[Points]) -> Figure:
    drawing, by_size, highs = Drawing(), dict[int, list[Case]](), list[float]()
    cases = [result.case for result in page.report.results]
    names = [clean(labels.settings(cases, group[0][0].case)) for group in groups]
    top = _legend(page, drawing, names) + 34
    for group in groups:
        for result, found in group:
            by_size.setdefault(result.case.world_size, []).append(result.case)
            highs += found.interval.high if found.interval else found.median, _ideal(group, result)
            highs += (row.throughput for row in page.report.published_for(result)[:1])
    sizes = sorted(by_size)
    grid = figure.ticks(max(highs), 6)
    across = figure.Scale(0, sizes[-1] * 1.06, _LEFT, _RIGHT)
    up = figure.Scale(0, grid[-1], top + _TALL, top)
    for value in grid:
        drawing.line([(_LEFT, up(value)), (_RIGHT, up(value))], "grid")
        tick = f"{value / 1000:g}k" if value >= 10_000 else f"{value:g}"
        drawing.text((_LEFT - 6, up(value) + 4), tick, "end small soft")
    drawing.line([(_LEFT, up(grid[-1])), (_LEFT, up(0)), (_RIGHT, up(0))], "axis")
    drawing.text(((_LEFT + _RIGHT) / 2, up(0) + 38), page.gpus, "mid")
    drawing.text((4, top - 12), page.report.unit)
    end = 0.0
    for size in sizes:  # no number is written over another
        x, half = across(size), figure.width(str(size)) / 2
        drawing.line([(x, up(0)), (x, up(0) + 4)], "axis")
        if x - half >= end:
            drawing.text((x, up(0) + 18), str(size), "mid small soft")
            end = x + half + 4
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
        share = labels.share(found.median / _ideal(group, largest))
        said.append(
            page.text(
                f"{name}: from {least} to {most} {gpus}; with {most} {gpus} {share} of the ideal.",
                f"{name}：{gpus}从 {least} 到 {most}；为 {most} 时达到理想值的 {share}。",
            )
        )
    return Figure("scaling", title, " ".join(said), top + _TALL + 46, drawing.shapes)


def _series(
    page: Page,
    drawing: Drawing,
    number: int,
    group: Points,
    places: Mapping[Case, float],
    up: figure.Scale,
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
        median = labels.throughput(page.report, found.median)
        words = f"{result.case.placement}: {median} {page.report.unit}"
        drawing.sign((x, y), number, f"s{number} full", words)
        for row in page.report.published_for(result)[:1]:
            place, words = (x + _APART, up(row.throughput)), page.text("published", "公布值")
            drawing.sign(place, DIAMOND, f"s{number} open", words)


def _legend(page: Page, drawing: Drawing, names: Sequence[str]) -> float:
    """Explain the signs; return the height of that."""
    y = 14.0
    for number, name in enumerate(names):
        drawing.line([(8, y), (44, y)], f"line s{number} d{number}")
        drawing.sign((26, y), number, f"s{number} full")
        lines = figure.wrapped(name, WIDTH - 60)
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
