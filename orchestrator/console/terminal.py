"""Standard output and error as rich writes to them, and lines and tables that fit their width.

Words wrap between words; numbers and names never.
"""

import contextlib
import io
import itertools
import os
import re
import sys
import textwrap
from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

_GAP = "   "
_NUMBERS = re.compile(r"[-+0-9.,:%x/ ]*|n/a")

Column = tuple[str, Sequence[str]]
"""A name and the cells below it."""


class _Quiet(io.TextIOWrapper):
    """Standard error whose reader may be gone, which must not stop a sweep."""

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError, ValueError):
            return super().write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            super().flush()


class Stream(Console):
    """A stream to people; we, not rich, handle a reader that has gone away."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError

    def say(self, text: str) -> None:
        """Print lines as they are."""
        self.print(Text(text))


def output() -> Stream:
    """Open standard output."""
    return Stream(highlight=False, soft_wrap=True)


def progress() -> Stream:
    """Open standard error."""
    raw = os.fdopen(2, "wb", closefd=False)
    quiet = _Quiet(raw, encoding=sys.stderr.encoding, errors="replace")
    return Stream(file=quiet, highlight=False, soft_wrap=True)


def wrap(line: str, width: int, further: str = "  ") -> list[str]:
    """Wrap the line between words, with ``further`` before each line after the first."""
    begin = line[: len(line) - len(line.lstrip())]
    pieces = textwrap.wrap(
        line.lstrip(),
        width,
        initial_indent=begin,
        subsequent_indent=f"{begin}{further}",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return pieces if len(line) > width else [line]


def render(
    columns: Sequence[Column], width: int, spare: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Return the lines of a table without its empty columns, and which of ``spare`` are hidden.

    Where words do not fit into ``width``, rows become lines of ``name: cell``.
    """
    full = [(name, cells) for name, cells in columns if any(cells)]
    for gone in range(len(spare) + 1):
        shown = [column for column in full if column[0] not in spare[:gone]]
        if sum(map(_least, shown)) + len(_GAP) * (len(shown) - 1) <= width:
            hidden = [column[0] for column in full if column not in shown]
            return [*_draw(shown, width), ""], hidden
    names = [name for name, _ in full]
    lines: list[str] = []
    for row in zip(*(cells for _, cells in full), strict=True):
        lines.append("")
        for name, cell in zip(names, row, strict=True):
            lines += wrap(f"{name}: {cell}", width) if cell else []
    return [*lines, ""], []


def _draw(columns: Sequence[Column], width: int) -> Iterator[str]:
    """Yield lines: numbers on the right, the widest columns narrowed until all of them fit."""
    least = [_least(column) for column in columns]
    widths = [max(map(cell_len, (name, *cells))) for name, cells in columns]
    while sum(widths) + len(_GAP) * (len(widths) - 1) > width:
        widest = max(range(len(widths)), key=lambda n: (widths[n] > least[n], widths[n]))
        widths[widest] -= 1
    right = [_is_numbers(cells) for _, cells in columns]
    rule = ["-" * size for size in widths]
    rows = zip(
        *((name, dashes, *cells) for (name, cells), dashes in zip(columns, rule, strict=True)),
        strict=True,
    )
    for row in rows:
        wrapped = [wrap(cell, size, "") for cell, size in zip(row, widths, strict=True)]
        for line in itertools.zip_longest(*wrapped, fillvalue=""):
            padded = []
            for piece, size, is_right in zip(line, widths, right, strict=True):
                blank = " " * (size - cell_len(piece))
                padded.append(blank + piece if is_right else piece + blank)
            yield _GAP.join(padded).rstrip()


def _is_numbers(cells: Sequence[str]) -> bool:
    return all(_NUMBERS.fullmatch(cell) for cell in cells)


def _least(column: Column) -> int:
    """Return a column's minimum width: its longest word, or longest cell if it has numbers."""
    name, cells = column
    whole = cells if _is_numbers(cells) else [word for cell in cells for word in cell.split()]
    return max(map(len, (*whole, *name.split())), default=0)
