"""Builds the sections of a report, once for every format; a new one is a line in ``_sections``."""

from collections.abc import Iterable, Mapping

from orchestrator import nodeset
from orchestrator.model.problem import Problem
from orchestrator.model.report import LogSource
from orchestrator.model.result import NOT_NEEDED, Measurement
from orchestrator.report import (
    figures,
    headline,
    labels,
    layouts,
    machines,
    method,
    node_facts,
    tables,
    tree,
    verdict,
)
from orchestrator.report.page import Page
from orchestrator.report.tree import Block, Section, Span, section

Sources = Mapping[str, LogSource]
"""Where a page finds its logs, by their paths in the report."""


def document(page: Page, sources: Sources | None) -> tree.Document:
    """Build a report.

    Args:
        sources: None for a format that shows no lines of logs.
    """
    report = page.report
    level = verdict.verdict(report).level
    first, *others = verdict.sentences(report, page.language)
    notes = tree.Notes([(level, first), *(("marked", sentence) for sentence in others)])
    front: list[Block] = [notes]
    if best := headline.sentence(page):
        front.append(tree.Paragraph(best))
    front.append(tree.Facts(list(headline.facts(page))))
    return tree.Document(report.title, front, tuple(_sections(page, sources)))


def _sections(page: Page, sources: Sources | None) -> Iterable[Section]:
    """Yield those that have something to show."""
    report = page.report
    found: Iterable[tuple[str, str, Iterable[Block]]] = (
        ("know", "know", _know(page)),
        ("result", "glance", _glance(page)),
        ("lone", "lone", _lone(page)),
        ("figures", "figures", figures.of_page(page)),
        ("published", "published", [tables.published(page)] if report.published else ()),
        ("canary", "canary", _canary(page)),
        ("machines", "machines", _machines(page)),
        ("nodes", "nodes_compared", _node_speeds(page)),
        *((key, key, blocks) for key, blocks in layouts.sections(page)),
        ("evidence", "evidence", [tables.evidence(page)] if report.trials else ()),
        ("not-counted", "not_counted", _listed(page, _not_counted(page))),
        ("marks", "marks", _listed(page, verdict.marks(report))),
        ("environment", "environment", _environment(page)),
        ("findings", "findings", _findings(page) if report.environment else ()),
        ("method", "method", [tree.Items([*method.lines(page)])]),
    )
    for place, key, blocks in found:
        yield from section(place, page.say(key), blocks)
    if sources is not None:
        yield from section("lines", page.say("lines"), _lines(page, sources))


def _know(page: Page) -> Iterable[Block]:
    lines = verdict.lines(page.report, page.language)
    if lines:
        yield tree.Items([(Span(begin, look="strong"), rest) for begin, rest in lines])
    else:
        yield tree.Paragraph([page.say("nothing")])


def _glance(page: Page) -> Iterable[Block]:
    if page.report.results:
        yield tree.Paragraph([page.say("unit", unit=page.report.unit)])
        yield tables.glance(page)


def _lone(page: Page) -> Iterable[Block]:
    """Yield the logs that belong to no case; the table has their numbers in the list below it."""
    lone = page.report.lone
    if lone:
        yield tables.lone(page)
        yield tree.Items(
            [(Span(it.path, log=it.path), f", sha256 {it.log.sha256[:12]}") for it in lone], True
        )


def _canary(page: Page) -> Iterable[Block]:
    if watched := page.report.canary:
        yield tree.Paragraph([tables.canary_words(page, watched)])
        yield tables.canary(page, watched)


def _machines(page: Page) -> Iterable[Block]:
    if states := machines.states(page):
        yield tree.Paragraph([machines.describe_span(page)])
        yield from states


def _node_speeds(page: Page) -> Iterable[Block]:
    if page.report.node_speeds:
        yield tree.Paragraph([page.say("node_speeds")])
        yield tables.node_speeds(page)


def _listed(page: Page, reasons: Iterable[tuple[str, Problem]]) -> Iterable[Block]:
    """Yield a list of where a problem was seen, its code, and the message as it was."""
    colon = page.say("colon")
    items = [[colon.join((where, page.codes([it]), it.message))] for where, it in reasons]
    if items:
        yield tree.Items(items)


def _not_counted(page: Page) -> Iterable[tuple[str, Problem]]:
    for trial in page.report.trials:
        if trial.state not in ("valid", "planned", NOT_NEEDED):
            yield from ((trial.trial, problem) for problem in (*trial.problems, *trial.marks))
    for lone in page.report.lone:
        yield from ((lone.path, problem) for problem in lone.problems)


def _lines(page: Page, sources: Sources) -> Iterable[Block]:
    """Yield the lines of logs that numbers stand on, in a section for each case."""
    report = page.report
    for result in report.results:
        place = tables.case_anchor(page, result)
        blocks = (it for trial in result.trials for it in _proof(page, place, trial, sources))
        title = labels.of_case(report, result)
        yield Section(place, title, [*blocks] or [tree.Paragraph([page.say("no_log")])])
    if watched := report.canary:
        blocks = (
            it for trial in watched.trials for it in _proof(page, tables.CANARY, trial, sources)
        )
        yield from section(tables.CANARY + "-lines", page.say("canary"), blocks)
    for number, lone in enumerate(report.lone, 1):
        lines = _log(page, lone.path, lone.log.sha256, sources)
        yield Section(tables.lone_anchor(number), lone.path, [*lines])


def _proof(page: Page, place: str, trial: Measurement, sources: Sources) -> Iterable[Block]:
    if trial.evidence:
        yield tree.Paragraph([Span(trial.trial, look="strong")], tables.trial_anchor(place, trial))
        yield from _log(page, trial.evidence.log, trial.evidence.sha256, sources)


def _log(page: Page, path: str, sha256: str, sources: Sources) -> Iterable[Block]:
    source = sources.get(path, LogSource(""))
    where: list[Span | str] = [Span(path, log=path)]
    if source.lines:
        numbers = page.listed(str(number) for number, _ in source.lines)
        where.append(f"{page.say('comma')}{page.say('page.lines')}{page.say('colon')}{numbers}")
    yield tree.Paragraph([*where, f"{page.say('comma')}sha256 ", Span(sha256, look="code")])
    if source.lines:
        yield tree.Lines([f"{number}: {text}" for number, text in source.lines])


def _environment(page: Page) -> Iterable[Block]:
    if not page.report.environment:
        return
    groups = tables.alike(page.report.environment)
    if len(groups) == 1:
        ((nodes, facts),) = groups
        names = nodeset.fold(nodes)
        yield tree.Paragraph([page.say("nodes", count=len(nodes), names=names)])
        yield tree.Facts([(page.say_or(f"fact.{key}", key), [it]) for key, it in facts.items()])
    else:
        yield tables.environment(page, groups)
    for text, same in node_facts.by_topology(page.report.topologies).items():
        if text:
            names = nodeset.fold(same)
            yield tree.Paragraph(method.with_code(page, "topology", {"names": names}))
            yield tree.Lines(text.splitlines(), is_matrix=True)


def _findings(page: Page) -> Iterable[Block]:
    """Yield what checks found of the nodes, or that they found nothing."""
    found = page.report.findings
    if found:
        head = page.heads("code", "severity", "node", "seen", "expected", "fix")
        rows = [(it.code, it.severity, it.node, it.seen, it.expected, it.fix) for it in found]
        yield tree.Table(page.say("findings"), head, rows)
    else:
        yield tree.Paragraph([page.say("no_findings")])
