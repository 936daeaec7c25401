"""Tables of a report as values: report.md and report.html write the same heads and cells.

A number is formatted here or in ``layouts`` and ``machines``, once. A column of ours in which
nobody has anything is left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from orchestrator import nodeset
from orchestrator.model.report import PublishedResult
from orchestrator.model.result import Measurement, Result, Watched
from orchestrator.report import codes, labels, rounding
from orchestrator.report.environment import alike
from orchestrator.report.markdown_page import Page
from orchestrator.report.markup import anchor

TRIAL = ("trial", "state", "codes")
EVIDENCE = ("transport", "log", "sha256")
CANARY = "canary"


@dataclass(frozen=True, slots=True)
class Cell:
    """A text that leads somewhere where a format has links.

    Args:
        anchor: a place in the same page.
        log: the path of a log.
    """

    text: str
    anchor: str = ""
    log: str = ""


Row: TypeAlias = Sequence[Cell | str]


@dataclass(frozen=True, slots=True)
class Table:
    """Heads and cells; a row in which only the first cell has text is the title of a group."""

    title: str
    head: Sequence[str]
    rows: Sequence[Row]

    def told(self) -> "Table":
        """Return it without the columns in which no row has anything."""
        kept = [
            place
            for place in range(len(self.head))
            if {words(row[place]) for row in self.rows} - {"", "-"}
        ]
        rows = [[row[place] for place in kept] for row in self.rows]
        return replace(self, head=[self.head[place] for place in kept], rows=rows)


def words(cell: Cell | str) -> str:
    """Return the text of a cell."""
    return cell if isinstance(cell, str) else cell.text


def case_anchor(page: Page, result: Result) -> str:
    """Return the place in report.html of the trials of a case."""
    place = page.report.results.index(result)
    return f"{anchor(labels.of_case(page.report, result))}-{place + 1}"


def trial_anchor(place: str, trial: Measurement) -> str:
    """Return the place in report.html of the lines of a trial of the case at ``place``."""
    return f"{place}-{trial.repeat}"


def lone_anchor(number: int) -> str:
    """Return the place in report.html of the lines of a log that belongs to no case."""
    return f"log-{number}"


def case_cell(page: Page, result: Result) -> Cell:
    """Return the name of a case, which leads to its trials."""
    return Cell(labels.of_case(page.report, result), case_anchor(page, result))


def throughput_cell(page: Page, place: str, trial: Measurement) -> Cell:
    """Return the number of a trial, which leads to its lines where there are any."""
    number = rounding.throughput(page.report, trial.throughput)
    return Cell(number, trial_anchor(place, trial) if trial.evidence else "")


def trial_cells(page: Page, trial: Measurement) -> tuple[str, str, str]:
    """Return repeat, state and codes of a trial: the cells of ``TRIAL``."""
    state = page.say_or(f"state.{trial.state}", trial.state)
    return str(trial.repeat), state, page.codes((*trial.problems, *trial.marks))


def sureness(page: Page) -> Table:
    """Build the table of marks, spread, intervals, transport and published result of each case."""
    keys = ("marks", "spread", "interval", "transport", "speedup_interval")
    head = page.heads("case", *keys, "published", "difference")
    absent = rounding.NONE if any(it.speedup_interval for it in page.report.results) else ""
    rows = [_sure(page, result, absent) for result in page.report.results]
    return Table(page.say(labels.of_sureness(page.report)), head, rows).told()


def _sure(page: Page, result: Result, absent: str) -> Row:
    found, interval = result.statistics, result.speedup_interval
    first = next(iter(page.report.published_for(result)), None)
    return (
        case_cell(page, result),
        page.codes(result.marks),
        rounding.share(found.spread if found else None),
        rounding.interval_words(found, page.language) if found else rounding.NONE,
        result.transport,
        rounding.ends(interval, page.language) if interval else absent,
        _printed(first) if first else "",
        rounding.signed(first.difference(result)) if first else "",
    )


def evidence(page: Page) -> Table:
    """Build the table of what the number of every trial rests on."""
    rows = [
        (case_cell(page, result), str(trial.repeat), *_evidence(trial))
        for result in page.report.results
        for trial in result.trials
    ]
    return Table(page.say("evidence"), page.heads("case", "trial", *EVIDENCE), rows).told()


def _evidence(trial: Measurement) -> tuple[str, Cell, str]:
    """Return transport, log and sha256 of a trial: the cells of ``EVIDENCE``."""
    log = trial.evidence.log if trial.evidence else ""
    return trial.transport, Cell(log, log=log), trial.evidence.sha256[:12] if trial.evidence else ""


def published(page: Page) -> Table:
    """Build the table of every published result of the cases."""
    report = page.report
    rows = [
        (
            Cell(report.names.get(result.case, "") or result.case.token, case_anchor(page, result)),
            row.batch,
            row.precision,
            rounding.throughput(report, result.median),
            _printed(row),
            rounding.signed(row.difference(result)),
            row.source,
        )
        for result in report.results
        for row in report.published_for(result)
    ]
    keys = ("precision", "measured", "published", "difference", "source")
    head = (*page.heads("case"), report.layout.batch, *page.heads(*keys))
    return Table(page.say("published"), head, rows)


def _printed(published: PublishedResult) -> str:
    """Return a published number with its framework and GPUs."""
    return f"{published.throughput} ({published.by})"


def lone(page: Page) -> Table:
    """Build the table of logs that belong to no case, by their numbers in a list below it."""
    rows: list[Row] = [
        (
            *(
                str(each.log.config.get(key, "?"))
                for key in ("world_size", "micro_batch_size", "precision")
            ),
            Cell(rounding.fixed(each.throughput, 2), lone_anchor(number)),
            rounding.fixed(each.log.rate.mean if each.log.rate else None, 2),
            page.say(f"rule.{each.log.rule}")
            + (f" {each.log.window[0]}-{each.log.window[1]}" if each.log.window else ""),
            each.log.fabric.label,
            page.codes(each.problems),
            Cell(str(number), lone_anchor(number)),
        )
        for number, each in enumerate(page.report.lone, 1)
    ]
    head = ("world_size", "batch_size_per_device", *page.heads("precision"), page.report.unit)
    further = page.heads("mean_rate", "rule", "transport", "problems", "log")
    return Table(page.say("page.lone.caption"), (*head, *further), rows).told()


def canary(page: Page, watched: Watched) -> Table:
    """Build the table of a sweep's canary: one case at its start, middle and end."""
    first = next((trial.throughput for trial in watched.trials if trial.throughput), None)
    rows: list[Row] = [
        (
            page.say(f"place.{place}"),
            throughput_cell(page, CANARY, trial),
            rounding.signed(trial.throughput / first - 1 if first and trial.throughput else None),
            *trial_cells(page, trial)[1:],
            *_evidence(trial),
        )
        for place, trial in zip(watched.places, watched.trials, strict=True)
    ]
    head = (*page.heads("place"), page.report.layout.throughput, *page.heads("to_first"))
    heads = (*head, *page.heads(*TRIAL[1:], *EVIDENCE))
    return Table(page.say("canary"), heads, rows).told()


def canary_words(page: Page, watched: Watched) -> str:
    """Say what the canary is, and when its differences are marked."""
    case = f"{watched.case.placement}, {watched.case.micro_batch_size}, {watched.case.precision}"
    return page.say("watched", case=case, bound=watched.bound)


def node_speeds(page: Page) -> Table:
    """Build the table of the speeds of nodes over that of the median node."""
    found, slow = page.report.node_speeds, codes.explained(page.language, "SLOW-NODE")
    rows = [
        (it.node, str(it.trials), f"{it.speed:.3f}", slow if it.node in found.slow else "")
        for it in found.nodes
    ]
    head = page.heads("node", "trials", "speed", "marks")
    return Table(page.say("nodes_compared"), head, rows).told()


def environment(page: Page) -> Table:
    """Build the table of facts, a column for each group of nodes that are alike."""
    groups = alike(page.report.environment)
    keys = dict.fromkeys(key for _, facts in groups for key in facts)
    rows = [
        (page.say_or(f"fact.{key}", key), *(facts.get(key, "") for _, facts in groups))
        for key in keys
    ]
    head = ("", *(nodeset.fold(nodes) for nodes, _ in groups))
    return Table(page.say("page.environment.caption"), head, rows)
