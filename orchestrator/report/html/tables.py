"""Tables as elements of report.html."""

import re
from collections.abc import Mapping, Sequence

from orchestrator.model.report import LogSource
from orchestrator.report.figures.scales import LETTER, TEXT_PX, width
from orchestrator.report.markdown_page import Page
from orchestrator.report.markup import Element, element, link
from orchestrator.report.tables import Cell, Row, Table, words

Sources = Mapping[str, LogSource]
_NUMBER = re.compile(r"[-+]?[0-9][0-9.,]*(?:%|[x/][0-9]+| \(m?s\)| \(MiB\))?|n/a|[-?]?")
_SHORT = 32
"""Letters of a cell that stays on one line."""


def table(page: Page, found: Table, sources: Sources) -> Element:
    """A table whose rows are cards on a phone; the first cell of a row is its head."""
    return _table(page, found, found.head, sources)


def data(page: Page, found: Table) -> Element:
    """A table of so many rows that it scrolls by itself, on a phone too."""
    return _table(page, found, (None,) * len(found.head), {})


def _table(page: Page, found: Table, labels: Sequence[str | None], sources: Sources) -> Element:
    """A table; ``labels`` say on a phone what a cell is."""
    body = [tuple(row) for row in found.rows]
    looks = [
        "n" if _is_number(body, column) else "w" if _is_short(body, column) else None
        for column in range(len(found.head))
    ]
    return element(
        "div",
        element(
            "table",
            element("caption", found.title),
            element(
                "thead",
                element(
                    "tr",
                    (
                        element("th", title, scope="col", class_=look) if title else element("td")
                        for title, look in zip(found.head, looks, strict=True)
                    ),
                ),
            ),
            element("tbody", (_row(row, looks, labels, sources) for row in body)),
        ),
        class_="wide-content",
        role="region",
        tabindex=0,
        aria_label=page.say("page.table", title=found.title),
    )


def _row(
    row: Row, looks: Sequence[str | None], labels: Sequence[str | None], sources: Sources
) -> Element:
    tags = ("th", *("td",) * (len(row) - 1))
    cells = (
        element(
            tag,
            _cell(cell, sources),
            class_=look,
            data_head=label,
            **({"scope": "row"} if tag == "th" else {}),
        )
        for tag, cell, look, label in zip(tags, row, looks, labels, strict=True)
    )
    return element("tr", cells)


def _cell(cell: Cell | str, sources: Sources) -> Element | str:
    if isinstance(cell, str):
        return cell
    if cell.log:
        return log(cell.log, sources)
    return element("a", cell.text, href=f"#{cell.anchor}") if cell.anchor else cell.text


def log(path: str, sources: Sources) -> Element | str:
    """The path of a log, which leads to it where it is there."""
    source = sources.get(path)
    return element("a", path, href=link(source.path)) if source and source.path else path


def _is_number(rows: Sequence[Row], column: int) -> bool:
    texts = [words(row[column]) for row in rows]
    return bool(texts) and all(_NUMBER.fullmatch(text) for text in texts)


def _is_short(rows: Sequence[Row], column: int) -> bool:
    return all(width(words(row[column])) <= _SHORT * LETTER * TEXT_PX for row in rows)
