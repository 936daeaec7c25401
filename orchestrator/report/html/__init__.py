"""report.html: the whole report in one file that asks nobody for anything.

``tables`` and ``evidence`` make its parts, ``style`` says how it looks. No script, no picture from
elsewhere: the policy in its head forbids them, so that text that was missed cannot fetch either.
"""

import base64
import hashlib
from collections.abc import Iterable, Mapping

from orchestrator.model.report import LogSource, Report
from orchestrator.report import figures, headline, machines, method, verdict
from orchestrator.report.figures import Figure
from orchestrator.report.html import evidence, style, tables
from orchestrator.report.markdown_page import Page
from orchestrator.report.markup import Element, Style, element, shown
from orchestrator.report.phrases import Language

_LANGUAGE_TAGS: Mapping[Language, str] = {"en": "en", "zh": "zh-Hans"}
_CSS = style.CSS + figures.CSS


def html_page(report: Report, language: Language, sources: Mapping[str, LogSource]) -> str:
    """report.html.

    Args:
        sources: by the paths of logs in the report.
    """
    page = Page(report, language)
    root = element(
        "html",
        _head(page),
        element(
            "body",
            element("a", page.say("page.skip"), class_="skip", href="#result"),
            _first(page),
            element("main", _sections(page, sources), id="main"),
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


def _first(page: Page) -> Element:
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
        _contents(page),
    )


def _value(fact: headline.Fact, value: str) -> Element:
    return element("dd", element("code", value) if fact.is_code else value)


def _contents(page: Page) -> Element:
    return element(
        "nav",
        element(
            "ul",
            (element("li", element("a", title, href=f"#{name}")) for name, title in _names(page)),
        ),
        aria_label=page.say("page.contents"),
    )


def _names(page: Page) -> Iterable[tuple[str, str]]:
    report = page.report
    yield "know", page.say("page.know")
    yield "result", page.say("page.result")
    yield "figures", page.say("figures")
    if report.canary:
        yield "canary", page.say("canary")
    if machines.known(page) or report.node_speeds.nodes:
        yield "machines", page.say("machines")
    yield "trials", page.say("page.trials")
    if report.published:
        yield "published", page.say("published")
    if report.environment:
        yield "environment", page.say("environment")
    yield "method", page.say("method")
    if report.environment:
        yield "findings", page.say("page.findings")


def _sections(page: Page, sources: Mapping[str, LogSource]) -> Iterable[Element]:
    names, drawn = dict(_names(page)), figures.of_page(page)
    wired = [figure for figure in drawn if figure.name.startswith("topology")]
    content: Mapping[str, Iterable[Element]] = {
        "know": _know(page),
        "result": tables.results(page),
        "figures": [_figure(page, figure) for figure in drawn if figure not in wired],
        "canary": evidence.canary(page, sources),
        "machines": tables.machines(page),
        "trials": evidence.trials(page, sources),
        "published": tables.published(page),
        "environment": [*tables.environment(page), *(_figure(page, figure) for figure in wired)],
        "method": [element("ul", (_method(page, line) for line in method.lines(page)))],
        "findings": tables.findings(page),
    }
    for name, title in names.items():
        yield element("section", element("h2", title, id=name), content[name])


def _know(page: Page) -> Iterable[Element]:
    lines = verdict.items(page.report, page.language)
    if not lines:
        yield element("p", page.say("page.nothing"))
        return
    yield element("ul", (element("li", line) for line in lines), class_="know")


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
            tables.table(page, figure.title, figure.table.head, figure.table.rows),
        ),
    )
