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
from orchestrator.report import sections, tree
from orchestrator.report.figures import figure
from orchestrator.report.markup import Child, Element, clean, element, link
from orchestrator.report.page import Language, Page, read_own
from orchestrator.report.sections import Sources

_NUMBER = re.compile(r"[-+]?[0-9][0-9.,]*(?:%|[x/][0-9]+| \(m?s\)| \(MiB\))?|n/a|[-?]?")
_SHORT = 24
"""Letters of a cell that stays on one line; names of cases leave more room to others."""
_NAME = 16


def html_page(report: Report, language: Language, sources: Sources) -> str:
    page = Page(report, language)
    document = sections.document(page, sources)
    writer = _Writer(page, sources)
    parts = [block for block in document.blocks if isinstance(block, tree.Section)]
    front = [writer.block(block) for block in document.blocks if block not in parts]
    links = [element("li", element("a", part.title, href=f"#{part.place}")) for part in parts]
    css = read_own("page.css") + figure.CSS
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", f"{clean(report.title)} - {clean(report.source)}"),
        element("style", Element(css)),
    )
    body = element(
        "body",
        element("a", page.text("Skip to the result", "跳到结果"), class_="skip", href="#main"),
        element(
            "header",
            element("h1", document.title),
            front,
            element("nav", element("ul", links), aria_label=page.text("Contents", "目录")),
        ),
        element("main", map(writer.block, parts), id="main"),
    )
    root = element("html", head, body, lang="zh-Hans" if language == "zh" else language)
    return f"<!DOCTYPE html>\n{root}\n"


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes blocks below the sections whose titles are its path, from the outermost."""

    page: Page
    sources: Sources
    path: tuple[str, ...] = ()

    def block(self, block: tree.Block) -> Child:
        match block:
            case tree.Section():
                return self._section(block)
            case tree.Paragraph():
                look = f"verdict {block.level}" if block.level else None
                role = "note" if block.level else None
                words = self._words(block.words)
                return element("p", words, id=block.place or None, class_=look, role=role)
            case tree.Facts():
                rows = (
                    element("div", element("dt", name), element("dd", self._words(words)))
                    for name, words in block.rows
                )
                return element("dl", rows)
            case tree.Items():
                items = (element("li", self._words(words)) for words in block.items)
                return element("ul", items)
            case tree.Lines():
                lines = (element("code", clean(line)) for line in block.lines)
                if block.is_matrix:
                    return element("pre", lines, class_="matrix", tabindex=0)
                return element("pre", lines)
            case tree.Table():
                return self._table(block.without_empty_columns())
            case _:
                caption = f"{block.name}-caption"
                return element(
                    "figure",
                    element("figcaption", block.title, id=caption),
                    block.svg(),
                    aria_labelledby=caption,
                )

    def _section(self, section: tree.Section) -> Element:
        inner = replace(self, path=(*self.path, section.title))
        heading = element(f"h{len(self.path) + 2}", section.title, id=section.place)
        blocks: Child = map(inner.block, section.blocks)
        if isinstance(section.blocks[0], figure.Figure):
            blocks = element("div", blocks, class_="pair")
        return element("section", heading, blocks)

    def _table(self, table: tree.Table) -> Element:
        """Write a table; the first cell of a row is its head."""
        looks = [
            _look([tree.text(row[place]) for row in table.rows], place)
            for place in range(len(table.head))
        ]
        heads = (
            element("th", title, scope="col", class_=look) if title else element("td")
            for title, look in zip(table.head, looks, strict=True)
        )
        title = self.page.with_colons(*self.path, *filter(None, [table.title]))
        return element(
            "div",
            element(
                "table",
                element("caption", table.title) if table.title else (),
                element("thead", element("tr", heads)),
                element("tbody", (self._row(row, looks) for row in table.rows)),
            ),
            class_="wide-content",
            role="region",
            tabindex=0,
            aria_label=self.page.with_colons(self.page.text("Table", "表格"), title),
        )

    def _row(self, row: tree.Words, looks: Sequence[str | None]) -> Element:
        name, *cells = zip(map(self._span, row), looks, strict=True)
        first = element("th", name[0], class_=name[1], scope="row")
        return element("tr", first, (element("td", cell, class_=look) for cell, look in cells))

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


def _look(texts: Sequence[str], column: int) -> str | None:
    """Return how a column is set: n for numbers, w for cells that stay on one line."""
    if column and texts and all(map(_NUMBER.fullmatch, texts)):
        return "n"
    most = (_SHORT if column else _NAME) * figure.LETTER * figure.TEXT_PX
    return "w" if all(figure.width(text) <= most for text in texts) else None
