"""Writes a report as one page of HTML that asks nobody for anything.

No script, no picture from elsewhere: the policy in its head forbids them, so that text that was
missed cannot fetch either.
"""

import base64
import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from orchestrator.model.report import Report
from orchestrator.report import figures, sections, style, tree
from orchestrator.report.figures import Figure
from orchestrator.report.figures.scales import LETTER, TEXT_PX, width
from orchestrator.report.markup import Child, Element, clean, element, link
from orchestrator.report.page import Page
from orchestrator.report.phrases import Language
from orchestrator.report.sections import Sources

_CSS = style.CSS + figures.CSS
_NUMBER = re.compile(r"[-+]?[0-9][0-9.,]*(?:%|[x/][0-9]+| \(m?s\)| \(MiB\))?|n/a|[-?]?")
_SHORT = 24
"""Letters of a cell that stays on one line."""


def html_page(report: Report, language: Language, sources: Sources) -> str:
    """Write report.html.

    Args:
        sources: by the paths of logs in the report.
    """
    page = Page(report, language)
    document = sections.document(page, sources)
    writer = _Writer(page, sources)
    links = (
        element("li", element("a", part.title, href=f"#{part.place}")) for part in document.sections
    )
    body = element(
        "body",
        element("a", page.say("page.skip"), class_="skip", href="#main"),
        element(
            "header",
            element("h1", document.title),
            map(writer.block, document.front),
            element("nav", element("ul", links), aria_label=page.say("page.contents")),
        ),
        element("main", map(writer.block, document.sections), id="main"),
    )
    root = element("html", _head(page), body, lang="zh-Hans" if language == "zh" else language)
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
        element("title", f"{clean(page.report.title)} - {clean(page.report.source)}"),
        element("style", Element(_CSS)),
    )


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes blocks.

    Args:
        path: titles of the sections around them, from the outermost.
    """

    page: Page
    sources: Sources
    path: tuple[str, ...] = ()

    def block(self, block: tree.Block) -> Child:
        """Write a block."""
        match block:
            case tree.Section():
                return self._section(block)
            case tree.Paragraph():
                return element("p", self._words(block.words), id=block.place or None)
            case tree.Notes():
                return [
                    element("p", words, class_=f"verdict {level}", role="note")
                    for level, words in block.sentences
                ]
            case tree.Facts():
                rows = (
                    element("div", element("dt", name), element("dd", self._words(words)))
                    for name, words in block.rows
                )
                return element("dl", rows)
            case tree.Items():
                items = (element("li", self._words(words)) for words in block.items)
                return element("ol" if block.is_ordered else "ul", items)
            case tree.Lines():
                lines = (element("code", clean(line)) for line in block.lines)
                if block.is_matrix:
                    return element("pre", lines, class_="matrix", tabindex=0)
                return element("pre", lines)
            case tree.Table():
                return self._table(block)
            case _:
                return self._figure(block)

    def _section(self, section: tree.Section) -> Element:
        inner = replace(self, path=(*self.path, section.title))
        drawn = [it for it in section.blocks if isinstance(it, Figure)]
        content: list[Child] = [
            inner.block(it) for it in section.blocks if not isinstance(it, Figure)
        ]
        if drawn:
            content.append(element("div", map(inner.block, drawn), class_="pair"))
        heading = f"h{len(self.path) + 2}"
        return element("section", element(heading, section.title, id=section.place), content)

    def _figure(self, figure: Figure) -> Element:
        caption = f"{figure.name}-caption"
        return element(
            "figure",
            element("figcaption", figure.title, id=caption),
            figure.inline(),
            aria_labelledby=caption,
        )

    def _table(self, table: tree.Table) -> Element:
        """Write a table whose rows are cards on a phone; the first cell of a row is its head."""
        looks = [_look(table.rows, column) for column in range(len(table.head))]
        heads = (
            element("th", _breakable(title), scope="col", class_=look) if title else element("td")
            for title, look in zip(table.head, looks, strict=True)
        )
        is_named = table.title in self.path
        path = self.path if is_named else (*self.path, table.title)
        return element(
            "div",
            element(
                "table",
                () if is_named else element("caption", table.title),
                element("thead", element("tr", heads)),
                element("tbody", (self._row(row, looks, table.head) for row in table.rows)),
            ),
            class_="wide-content",
            role="region",
            tabindex=0,
            aria_label=self.page.say("page.table", title=self.page.say("colon").join(path)),
        )

    def _row(self, row: tree.Row, looks: Sequence[str | None], heads: Sequence[str]) -> Element:
        tags = ("th", *("td",) * (len(row) - 1))
        cells = (
            element(
                tag,
                self._span(cell),
                class_=look,
                data_head=head,
                scope="row" if tag == "th" else None,
            )
            for tag, cell, look, head in zip(tags, row, looks, heads, strict=True)
        )
        return element("tr", cells)

    def _words(self, words: tree.Words) -> Iterable[Child]:
        return map(self._span, words)

    def _span(self, span: tree.Span | str) -> Child:
        if isinstance(span, str):
            return span
        source = self.sources.get(span.log)
        if source and source.path:
            return element("a", span.text, href=link(source.path))
        if span.anchor:
            return element("a", span.text, href=f"#{span.anchor}")
        return element(span.look, span.text) if span.look else span.text


def _breakable(title: str) -> Child:
    """Return a head that may break behind its underscores, such as ``gpu_num_per_node``."""
    first, *others = re.split("(?<=_)", title)
    return [first, *((element("wbr"), part) for part in others)]


def _look(rows: Sequence[tree.Row], column: int) -> str | None:
    """Return how a column is set: n for numbers, w for cells that stay on one line."""
    texts = [tree.text(row[column]) for row in rows]
    if column and texts and all(map(_NUMBER.fullmatch, texts)):
        return "n"
    return "w" if all(width(text) <= _SHORT * LETTER * TEXT_PX for text in texts) else None
