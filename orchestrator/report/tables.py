"""Tables of a report as values, the same for every format.

A number is formatted here or in ``layouts`` and ``machines``, once. A column of ours in which
nobody has anything is left out.
"""

from collections.abc import Iterable, Mapping, Sequence

from orchestrator import nodeset, words
from orchestrator.model.report import PublishedResult
from orchestrator.model.result import Measurement, Result, Watched
from orchestrator.report import codes, labels, rounding
from orchestrator.report.markup import anchor
from orchestrator.report.page import Page
from orchestrator.report.tree import Row, Span, Table

TRIAL = ("trial", "state", "codes")
EVIDENCE = ("transport", "nodes_used", "measured_s", "log", "sha256")
CANARY = "canary"
OWN = "hostname"
"""A fact that differs between nodes that are alike."""


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


def case_span(page: Page, result: Result) -> Span:
    """Return the name of a case, which leads to its trials."""
    return Span(labels.of_case(page.report, result), case_anchor(page, result))


def throughput_span(page: Page, place: str, trial: Measurement) -> Span:
    """Return the number of a trial, which leads to its lines where there are any."""
    number = rounding.throughput(page.report, trial.throughput)
    return Span(number, trial_anchor(place, trial) if trial.evidence else "")


def trial_cells(page: Page, trial: Measurement) -> tuple[str, str, str]:
    """Return repeat, state and codes of a trial: the cells of ``TRIAL``."""
    state = page.say_or(f"state.{trial.state}", trial.state)
    return str(trial.repeat), state, page.codes((*trial.problems, *trial.marks))


def glance(page: Page) -> Table:
    """Build the table with a row for each case that says all that its number is worth."""
    report = page.report
    keys = ("interval", "spread", "speedup", "efficiency", "trials", "memory", "transport")
    head = (*page.heads("case"), report.unit, *page.heads(*keys, "marks", "published"))
    rows = [_sure(page, result) for result in report.results]
    return Table(page.say("glance"), head, rows).without_empty_columns()


def _sure(page: Page, result: Result) -> Row:
    report, found = page.report, result.statistics
    first = next(iter(report.published_for(result)), None)
    published = f"{_printed(first)}, {rounding.signed(first.difference(result))}" if first else ""
    return (
        case_span(page, result),
        rounding.throughput(report, result.median),
        rounding.interval_words(found.interval if found else None, page.language),
        rounding.share(found.spread if found else None),
        _with_interval(page, result),
        rounding.share(result.efficiency),
        rounding.of_trials(report, result),
        rounding.memory(result.peak_memory_mib) if result.peak_memory_mib else "",
        result.transport,
        page.codes(result.marks),
        published,
    )


def _with_interval(page: Page, result: Result) -> str:
    interval = result.speedup_interval
    ends = [rounding.interval_words(interval, page.language)] if interval else []
    return page.listed([speedup(page, result), *ends])


def speedup(page: Page, result: Result) -> str:
    """Return a speedup, or what it lacks."""
    if result.speedup is None:
        return page.say("no_baseline") if result.statistics else rounding.NONE
    return rounding.fixed(result.speedup, 2)


def evidence(page: Page) -> Table:
    """Build the table of what the number of every trial rests on."""
    rows = [
        (case_span(page, result), str(trial.repeat), *_evidence(trial))
        for result in page.report.results
        for trial in result.trials
    ]
    return Table(
        page.say("evidence"), page.heads("case", "trial", *EVIDENCE), rows
    ).without_empty_columns()


def _evidence(trial: Measurement) -> Row:
    """Return the cells of ``EVIDENCE``."""
    log = trial.evidence.log if trial.evidence else ""
    return (
        trial.transport,
        nodeset.fold(trial.nodes),
        "" if trial.measured_s is None else rounding.fixed(trial.measured_s, 1),
        Span(log, log=log),
        trial.evidence.sha256[:12] if trial.evidence else "",
    )


