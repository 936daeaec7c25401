"""The lines of logs that the number of every trial in report.html rests on."""

from collections.abc import Iterable

from orchestrator.model.problem import Problem
from orchestrator.model.report import LogSource
from orchestrator.model.result import Measurement
from orchestrator.report import labels, tables
from orchestrator.report.html.tables import Sources, log
from orchestrator.report.markdown_page import Page
from orchestrator.report.markup import Child, Element, element


def trials(page: Page, sources: Sources) -> Iterable[Element]:
    """A part per case, then one for each log that belongs to none; marks of all stand first."""
    yield from _reasons(page, page.report.marks)
    for result in page.report.results:
        place = tables.case_anchor(page, result)
        yield element("h3", labels.of_case(page.report, result), id=place)
        yield from _reasons(page, result.marks)
        for trial in result.trials:
            yield from proof(page, place, trial, sources)
    for number, lone in enumerate(page.report.lone, 1):
        yield element("h3", lone.path, id=tables.lone_anchor(number))
        yield from _lines(page, lone.path, lone.log.sha256, sources)
        yield from _reasons(page, lone.problems)


def proof(page: Page, place: str, trial: Measurement, sources: Sources) -> Iterable[Element]:
    """The lines behind a trial's number, and what was seen of it."""
    inside: list[Element] = []
    if trial.evidence:
        inside += _lines(page, trial.evidence.log, trial.evidence.sha256, sources)
    inside += _reasons(page, (*trial.problems, *trial.marks))
    if inside:
        content = element("div", inside, id=tables.trial_anchor(place, trial))
        yield element("details", element("summary", trial.trial), content)


def _lines(page: Page, path: str, sha256: str, sources: Sources) -> Iterable[Element]:
    source = sources.get(path, LogSource(""))
    where: list[Child] = [log(path, sources)]
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
