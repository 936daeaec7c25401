"""report.md: a report in the shape of DLPerf's documents, section by section."""

from collections.abc import Iterable, Sequence

from orchestrator.model.log import TrainingLog
from orchestrator.model.problem import Problem
from orchestrator.model.report import Report
from orchestrator.model.result import NOT_NEEDED, Measurement
from orchestrator.report import (
    canary,
    cells,
    gpus,
    groups,
    headline,
    labels,
    machines,
    node_speeds,
    placements,
    rounding,
    verdict,
)
from orchestrator.report.environment import environment
from orchestrator.report.figures import FOLDER, Figure, of_page
from orchestrator.report.figures.machines import NAME
from orchestrator.report.markdown_page import Page, code, escaped, table
from orchestrator.report.method import method
from orchestrator.report.phrases import Language, suffix


def markdown(report: Report, language: Language = "en") -> str:
    """report.md: verdict, result, figures, every trial, then environment and method."""
    page = Page(report, language)
    parts = [f"# {escaped(report.title)}", *_first(page), *_results(page)]
    figures = of_page(page)
    of_machines = [figure for figure in figures if figure.name.startswith(NAME)]
    others = [figure for figure in figures if figure not in of_machines]
    if others:
        parts += [page.heading("figures"), *_figures(page, others)]
    parts += _of_machines(page, of_machines)
    parts += _trials(page)
    if report.published:
        parts += [page.heading("published"), _published(page)]
    not_counted = list(_reasons(page))
    if not_counted:
        parts += [page.heading("not_counted"), "\n".join(not_counted)]
    marks = list(_marks(page))
    if marks:
        parts += [page.heading("marks"), "\n".join(marks)]
    if report.environment:
        parts += [page.heading("environment"), environment(page)]
    parts += [page.heading("method"), method(page)]
    return "\n\n".join(parts) + "\n"


def _of_machines(page: Page, figures: Sequence[Figure]) -> Iterable[str]:
    """Whether they changed meanwhile, in what state they were, and how fast beside one another."""
    if page.report.canary:
        yield from (page.heading("canary"), canary.section(page, page.report.canary))
    states = machines.states(page)
    if states or figures:
        yield from (page.heading("machines"), *states, *_figures(page, figures))
    if page.report.node_speeds.nodes:
        yield from (page.heading("nodes_compared"), node_speeds.compared(page))


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
        if page.report.layout.kind == "groups":
            yield from (page.heading("results"), _unit(page), groups.results(page))
        else:
            by_gpus = page.report.layout.kind == "gpus"
            yield from (page.heading("final"), _unit(page))
            yield gpus.final(page) if by_gpus else placements.final(page)
        yield from (page.heading(labels.of_sureness(page.report)), cells.sureness(page))
    if page.report.lone:
        yield from (page.heading("lone"), _lone(page))


def _unit(page: Page) -> str:
    return page.say("unit", unit=escaped(page.report.unit))


def _trials(page: Page) -> Iterable[str]:
    if not page.report.results:
        return
    if page.report.layout.kind == "groups":
        yield from (page.heading("cases"), groups.cases(page))
        yield from (page.heading("logs"), groups.logs(page))
        yield from (page.heading("all"), groups.every_trial(page))
    else:
        yield from (page.heading("all"), placements.every_trial(page))
    yield from (page.heading("evidence"), cells.evidence(page))


def _published(page: Page) -> str:
    report = page.report
    rows = [
        (
            escaped(report.names.get(result.case, "") or result.case.token),
            escaped(row.batch),
            escaped(row.precision),
            rounding.fixed(result.median, report.layout.decimals),
            cells.printed(row),
            rounding.signed(row.difference(result)),
            escaped(row.source),
        )
        for result in report.results
        for row in report.published_for(result)
    ]
    head = page.heads("case")[0], report.layout.batch
    return table((*head, *page.heads("precision", "measured", *cells.PUBLISHED, "source")), rows)


def _lone(page: Page) -> str:
    rows = [
        (
            str(lone.log.config.get("world_size", "?")),
            str(lone.log.config.get("micro_batch_size", "?")),
            escaped(str(lone.log.config.get("precision", "?"))),
            rounding.fixed(lone.throughput, 2),
            rounding.fixed(lone.log.rate.mean if lone.log.rate else None, 2),
            _rule(page, lone.log),
            escaped(lone.log.fabric.label),
            page.codes(lone.problems),
            str(number),
        )
        for number, lone in enumerate(page.report.lone, 1)
    ]
    head = ("world_size", "batch_size_per_device", *page.heads("precision"), page.report.unit)
    further = page.heads("mean_rate", "rule", "transport", "problems", "log")
    names = (
        f"{number}. {escaped(lone.path)}, sha256 {lone.log.sha256[:12]}"
        for number, lone in enumerate(page.report.lone, 1)
    )
    return "\n\n".join((cells.told((*head, *further), rows), "\n".join(names)))


def _rule(page: Page, log: TrainingLog) -> str:
    """Such as ``clock 25-125``."""
    rule = page.say(f"rule.{log.rule}")
    return f"{rule} {log.window[0]}-{log.window[1]}" if log.window else rule


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
