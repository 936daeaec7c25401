"""A report for people, taken apart: tables, lists, and lines of logs, of Markdown and of HTML."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

_SECTIONS = {
    "What does not count, and why": "not counted",
    "不计入结果的试验及原因": "not counted",
    "Marks on what counts": "marks",
    "计入结果但需注意的事项": "marks",
}
_KEPT = frozenset({"h2", "p", "li", "dd", "th", "td", "code", "title"})


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table.

    Args:
        head: of the table; the same list for all rows of one.
        line: that it begins in.
    """

    head: list[str]
    line: int
    cells: list[str]


@dataclass(slots=True)
class Page:
    """What stands on a page.

    Args:
        first: the verdict.
        rows: of all tables.
        items: of lists, each with the section that it stands in.
        proofs: paragraphs, each alone and with every line of a log below it.
        titles: of points in figures.
    """

    first: str = ""
    rows: list[Row] = field(default_factory=list)
    items: list[tuple[str, str]] = field(default_factory=list)
    proofs: list[tuple[str, str]] = field(default_factory=list)
    titles: list[str] = field(default_factory=list)


def of_markdown(content: str) -> Page:
    """A page of Markdown, with escapes undone."""
    page, section = Page(), ""
    head: list[str] = []
    for count, line in enumerate(content.split("\n"), 1):
        cells = list(_cells(line))
        if not cells or not head:
            head = cells
        elif cells[0] != "---":
            page.rows.append(Row(head, count, cells))
        if line.startswith("## "):
            section = _SECTIONS.get(line[3:], line[3:])
        elif line.startswith("- "):
            page.items.append((section, _plain(line[2:])))
        elif line.startswith("> ") and not page.first:
            page.first = _plain(line[2:])
    return page


def _cells(line: str) -> Iterator[str]:
    if line.startswith("| ") and line.endswith(" |"):
        yield from map(_plain, re.split(r" (?<!\\)\| ", line[2:-2] + " "))


def _plain(cell: str) -> str:
    text = re.sub(r"\\([\\`*_\[\]|])", r"\1", cell.strip())
    return text.replace("&lt;", "<").replace("&amp;", "&").strip("*")


def of_html(content: str) -> Page:
    """A page of HTML, or a figure."""
    reader = _Reader()
    reader.feed(content)
    reader.close()
    return reader.page


class _Reader(HTMLParser):
    """Keeps the texts of the elements that say something."""

    def __init__(self) -> None:
        super().__init__()
        self.page = Page()
        self._open: list[tuple[str, str, list[str]]] = []
        self._section = self._above = ""
        self._head: list[str] = []
        self._row: list[str] | None = None
        self._line = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin to keep."""
        named = dict(attrs)
        if tag == "table":
            self._head = []
        elif tag == "tr":
            self._row, self._line = [], self.getpos()[0]
        elif tag in _KEPT:
            self._open.append((tag, named.get("id") or named.get("class") or "", []))

    def handle_data(self, data: str) -> None:
        """Keep for every element that is open."""
        for _, _, texts in self._open:
            texts.append(data)

    def handle_endtag(self, tag: str) -> None:
        """Put what was kept where it belongs."""
        if tag == "tr" and self._row is not None:
            if self._head:
                self.page.rows.append(Row(self._head, self._line, self._row))
            else:
                self._head = self._row
            self._row = None
        elif self._open and self._open[-1][0] == tag:
            _, name, texts = self._open.pop()
            self._put(tag, name, "".join(texts))

    def _put(self, tag: str, name: str, text: str) -> None:
        inside = {of for of, _, _ in self._open}
        if tag in ("th", "td") and self._row is not None:
            self._row.append(text)
        elif tag == "h2":
            self._section = name
        elif tag in ("li", "dd"):
            self.page.items.append((self._section if tag == "li" else "facts", text))
        elif tag == "title":
            self.page.titles.append(text)
        elif tag == "p":
            self._above = text
            self.page.proofs.append((text, ""))
            if name.startswith("verdict"):
                self.page.first = self.page.first or text
        elif tag == "code" and not inside:
            self.page.proofs.append((self._above, text))
