"""The state of the machines over the time of a trial: of GPUs, or of processors without them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby

from orchestrator.model.telemetry import Course, Reach, Stretch
from orchestrator.report import courses
from orchestrator.report.courses import Shown
from orchestrator.report.figures import scales
from orchestrator.report.figures.figure import WIDTH, Drawing, Figure, numbered
from orchestrator.report.markdown_page import Page
from orchestrator.report.markup import shown

ROWS = 3
"""Trials of one picture: about a screen."""
NAME = "machines"
_TOP, _TALL, _LINE, _LEFT, _GAP = 58.0, 56.0, 16.0, 38.0, 10.0
Value = Callable[[Stretch], Reach | None]


def _alone(value: float | None) -> Reach | None:
    return None if value is None else Reach(value, value, value)


def _gib(piece: Stretch) -> Reach | None:
    return None if piece.available_mib is None else _alone(piece.available_mib / 1024)


OF_GPUS: Mapping[str, Value] = {
    "sm_clock": lambda piece: piece.sm_mhz,
    "power": lambda piece: piece.power_w,
    "temperature": lambda piece: piece.temperature_c,
    "utilisation": lambda piece: piece.utilisation_pct,
}
OF_HOSTS: Mapping[str, Value] = {
    "cpus": lambda piece: _alone(piece.cpus),
    "load": lambda piece: _alone(piece.load),
    "available": _gib,
}


def figures(page: Page) -> Iterable[Figure]:
    """One for every few of the trials that are chosen; scales are the same in all of them."""
    drawn = courses.chosen(page.report)
    highest = {
        key: max((r.high for one in drawn for r in _reaches(one, value)), default=0.0)
        for key, value in {**OF_GPUS, **OF_HOSTS}.items()
    }
    grids = {key: scales.ticks(value or 1.0, 2) for key, value in highest.items()}
    most = max(1, min(ROWS, -(-len(drawn) // 2)))
    starts = range(0, len(drawn), most)  # few trials fill two figures beside one another
    yield from numbered([_figure(page, drawn[at : at + most], grids) for at in starts])


def _reaches(one: Shown, value: Value) -> Iterable[Reach]:
    found = (value(piece) for course in one.courses for piece in course.stretches)
    return (reach for reach in found if reach is not None)


def _figure(page: Page, rows: Sequence[Shown], grids: Mapping[str, list[float]]) -> Figure:
    drawing, y = Drawing(), _TOP
    _legend(page, drawing, has_gpus=any(row.has_gpus for row in rows))
    for row in rows:
        y = _row(page, drawing, grids, y, row)
    if more := courses.left_out(page, courses.chosen(page.report)):
        drawing.text((4, y), more.strip(), "strong")
        y += _LINE
    return Figure(
        name=NAME,
        title=page.say("figure.machines"),
        summary=_summary(page, rows),
        height=y,
        shapes=tuple(drawing.shapes),
        table=courses.table(page, rows),
    )


def _summary(page: Page, rows: Sequence[Shown]) -> str:
    lines = [
        page.say("colon").join((courses.label(page, row), line))
        for row in rows
        for line in courses.held(page, row)
    ]
    key = "free" if any(row.has_gpus for row in rows) else "unknown"
    held = "; ".join(lines) or page.say(f"figure.machines.{key}")
    said = page.say("figure.machines.summary", trials=len(rows), held=held)
    return shown(said + courses.left_out(page, courses.chosen(page.report)))


def _row(
    page: Page, drawing: Drawing, grids: Mapping[str, list[float]], y: float, row: Shown
) -> float:
    """Draws it, and says where the next one begins."""
    y += _LINE
    drawing.text((4, y), scales.fitted(courses.label(page, row), WIDTH - 8), "strong")
    for look, line in _words(page, row):
        for part in scales.wrapped(line, WIDTH - 8):
            y += _LINE
            drawing.text((4, y), part, look)
    y += _LINE
    _nodes(drawing, y, row.courses)
    kinds = OF_GPUS if row.has_gpus else OF_HOSTS
    pitch, top = (WIDTH - 4) / 2, y + 26
    for number, (key, value) in enumerate(kinds.items()):
        if number and number % 2 == 0:
            top += _TALL + 44
        left = number % 2 * pitch + _LEFT
        across = scales.Scale(0, row.last_s, left, left + pitch - _LEFT - _GAP)
        up = scales.Scale(0, grids[key][-1], top + _TALL, top)
        (head,) = page.heads(key)
        drawing.text((left, top - 6), scales.fitted(head, pitch - 8), "small soft")
        _panel(page, drawing, (across, up), grids[key], row)
        if key == "sm_clock":
            _held(drawing, (across, up), row.courses)
        for place, course in enumerate(row.courses):
            _line(drawing, (across, up), place, course, value)
    return top + _TALL + 34


def _words(page: Page, row: Shown) -> Iterable[tuple[str, str]]:
    if said := courses.measured(page, row):
        yield "small soft", said
    for line in courses.held(page, row):
        yield "small bad", line


def _nodes(drawing: Drawing, y: float, found: Sequence[Course]) -> None:
    """Which line is which node."""
    room = (WIDTH - 4) / courses.NODES
    for place, course in enumerate(found):
        left = 4 + room * place
        drawing.way([(left, y - 4), (left + 26, y - 4)], f"line s{place} d{place}")
        drawing.text((left + 31, y), scales.fitted(shown(course.node), room - 36), "small")


def _panel(
    page: Page,
    drawing: Drawing,
    places: tuple[scales.Scale, scales.Scale],
    grid: Sequence[float],
    row: Shown,
) -> None:
    across, up = places
    window = next((course.window_s for course in row.courses if course.window_s), None)
    if window:
        first, last = (across(min(max(end, 0.0), row.last_s)) for end in window)
        drawing.box((first, up(grid[-1])), (max(last - first, 1), _TALL), "window")
        for x in (first, last):
            drawing.line((x, up(grid[-1])), (x, up(0) + 4), "edge")
    for value in (grid[0], grid[-1]):
        drawing.line((across.begin, up(value)), (across.end, up(value)), "grid")
        drawing.text((across.begin - 4, up(value) + 4), scales.tick_text(value), "end small soft")
    drawing.text((across.begin, up(0) + 16), "0", "small soft")
    last_s = page.say("figure.seconds", seconds=f"{row.last_s:.0f}")
    drawing.text((across.end, up(0) + 16), last_s, "end small soft")


def _held(
    drawing: Drawing, places: tuple[scales.Scale, scales.Scale], found: Sequence[Course]
) -> None:
    """Where the clocks of any node were held down."""
    across, up = places
    top = up(up.high)
    for first, last in dict.fromkeys(
        span for course in found for span in courses.spans(course.stretches)
    ):
        wide = max(across(last) - across(first), 2.0)
        drawing.hatched((across(first), top), (wide, _TALL), "held")


def _line(
    drawing: Drawing,
    places: tuple[scales.Scale, scales.Scale],
    number: int,
    course: Course,
    value: Value,
) -> None:
    across, up = places
    pieces = [(piece, value(piece)) for piece in course.stretches]
    spread = [
        (_middle(p, across), up(r.low), up(r.high)) for p, r in pieces if r and r.high > r.low
    ]
    drawing.spans(spread, f"thin s{number}")
    for is_known, run in groupby(pieces, key=lambda pair: pair[1] is not None):
        if is_known:
            known = [(piece, reach.mean) for piece, reach in run if reach is not None]
            (first, begin), (last, end) = known[0], known[-1]
            line = [(across(first.first_s), up(begin))]
            line += [(_middle(piece, across), up(mean)) for piece, mean in known]
            line += [(across(last.last_s), up(end))]
            drawing.way(line, f"line thin s{number} d{number}", shown(course.node))


def _middle(piece: Stretch, across: scales.Scale) -> float:
    return across((piece.first_s + piece.last_s) / 2)


def _legend(page: Page, drawing: Drawing, *, has_gpus: bool) -> None:
    drawing.box((8, 8), (26, 14), "window")
    for x in (8.0, 34.0):
        drawing.line((x, 8), (x, 22), "edge")
    drawing.text((40, 19), page.say("figure.window"), "small")
    if not has_gpus:
        return
    drawing.hatched((WIDTH / 2, 8), (26, 14), "held")
    drawing.text((WIDTH / 2 + 32, 19), page.say("figure.held_down"), "small")
    drawing.spans([(21, 28, 42)], "thin s0")
    drawing.text((40, 39), page.say("figure.all_gpus"), "small")
