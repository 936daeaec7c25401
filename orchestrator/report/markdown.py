"""report.md: a report in the shape of DLPerf's documents, section by section."""

from collections.abc import Iterable, Sequence

from orchestrator.model.problem import Problem
from orchestrator.model.report import Report
from orchestrator.model.result import NOT_NEEDED, Measurement
from orchestrator.report import environment, headline, layouts, machines, tables, verdict
from orchestrator.report.figures import FOLDER, Figure, of_page
from orchestrator.report.markdown_page import Page, code, escaped, table
from orchestrator.report.method import method
from orchestrator.report.phrases import Language, suffix
from orchestrator.report.tables import Table


def markdown(report: Report, language: Language = "en") -> str:
    """Write report.md: verdict, result, figures, every trial, then environment and method."""
    page = Page(report, language)
    parts = [f"# {escaped(report.title)}", *_first(page), *_results(page)]
    if figures := of_page(page):
        parts += [page.heading("figures"), *_figures(page, figures)]
    parts += [*_of_machines(page), *_trials(page)]
    if report.published:
        parts += _section(tables.published(page))
    if not_counted := list(_reasons(page)):
        parts += [page.heading("not_counted"), "\n".join(not_counted)]
    if marks := list(_marks(page)):
        parts += [page.heading("marks"), "\n".join(marks)]
    parts += [*_environment(page), page.heading("method"), method(page)]
    return "\n\n".join(parts) + "\n"


def _section(found: Table, *before: str) -> Iterable[str]:
    """Yield a table below its title."""
    yield from (f"## {escaped(found.title)}", *before, _written(found))


def _written(found: Table) -> str:
    return table(found.head, [[tables.words(cell) for cell in row] for row in found.rows])


def _of_machines(page: Page) -> Iterable[str]:
    """Whether they changed meanwhile, in what state they were, and how fast beside one another."""
    if watched := page.report.canary:
        words = escaped(tables.canary_words(page, watched))
        yield from _section(tables.canary(page, watched), words)
    if states := machines.states(page):
        yield from (page.heading("machines"), machines.describe_span(page), *map(_written, states))
    if page.report.node_speeds.nodes:
        yield from _section(tables.node_speeds(page), page.say("node_speeds"))


def _first(page: Page) -> Iterable[str]:
    """The verdict, what a reader must know, and what was measured where, when and by what."""
    yield "\n>\n".join(
        f"> **{escaped(said)}**" for said in verdict.sentences(page.report, page.language)
    )
    known = verdict.lines(page.report, page.language)
    if known:
        yield "\n".join(f"- **{escaped(begin)}**{escaped(rest)}" for begin, rest in known)
        yield "<!-- -->"  # else both lists were one
    yield "\n".join(_fact(page, fact) for fact in headline.facts(page))


def _fact(page: Page, fact: headline.Fact) -> str:
    values = map(code if fact.is_code else escaped, fact.values)
    return f"- {fact.name}{page.say('colon')}{page.say('comma').join(values)}"


def _figures(page: Page, figures: Sequence[Figure]) -> Iterable[str]:
    """Each below its title."""
    for figure in figures:
        title = escaped(figure.title)
        yield f"**{title}**\n\n![{title}]({FOLDER}/{figure.name}{suffix(page.language)}.svg)"


def _results(page: Page) -> Iterable[str]:
    if page.report.results:
        unit = page.say("unit", unit=escaped(page.report.unit))
        if page.report.layout.kind == "groups":
            for found in layouts.results(page):
                yield from _section(found, unit)
        else:
            yield from (page.heading("final"), unit)
            for found in (wide := layouts.by_gpus(page)):
                yield from (escaped(found.title), _written(found))
            if wide:
                yield page.heading("details")
            yield from _titled(layouts.results(page))
        yield from _section(tables.sureness(page))
    if page.report.lone:
        names = (
            f"{number}. {escaped(lone.path)}, sha256 {lone.log.sha256[:12]}"
            for number, lone in enumerate(page.report.lone, 1)
        )
        yield from (page.heading("lone"), _written(tables.lone(page)), "\n".join(names))


def _titled(found: Iterable[Table]) -> Iterable[str]:
    for each in found:
        yield from (f"### {escaped(each.title)}", _written(each))


def _trials(page: Page) -> Iterable[str]:
    if not page.report.results:
        return
    if page.report.layout.kind == "groups":
        yield from _section(layouts.cases(page))
        yield from _section(layouts.logs(page))
    found = layouts.trials(page)
    yield page.heading("all")
    yield from _titled(found) if len(found) > 1 else map(_written, found)
    yield from _section(tables.evidence(page))


def _environment(page: Page) -> Iterable[str]:
    if facts := page.report.environment:
        yield page.heading("environment")
        are_alike = len(environment.alike(facts)) == 1
        yield environment.listed(page) if are_alike else _written(tables.environment(page))
        yield from environment.topologies(page)


def _reasons(page: Page) -> Iterable[str]:
    report = page.report
    for trial in report.trials:
        for problem in _why_not(trial):
            yield page.reason(escaped(trial.trial), problem)
    for lone in report.lone:
        for problem in lone.problems:
            yield page.reason(escaped(lone.path), problem)


def _why_not(trial: Measurement) -> Iterable[Problem]:
    """Everything that was seen of a trial that does not count."""
    return (
        (*trial.problems, *trial.marks)
        if trial.state not in ("valid", "planned", NOT_NEEDED)
        else ()
    )


def _marks(page: Page) -> Iterable[str]:
    """What a reader should know of numbers that count."""
    for mark in page.report.marks:
        yield page.reason(escaped(page.report.cluster), mark)
    for result in page.report.results:
        for trial in result.trials:
            for mark in trial.marks if trial.state == "valid" else ():
                yield page.reason(escaped(trial.trial), mark)
        for mark in result.marks:
            yield page.reason(result.case.token, mark)
