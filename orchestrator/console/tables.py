"""Lines and tables that fit their terminal: words wrap between words, numbers and names never."""

import itertools
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len

_GAP = "   "
_NUMBERS = re.compile(r"[-+0-9.,:%x/ ]*|n/a")


@dataclass(frozen=True, slots=True)
class Table:
    """A title, the names of columns, and rows of as many cells."""

    title: str
    head: tuple[str, ...]
    rows: Sequence[Sequence[str]]

    def column(self, number: int) -> list[str]:
        return [row[number] for row in self.rows]

    def of(self, numbers: Sequence[int]) -> "Table":
        """Return a table with only these columns."""
        rows = [[row[number] for number in numbers] for row in self.rows]
        return Table(self.title, tuple(self.head[number] for number in numbers), rows)


def wrap(line: str, width: int, further: str = "  ") -> str:
    """Wrap the line between words, with ``further`` before each line after the first."""
    if len(line) <= width:
        return line
    begin = line[: len(line) - len(line.lstrip())]
    pieces = textwrap.wrap(
        line.lstrip(),
        width,
        initial_indent=begin,
        subsequent_indent=f"{begin}{further}",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(pieces)


def drop_empty_columns(table: Table) -> Table:
    return table.of([n for n in range(len(table.head)) if any(table.column(n))])


def drop_columns(table: Table, width: int, spare: Sequence[str]) -> Table | None:
    """Drop the spare columns that must go for no word to break; None if it is too wide still.

    Args:
        width: characters in a line.
        spare: columns that may be hidden, in that order.
    """
    for gone in range(len(spare) + 1):
        kept = [n for n, name in enumerate(table.head) if name not in spare[:gone]]
        narrower = table.of(kept)
        if _measure_table(narrower) <= width:
            return narrower
    return None


def draw(table: Table, width: int) -> Iterator[str]:
    """Yield the lines of the table: numbers on the right, cells wrapped between words."""
    widths = _choose_widths(table, width)
    right = [_is_numbers(table.column(number)) for number in range(len(widths))]
    yield from _row(table.head, widths, right)
    yield _GAP.join("-" * size for size in widths)
    for row in table.rows:
        yield from _row(row, widths, right)
    yield ""


def _row(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> Iterator[str]:
    wraps = [wrap(cell, size, "").split("\n") for cell, size in zip(cells, widths, strict=True)]
    for line in itertools.zip_longest(*wraps, fillvalue=""):
        padded = (
            " " * (size - cell_len(piece)) + piece
            if is_right
            else piece + " " * (size - cell_len(piece))
            for piece, size, is_right in zip(line, widths, right, strict=True)
        )
        yield _GAP.join(padded).rstrip()


def _choose_widths(table: Table, width: int) -> list[int]:
    """Return the width of each column: that of its cells, the widest ones narrowed to fit."""
    least = [_measure_column(table, number) for number in range(len(table.head))]
    widths = [
        max(cell_len(cell) for cell in (name, *table.column(number)))
        for number, name in enumerate(table.head)
    ]
    while sum(widths) + len(_GAP) * (len(widths) - 1) > width:
        widest = max(range(len(widths)), key=lambda n: (widths[n] > least[n], widths[n]))
        widths[widest] -= 1
    return widths


def records(table: Table) -> Iterator[str]:
    """Yield each row as ``name: cell`` lines, for a terminal that is too narrow for columns."""
    for row in table.rows:
        yield ""
        yield from (f"{name}: {cell}" for name, cell in zip(table.head, row, strict=True) if cell)
    yield ""


def _is_numbers(cells: Sequence[str]) -> bool:
    return all(_NUMBERS.fullmatch(cell) for cell in cells)


def _measure_table(table: Table) -> int:
    columns = range(len(table.head))
    gaps = len(_GAP) * (len(table.head) - 1)
    return sum(_measure_column(table, number) for number in columns) + gaps


def _measure_column(table: Table, number: int) -> int:
    """Return a column's minimum width: its longest word, or longest cell if it has numbers."""
    cells = table.column(number)
    whole = cells if _is_numbers(cells) else [word for cell in cells for word in cell.split()]
    return max(map(len, (*whole, *table.head[number].split())), default=0)
