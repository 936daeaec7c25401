"""Lines and tables that fit their terminal: words wrap between words, numbers and names never."""

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from rich import box
from rich import table as rich_table
from rich.text import Text

_GAP = 3  # between two columns, as the box draws it
_NUMBERS = re.compile(r"[-+0-9.,:%x/ ]*|n/a")


@dataclass(frozen=True, slots=True)
class Table:
    """A title, the names of columns, and rows of as many cells."""

    title: str
    head: tuple[str, ...]
    rows: Sequence[Sequence[str]]

    def column(self, number: int) -> list[str]:
        """All cells below a name."""
        return [row[number] for row in self.rows]

    def of(self, numbers: Sequence[int]) -> "Table":
        """The same with these columns alone."""
        rows = [[row[number] for number in numbers] for row in self.rows]
        return Table(self.title, tuple(self.head[number] for number in numbers), rows)


def wrapped(line: str, width: int) -> str:
    """The line in as many as it needs, further in from the second on; no word is broken."""
    begin = line[: len(line) - len(line.lstrip())]
    pieces = textwrap.wrap(
        line.lstrip(),
        width,
        initial_indent=begin,
        subsequent_indent=f"{begin}  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(pieces)


def filled(table: Table) -> Table:
    """The table without empty columns."""
    return table.of([n for n in range(len(table.head)) if any(table.column(n))])


def fitting(table: Table, width: int, spare: Sequence[str]) -> Table | None:
    """The table less the spare columns that must go for no word to break; None if too wide still.

    Args:
        width: characters in a line.
        spare: columns that may be hidden, in that order.
    """
    for gone in range(len(spare) + 1):
        kept = [n for n, name in enumerate(table.head) if name not in spare[:gone]]
        narrower = table.of(kept)
        if _least_width(narrower) <= width:
            return narrower
    return None


def drawn(table: Table) -> rich_table.Table:
    """The table as it is printed; numbers stand right."""
    grid = rich_table.Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for number, name in enumerate(table.head):
        column = table.column(number)
        justify: Literal["left", "right"] = "right" if _is_numbers(column) else "left"
        least = _least(table, number)
        is_whole = least == max(map(len, (name, *column)))  # rich then narrows the others only
        grid.add_column(name, justify=justify, min_width=least, no_wrap=is_whole)
    for row in table.rows:
        grid.add_row(*map(Text, row))
    return grid


def records(table: Table) -> Iterator[str]:
    """Lines for a terminal that is too narrow for columns: each row as ``name: cell`` lines."""
    for row in table.rows:
        yield ""
        yield from (f"{name}: {cell}" for name, cell in zip(table.head, row, strict=True) if cell)
    yield ""


def _is_numbers(cells: Sequence[str]) -> bool:
    return all(_NUMBERS.fullmatch(cell) for cell in cells)


def _least_width(table: Table) -> int:
    columns = range(len(table.head))
    return sum(_least(table, number) for number in columns) + _GAP * len(columns)


def _least(table: Table, number: int) -> int:
    """How narrow a column can be: its longest word, or its longest cell where it holds numbers."""
    cells = table.column(number)
    whole = cells if _is_numbers(cells) else [word for cell in cells for word in cell.split()]
    return max(map(len, (*whole, *table.head[number].split())), default=0)