def published(page: Page) -> Table:
    """Build the table of every published result of the cases."""
    report = page.report
    rows = [
        (
            case_span(page, result),
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
            Span(rounding.fixed(each.throughput, 2), lone_anchor(number)),
            rounding.fixed(each.log.rate.mean if each.log.rate else None, 2),
            page.say(f"rule.{each.log.rule}")
            + (f" {each.log.window[0]}-{each.log.window[1]}" if each.log.window else ""),
            each.log.fabric.label,
            page.codes(each.problems),
            Span(str(number), lone_anchor(number)),
        )
        for number, each in enumerate(page.report.lone, 1)
    ]
    head = ("world_size", "batch_size_per_device", *page.heads("precision"), page.report.unit)
    further = page.heads("mean_rate", "rule", "transport", "problems", "log")
    return Table(page.say("lone"), (*head, *further), rows).without_empty_columns()


def canary(page: Page, watched: Watched) -> Table:
    """Build the table of a sweep's canary: one case at its start, middle and end."""
    first = next((trial.throughput for trial in watched.trials if trial.throughput), None)
    rows: list[Row] = [
        (
            page.say(f"place.{place}"),
            throughput_span(page, CANARY, trial),
            rounding.signed(trial.throughput / first - 1 if first and trial.throughput else None),
            *trial_cells(page, trial)[1:],
            *_evidence(trial),
        )
        for place, trial in zip(watched.places, watched.trials, strict=True)
    ]
    head = (*page.heads("place"), page.report.layout.throughput, *page.heads("to_first"))
    heads = (*head, *page.heads(*TRIAL[1:], *EVIDENCE))
    return Table(page.say("canary"), heads, rows).without_empty_columns()


def canary_words(page: Page, watched: Watched) -> str:
    """Say what the canary is, and when its differences are marked."""
    cases = [result.case for result in page.report.results]
    case = labels.among([*cases, watched.case], watched.case)
    return page.say("watched", case=case, bound=watched.bound)


def node_speeds(page: Page) -> Table:
    """Build the table of the speeds of nodes over that of the median node."""
    slow = codes.explained(page.language, "SLOW-NODE")
    rows = [
        (it.node, str(it.trials), f"{it.speed:.3f}", slow if it.is_slow else "")
        for it in page.report.node_speeds
    ]
    head = page.heads("node", "trials", "speed", "marks")
    return Table(page.say("nodes_compared"), head, rows).without_empty_columns()


def alike(
    rows: Mapping[str, Mapping[str, str]],
) -> Sequence[tuple[tuple[str, ...], Mapping[str, str]]]:
    """Group nodes whose facts are equal; what differs between such nodes is folded."""
    groups: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for node, facts in rows.items():
        same = tuple((key, _human(key, value)) for key, value in facts.items() if key != OWN)
        groups.setdefault(same, []).append(node)
    return [
        (tuple(nodes), {**_folded(rows, nodes), **dict(same)}) for same, nodes in groups.items()
    ]


def environment(page: Page, groups: Sequence[tuple[tuple[str, ...], Mapping[str, str]]]) -> Table:
    """Build the table of facts, a column for each group of nodes that are alike."""
    keys = dict.fromkeys(key for _, facts in groups for key in facts)
    rows = [
        (page.say_or(f"fact.{key}", key), *(facts.get(key, "") for _, facts in groups))
        for key in keys
    ]
    head = ("", *(nodeset.fold(nodes) for nodes, _ in groups))
    return Table(page.say("environment"), head, rows)


def _human(key: str, value: str) -> str:
    """Return a fact for a person; results.json has its MiB as they are."""
    mib = value.removesuffix(" MiB")
    return words.size(int(mib) << 20) if key == "memory" and mib.isdecimal() else value


def _folded(rows: Mapping[str, Mapping[str, str]], nodes: Iterable[str]) -> dict[str, str]:
    names = [rows[node][OWN] for node in nodes if OWN in rows[node]]
    return {OWN: nodeset.fold(names)} if names else {}
