"""The sections of report.html, put together.

No script, no picture from elsewhere: the policy in its head forbids them, so that text that was
missed cannot fetch either.
"""

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from orchestrator.model.report import LogSource, Report
from orchestrator.report import figures, headline, method, verdict
from orchestrator.report.figures import Figure
from orchestrator.report.figures.throttling import NAME
from orchestrator.report.html import dlperf_tables, evidence, machines, style, tables
from orchestrator.report.markdown_page import Page
from orchestrator.report.markup import Element, Style, element, shown
from orchestrator.report.phrases import Language

_LANGUAGE_TAGS: Mapping[Language, str] = {"en": "en", "zh": "zh-Hans"}
_CSS = style.CSS + figures.CSS


@dataclass(frozen=True, slots=True)
class _Section:
    """A part of the page that the contents name."""

    name: str
    title: str
    content: tuple[Element, ...]


def html_page(report: Report, language: Language, sources: Mapping[str, LogSource]) -> str:
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


def _sections(page: Page, sources: Mapping[str, LogSource]) -> list[_Section]:
    """Those that have something to show."""
    drawn = figures.of_page(page)
    wired = [figure for figure in drawn if figure.name.startswith("topology")]
    watched = [figure for figure in drawn if figure.name.startswith(NAME)]
    elsewhere = (*wired, *watched)
    facts = bool(page.report.environment)
    found: Iterable[tuple[str, str, Iterable[Element]]] = (
        ("know", "page.know", _know(page)),
        ("result", "page.result", _result(page)),
        ("figures", "figures", _figures(page, [one for one in drawn if one not in elsewhere])),
        ("canary", "canary", evidence.canary(page, sources)),
        ("machines", "machines", _machines(page, watched)),
        ("trials", "page.trials", evidence.trials(page, sources)),
        ("published", "published", tables.published(page) if page.report.published else ()),
        ("environment", "environment", _environment(page, wired) if facts else ()),
        ("method", "method", [element("ul", (_method(page, n) for n in method.lines(page)))]),
        ("findings", "page.findings", tables.findings(page) if facts else ()),
    )
    sections = [_Section(name, page.say(key), tuple(content)) for name, key, content in found]
    return [section for section in sections if section.content]


def _figures(page: Page, drawn: Sequence[Figure]) -> Iterable[Element]:
    """Two beside one another where there is room."""
    if drawn:
        yield element("div", [_figure(page, figure) for figure in drawn], class_="pair")


def _result(page: Page) -> Iterable[Element]:
    yield from dlperf_tables.by_gpus(page)
    yield from tables.results(page)
    yield from dlperf_tables.cases(page)


def _machines(page: Page, watched: Sequence[Figure]) -> Iterable[Element]:
    yield from machines.states(page)
    yield from _figures(page, watched)
    yield from machines.node_speeds(page)


def _environment(page: Page, wired: Iterable[Figure]) -> Iterable[Element]:
    yield from tables.environment(page)
    yield from (_figure(page, figure) for figure in wired)
    yield from dlperf_tables.topologies(page)


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
            tables.data(page, figure.title, figure.table.head, figure.table.rows),
        ),
    )
