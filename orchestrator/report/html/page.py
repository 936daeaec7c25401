"""The sections of report.html, put together.

No script, no picture from elsewhere: the policy in its head forbids them, so that text that was
missed cannot fetch either.
"""

import base64
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from orchestrator import nodeset
from orchestrator.model.report import Report
from orchestrator.report import (
    figures,
    headline,
    layouts,
    machines,
    method,
    tables,
    topology,
    verdict,
)
from orchestrator.report.figures import Figure
from orchestrator.report.html import evidence, style
from orchestrator.report.html.tables import Sources, data, log, table
from orchestrator.report.markdown_page import Page
from orchestrator.report.markup import Element, Style, element, shown
from orchestrator.report.phrases import Language
from orchestrator.report.tables import Table

_LANGUAGE_TAGS: Mapping[Language, str] = {"en": "en", "zh": "zh-Hans"}
_CSS = style.CSS + figures.CSS


@dataclass(frozen=True, slots=True)
class _Section:
    """A part of the page that the contents name."""

    name: str
    title: str
    content: tuple[Element, ...]


def html_page(report: Report, language: Language, sources: Sources) -> str:
    """report.html.

    Args:
        sources: by the paths of logs in the report.
    """
    page = Page(report, language)
    sections = _sections(page, sources)
    root = element(
        "html",
        _head(page),
        element(
            "body",
            element("a", page.say("page.skip"), class_="skip", href="#result"),
            _first(page, sections),
            element("main", map(_section, sections), id="main"),
        ),
        lang=_LANGUAGE_TAGS[language],
    )
    return f"<!DOCTYPE html>\n{root}\n"


