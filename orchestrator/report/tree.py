"""The content of a report as a tree of sections; ``as_markdown`` and ``as_html`` write it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from orchestrator.report.figures.figure import Figure

Look: TypeAlias = Literal["", "code", "strong"]


@dataclass(frozen=True, slots=True)
class Span:
    """Some words of a line or a cell.

    Args:
        anchor: a place of the same page that they lead to, where a format has links.
        log: the path of the log that they lead to.
    """

    text: str
    anchor: str = ""
    log: str = ""
    look: Look = ""


Words: TypeAlias = Sequence[Span | str]
Row: TypeAlias = Sequence[Span | str]


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph; other places of the page may lead to ``place``."""

    words: Words
    place: str = ""


@dataclass(frozen=True, slots=True)
class Notes:
    """Sentences that stand out, each with the level of a verdict."""

    sentences: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Facts:
    """Names with their values."""

    rows: Sequence[tuple[str, Words]]


@dataclass(frozen=True, slots=True)
class Items:
    """A list, with numbers from 1 if it is ordered."""

    items: Sequence[Words]
    is_ordered: bool = False


@dataclass(frozen=True, slots=True)
class Lines:
    """Text in its own lines, such as lines of a log; a matrix keeps its columns."""

    lines: Sequence[str]
    is_matrix: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Heads and cells; a row in which only the first cell has text is the title of a group.

    Args:
        title: a caption where the section is called otherwise.
    """

    title: str
    head: Sequence[str]
    rows: Sequence[Row]

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
    """A heading and what stands below it.

    Args:
        place: its name among the places of a page, unlike any other.
    """

    place: str
    title: str
    blocks: Sequence["Block"]


Block: TypeAlias = Paragraph | Notes | Facts | Items | Lines | Table | Figure | Section


@dataclass(frozen=True, slots=True)
class Document:
    """A whole report: title, what comes before the first heading, and sections."""

    title: str
    front: Sequence[Block]
    sections: Sequence[Section] = field(default=())


def text(span: Span | str) -> str:
    """Return the words of a span."""
    return span if isinstance(span, str) else span.text


def section(place: str, title: str, blocks: Iterable[Block]) -> Iterable[Section]:
    """Yield a section unless it is empty."""
    if found := tuple(blocks):
        yield Section(place, title, found)
