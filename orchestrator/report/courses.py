"""Which trials show the state of their machines over time, and what is said of each."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from orchestrator import nodeset
from orchestrator.model.report import Report
from orchestrator.model.result import Measurement, Result
from orchestrator.model.telemetry import MARKS, Course, Reach, Stretch
from orchestrator.report import labels, rounding
from orchestrator.report.figures.figure import Table
from orchestrator.report.markdown_page import Page
from orchestrator.report.markup import shown

MOST, NODES = 24, 4
"""Trials that are drawn, and nodes of each."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A trial that is drawn.

    Args:
        courses: of the nodes that are drawn, those with held clocks among them.
    """

    case: str
    trial: Measurement
    courses: tuple[Course, ...]

    @property
    def last_s(self) -> float:
        """When its last node was seen last."""
        return max(course.stretches[-1].last_s for course in self.courses)

    @property
    def has_gpus(self) -> bool:
        """Whether a GPU told anything of itself."""
        pieces = (piece for course in self.courses for piece in course.stretches)
        return any(piece.sm_mhz or piece.power_w or piece.utilisation_pct for piece in pieces)


def chosen(report: Report) -> tuple[Shown, ...]:
    """Of each case the trial nearest to its median, then those marked; in the report's order."""
    known = [
        (result, trial) for result in report.results for trial in result.trials if trial.courses
    ]
    middle = [(result, trial) for result, trial in known if trial is _middle(result)]
    kept = [*middle, *(pair for pair in known if _marked(pair[1]) and pair not in middle)][:MOST]
    return tuple(
        Shown(labels.of_case(report, result), trial, _drawn(trial.courses))
        for result, trial in known
        if (result, trial) in kept
    )


def left_out(page: Page, drawn: Sequence[Shown]) -> str:
    """How many marked trials are not drawn, in words; empty where all are."""
    names = {one.trial.trial for one in drawn}
    every = [trial for result in page.report.results for trial in result.trials if trial.courses]
    count = sum(_marked(trial) and trial.trial not in names for trial in every)
    return page.say("figure.machines.more", count=count) if count else ""


def _middle(result: Result) -> Measurement | None:
    """The valid trial nearest to the median, else the first that was seen."""
    seen = [trial for trial in result.trials if trial.courses]
    found = result.statistics
    near = [
        (abs(trial.throughput - found.median), trial.repeat, trial)
        for trial in seen
        if found and trial.state == "valid" and trial.throughput is not None
    ]
    return min(near, key=lambda pair: pair[:2])[2] if near else next(iter(seen), None)


def _marked(trial: Measurement) -> bool:
    return any(mark.code in MARKS for mark in (*trial.marks, *trial.problems))


def _drawn(courses: Sequence[Course]) -> tuple[Course, ...]:
    """So many, in their own order, those with held clocks before others."""
    kept = sorted(courses, key=lambda course: not _is_held(course))[:NODES]
    return tuple(course for course in courses if course in kept)


def _is_held(course: Course) -> bool:
    return any(piece.held for piece in course.stretches)


def spans(pieces: Iterable[Stretch]) -> list[tuple[float, float]]:
    """First and last seconds over which clocks were held down, neighbours as one."""
    runs = [[*run] for is_held, run in groupby(pieces, key=lambda p: p.held) if is_held]
    return [(run[0].first_s, run[-1].last_s) for run in runs]


def held(page: Page, drawn: Shown) -> list[str]:
    """A line per node whose clocks were held down, or for several by the same at the same time."""
    nodes: dict[tuple[str, str], list[str]] = {}
    for course in filter(_is_held, drawn.courses):
        limits = _limits(course) or page.say("figure.machines.counted")
        pieces = (f"{_seconds(begin)}-{_seconds(end)}" for begin, end in spans(course.stretches))
        nodes.setdefault((limits, page.say("comma").join(pieces)), []).append(course.node)
    return [
        shown(
            page.say(
                "figure.machines.held", node=nodeset.fold(names), limits=limits, seconds=seconds
            )
        )
        for (limits, seconds), names in nodes.items()
    ]


def _limits(course: Course) -> str:
    return ", ".join(sorted({name for piece in course.stretches for name in piece.limits}))


def measured(page: Page, drawn: Shown) -> str:
    """When it was measured, and of how many nodes some are drawn."""
    window = next((course.window_s for course in drawn.courses if course.window_s), None)
    said = []
    if window:
        first, last = map(_seconds, window)
        said.append(page.say("figure.machines.measured", first=first, last=last))
    count, every = len(drawn.courses), len(drawn.trial.courses)
    if count < every:
        said.append(page.say("figure.machines.nodes", shown=count, all=every))
    return page.say("comma").join(said)


def label(page: Page, drawn: Shown) -> str:
    """The case and the number of a trial."""
    number = page.say("figure.trial", number=drawn.trial.repeat)
    return shown(page.say("comma").join((drawn.case, number)))


def _seconds(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def table(page: Page, drawn: Sequence[Shown]) -> Table:
    """What is drawn, without columns that nobody tells anything in."""
    head = (
        *page.heads("case", "node", "seconds", "sm_clock", "power", "temperature"),
        *page.heads("utilisation", "limits", "cpus", "load", "available"),
    )
    rows = [
        (label(page, one), shown(course.node), *_cells(page, piece, gpus=one.has_gpus))
        for one in drawn
        for course in one.courses
        for piece in course.stretches
    ]
    kept = [place for place in range(len(head)) if any(row[place] for row in rows)]
    return Table([head[place] for place in kept], [[row[place] for place in kept] for row in rows])


def _cells(page: Page, piece: Stretch, *, gpus: bool) -> tuple[str, ...]:
    held_by = ", ".join(piece.limits) or page.say("figure.machines.counted")
    gib = None if piece.available_mib is None else piece.available_mib / 1024
    of_host = (None, None, None) if gpus else (piece.cpus, piece.load, gib)
    return (
        f"{_seconds(piece.first_s)}-{_seconds(piece.last_s)}",
        *map(_mean, (piece.sm_mhz, piece.power_w, piece.temperature_c, piece.utilisation_pct)),
        held_by if piece.held else "",
        *map(_number, of_host),
    )


def _mean(reach: Reach | None) -> str:
    return rounding.fixed(reach.mean, 0) if reach else ""


def _number(value: float | None) -> str:
    return "" if value is None else rounding.fixed(value, 1)
