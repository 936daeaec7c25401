"""The content of a report as a tree of sections; ``as_markdown`` and ``as_html`` write it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from orchestrator.report.figures.figure import Figure


@dataclass(frozen=True, slots=True)
class Span:
    """Some words of a line or a cell; they may lead to a place of the page, or to a log."""

    text: str
    anchor: str = ""
    log: str = ""
    look: Literal["", "code", "strong"] = ""


Words: TypeAlias = Sequence[Span | str]


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph, to whose ``place`` others may lead; one with a verdict's level stands out."""

    words: Words
    place: str = ""
    level: str = ""


@dataclass(frozen=True, slots=True)
class Facts:
    rows: Sequence[tuple[str, Words]]


@dataclass(frozen=True, slots=True)
class Items:
    items: Sequence[Words]


@dataclass(frozen=True, slots=True)
class Lines:
    """Text in its own lines, such as lines of a log; a matrix keeps its columns."""

    lines: Sequence[str]
    is_matrix: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Heads and cells; the title is empty where that of the section says it."""

    title: str
    head: Sequence[str]
    rows: Sequence[Words]

    def without_empty_columns(self) -> "Table":
        """Leave out the columns in which no row has anything."""
        kept = [
            place
            for place in range(len(self.head))
            if {text(row[place]) for row in self.rows} - {"", "-"}
        ]
        rows = [[row[place] for place in kept] for row in self.rows]
        return replace(self, head=[self.head[place] for place in kept], rows=rows)


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what stands below it; the outermost one is the report."""

    place: str
    title: str
    blocks: Sequence["Block"]


Block: TypeAlias = Paragraph | Facts | Items | Lines | Table | Figure | Section


def text(span: Span | str) -> str:
    return span if isinstance(span, str) else span.text