def _head(page: Page) -> Element:
    digest = base64.b64encode(hashlib.sha256(_CSS.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", f"{shown(page.report.title)} - {shown(page.report.source)}"),
        element("style", Style(_CSS)),
    )


def _first(page: Page, sections: Iterable[_Section]) -> Element:
    """What a reader sees first: what it is, the verdict, and where, when and by what."""
    said = verdict.sentences(page.report, page.language)
    level = verdict.verdict(page.report).level
    return element(
        "header",
        element("h1", page.report.title),
        element("p", said[0], class_=f"verdict {level}", role="note"),
        (element("p", sentence, class_="verdict marked", role="note") for sentence in said[1:]),
        element(
            "dl",
            (
                element("div", element("dt", fact.name), [_value(fact, v) for v in fact.values])
                for fact in headline.facts(page)
            ),
        ),
        _contents(page, sections),
    )


def _value(fact: headline.Fact, value: str) -> Element:
    return element("dd", element("code", value) if fact.is_code else value)


def _contents(page: Page, sections: Iterable[_Section]) -> Element:
    return element(
        "nav",
        element(
            "ul",
            (element("li", element("a", part.title, href=f"#{part.name}")) for part in sections),
        ),
        aria_label=page.say("page.contents"),
    )


def _sections(page: Page, sources: Sources) -> list[_Section]:
    """Those that have something to show."""
    report = page.report
    found: Iterable[tuple[str, str, Iterable[Element]]] = (
        ("know", "page.know", _know(page)),
        ("result", "page.result", _result(page, sources)),
        ("figures", "figures", _figures(page)),
        ("canary", "canary", _canary(page, sources)),
        ("machines", "machines", _machines(page, sources)),
        ("trials", "page.trials", _trials(page, sources)),
        (
            "published",
            "published",
            [table(page, tables.published(page), sources)] if report.published else (),
        ),
        ("environment", "environment", _environment(page, sources) if report.environment else ()),
        ("method", "method", [element("ul", (_method(page, n) for n in method.lines(page)))]),
        ("findings", "page.findings", _findings(page) if report.environment else ()),
    )
    sections = [_Section(name, page.say(key), tuple(content)) for name, key, content in found]
    return [section for section in sections if section.content]


def _figures(page: Page) -> Iterable[Element]:
    """Two beside one another where there is room."""
    if drawn := figures.of_page(page):
        yield element("div", [_figure(page, figure) for figure in drawn], class_="pair")


def _result(page: Page, sources: Sources) -> Iterable[Element]:
    report, found = page.report, [*layouts.by_gpus(page), *layouts.results(page)]
    if report.results:
        yield element("p", page.say("unit", unit=report.unit))
        found.append(tables.sureness(page))
        found += [layouts.cases(page)] if report.layout.kind == "groups" else []
    yield from (table(page, each, sources) for each in found)
    if report.lone:
        yield table(page, tables.lone(page), sources)
        yield element("ol", (element("li", log(each.path, sources)) for each in report.lone))


def _canary(page: Page, sources: Sources) -> Iterable[Element]:
    if watched := page.report.canary:
        yield element("p", tables.canary_words(page, watched))
        yield table(page, tables.canary(page, watched), sources)
        for trial in watched.trials:
            yield from evidence.proof(page, tables.CANARY, trial, sources)


def _machines(page: Page, sources: Sources) -> Iterable[Element]:
    if states := machines.states(page):
        yield element("p", machines.describe_span(page))
        yield from (table(page, each, sources) for each in states)
    if page.report.node_speeds.nodes:
        yield element("p", page.say("node_speeds"))
        yield table(page, tables.node_speeds(page), sources)


def _trials(page: Page, sources: Sources) -> Iterable[Element]:
    if page.report.results:
        found = [_under(page, "all", each) for each in layouts.trials(page)]
        found += [layouts.logs(page)] if page.report.layout.kind == "groups" else []
        yield from (table(page, each, sources) for each in (*found, tables.evidence(page)))
    yield from evidence.trials(page, sources)


def _under(page: Page, key: str, found: Table) -> Table:
    """A table named by the heading that it stands under as well, unlike any other."""
    heading = page.say(key)
    if found.title == heading:
        return found
    return replace(found, title=page.say("colon").join((heading, found.title)))


def _environment(page: Page, sources: Sources) -> Iterable[Element]:
    yield table(page, tables.environment(page), sources)
    for nodes, text in topology.folded(page.report.topologies):
        title = page.say("topology", names=nodeset.fold(nodes)).replace("`", "")
        meaning = topology.legend(text, page.language)
        lines = (
            element("code", shown(line)) for line in (*text.splitlines(), *meaning.splitlines())
        )
        yield element(
            "details",
            element("summary", title.rstrip(":\N{FULLWIDTH COLON}")),
            element("pre", lines, class_="matrix"),
        )


def _findings(page: Page) -> Iterable[Element]:
    """What checks found of the nodes; a sentence where they found nothing."""
    found = page.report.findings
    if not found:
        yield element("p", page.say("page.no_findings"))
        return
    head = page.heads("code", "severity", "node", "seen", "expected", "fix")
    rows = [(one.code, one.severity, one.node, one.seen, one.expected, one.fix) for one in found]
    yield table(page, Table(page.say("page.findings"), head, rows), {})


def _section(section: _Section) -> Element:
    return element("section", element("h2", section.title, id=section.name), section.content)


def _know(page: Page) -> Iterable[Element]:
    lines = verdict.lines(page.report, page.language)
    if not lines:
        yield element("p", page.say("page.nothing"))
        return
    items = (element("li", element("strong", begin), rest) for begin, rest in lines)
    yield element("ul", items, class_="know")


def _method(page: Page, line: method.Line) -> Element:
    """A line whose names in backquotes are code."""
    values = {
        name: value.replace("`", "'") if isinstance(value, str) else value
        for name, value in line.values.items()
    }
    pieces = page.say(line.key, **values).split("`")
    return element("li", (element("code", p) if n % 2 else p for n, p in enumerate(pieces)))


def _figure(page: Page, figure: Figure) -> Element:
    return element(
        "figure",
        element("figcaption", figure.title, id=f"{figure.name}-caption"),
        element(
            "div",
            figure.inline(),
            class_="wide-content",
            role="region",
            tabindex=0,
            aria_labelledby=f"{figure.name}-caption",
        ),
        element(
            "details",
            element("summary", page.say("figure.data")),
            data(page, Table(figure.title, figure.table.head, figure.table.rows)),
        ),
    )
