"""Every trial in report.html, with the lines of its log that its number stands on."""

from collections.abc import Iterable, Mapping

from orchestrator.model.problem import Problem
from orchestrator.model.report import LogSource
from orchestrator.model.result import Measurement, Result, Watched
from orchestrator.report import labels, rounding
from orchestrator.report.html import tables
from orchestrator.report.markdown_page import Page
from orchestrator.report.markup import Child, Element, element, link

Sources = Mapping[str, LogSource]
CANARY = "canary"


def trials(page: Page, sources: Sources) -> Iterable[Element]:
    """A part per case, then one for the logs that belong to none."""
    for result in page.report.results:
        yield from _case(page, result, sources)
    for number, lone in enumerate(page.report.lone):
        yield element("h3", lone.path, id=tables.lone_anchor(number))
        yield from _lines(page, lone.path, lone.log.sha256, sources)
        yield from _reasons(page, lone.problems)


def canary(page: Page, sources: Sources) -> Iterable[Element]:
    """What the canary gave at its places, each with its log."""
    for watched in [page.report.canary] if page.report.canary else []:
        yield from _watched(page, watched, sources)


def _watched(page: Page, watched: Watched, sources: Sources) -> Iterable[Element]:
    case = f"{watched.case.placement}, {watched.case.micro_batch_size}, {watched.case.precision}"
    caption = page.say("watched", case=case, bound=watched.bound)
    rows: list[tables.Row] = [
        (page.say(f"place.{place}"), *_row(page, trial, CANARY, sources)[1:])
        for place, trial in zip(watched.places, watched.trials, strict=True)
    ]
    head = (*page.heads("place"), *_heads(page)[1:])
    yield tables.table(page, caption, *tables.filled(head, rows))
    for trial in watched.trials:
        yield from _proof(page, trial, _name(CANARY, trial), sources)


def _heads(page: Page) -> tuple[str, ...]:
    further = page.heads("state", "codes", "transport", "evidence")
    return (*page.heads("trial"), page.report.unit, *further)


def _case(page: Page, result: Result, sources: Sources) -> Iterable[Element]:
    label, place = labels.of_case(page.report, result), tables.case_anchor(page, result)
    yield element("h3", label, id=place)
    rows = [_row(page, trial, place, sources) for trial in result.trials]
    caption = page.say("page.trials.caption", case=label)
    yield tables.table(page, caption, *tables.filled(_heads(page), rows))
    for trial in result.trials:
        yield from _proof(page, trial, _name(place, trial), sources)


def _name(place: str, trial: Measurement) -> str:
    return f"{place}-{trial.repeat}"


def _row(page: Page, trial: Measurement, place: str, sources: Sources) -> tables.Row:
    number: tables.Cell = rounding.fixed(trial.throughput, page.report.layout.decimals)
    evidence: tables.Cell = ""
    if trial.evidence:
        number = element("a", number, href=f"#{_name(place, trial)}")
        evidence = _log(sources, trial.evidence.log)
    return (
        str(trial.repeat),
        number,
        page.say_or(f"state.{trial.state}", trial.state),
        page.codes((*trial.problems, *trial.marks)),
        "" if trial.transport == "-" else trial.transport,
        evidence,
    )


def _log(sources: Sources, path: str) -> tables.Cell:
    """The path of a log, which leads to it where it is there."""
    source = sources.get(path)
    return element("a", path, href=link(source.path)) if source and source.path else path


def _proof(page: Page, trial: Measurement, name: str, sources: Sources) -> Iterable[Element]:
    """The lines behind a trial's number, and what was seen of it."""
    inside: list[Element] = []
    if trial.evidence:
        inside += _lines(page, trial.evidence.log, trial.evidence.sha256, sources)
    inside += _reasons(page, (*trial.problems, *trial.marks))
    if inside:
        yield element("details", element("summary", trial.trial), element("div", inside, id=name))


def _lines(page: Page, path: str, sha256: str, sources: Sources) -> Iterable[Element]:
    source = sources.get(path, LogSource(""))
    where: list[Child] = [_log(sources, path)]
    if source.lines:
        numbers = page.say("comma").join(str(number) for number, _ in source.lines)
        where.append(f"{page.say('comma')}{page.say('page.lines')}{page.say('colon')}{numbers}")
    yield element("p", where, element("br"), "sha256 ", element("code", sha256))
    if source.lines:
        lines = (element("code", f"{number}: {text}") for number, text in source.lines)
        yield element("pre", lines)


def _reasons(page: Page, problems: Iterable[Problem]) -> Iterable[Element]:
    items = [
        element("li", page.codes([problem]), page.say("colon"), problem.message)
        for problem in problems
    ]
    if items:
        yield element("ul", items)
