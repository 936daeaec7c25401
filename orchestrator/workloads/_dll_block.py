"""Step lines that only go on as expected, read by the block instead of line by line.

Lines of one shape, that is equal but for their digits, are told by a comparison of bytes and
mean the same: one of them is understood, and all are cut at its columns. Whatever is out of the
ordinary is left to the reader of lines.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from struct import Struct
from typing import NamedTuple

from orchestrator.workloads import _dll_line, _nccl
from orchestrator.workloads._dll_line import Step

UNIT = 16
"""Lines; a block is a multiple of them."""

_ZEROS = bytes.maketrans(b"123456789", b"0" * 9)


class Course(NamedTuple):
    """How a run is expected to go on.

    Args:
        stride: iterations from one step to the next.
    """

    last: Step
    stride: int


@dataclass(frozen=True, slots=True)
class Block:
    """Steps that follow each other and the step before them.

    Args:
        end: where they end in the text.
    """

    last: Step
    numbers: range
    stamps: Sequence[bytes]
    rates: Sequence[float]
    end: int

    def inside(self, first: int, last: int, line: int) -> Iterator[Step]:
        """The steps whose iterations lie between these two, the block's first being in ``line``."""
        numbers = self.numbers
        begin = max(0, -(-(first - numbers.start) // numbers.step))
        for row in range(begin, len(numbers)):
            if numbers[row] > last:
                return
            stamp, rate = self.stamps[row], self.rates[row]
            yield Step(self.last.rank, stamp, self.last.epoch, numbers[row], rate, line + row)


class _Layout(NamedTuple):
    """Where the lines of one shape have the fields of a step."""

    cut: Struct
    """Stamp, iteration and rate of ``UNIT`` lines."""
    rank: slice
    epoch: slice
    iteration: slice


def shapes(text: bytes) -> bytes:
    """The text with all digits written as 0."""
    return text.translate(_ZEROS)


@lru_cache(maxsize=256)
def _layout(shape: bytes) -> _Layout | None:
    """The columns of a line with finite numbers; None for all other lines.

    A step with a library's words glued to it is read like a line of its own.
    """
    found = None if _nccl.concerns(shape) else _dll_line.match(shape)
    if not found or _dll_line.is_lost(shape) or not re.fullmatch(rb"0+(?:\.0+)?", found["rate"]):
        return None
    fields, end = "", 0
    for name in ("stamp", "iteration", "rate"):
        begin, stop = found.span(name)
        fields += f"{begin - end}x{stop - begin}s"
        end = stop
    cut = Struct("=" + f"{fields}{len(shape) - end}x" * UNIT)
    rank = slice(*found.span("rank")) if found["rank"] else slice(0, 0)
    return _Layout(cut, rank, slice(*found.span("epoch")), slice(*found.span("iteration")))


def read(text: bytes, shaped: bytes, at: int, course: Course) -> Block | None:
    """The steps from ``at`` on as a block; None where the next lines must be read one by one.

    Args:
        shaped: the text's ``shapes``.
    """
    begin = shaped.index(b"\n", at) + 1
    shape = shaped[at:begin]
    if not shaped.startswith(shape * (UNIT - 1), begin):
        return None
    layout = _layout(shape)
    if layout is None:
        return None
    count = _alike(shaped, at, shape)
    return _checked(text[at : at + count * len(shape)], layout, count, course, at)


def _alike(shaped: bytes, at: int, shape: bytes) -> int:
    """``UNIT`` times a power of 2: lines from ``at`` on that all have ``shape``."""
    count = UNIT
    while shaped.startswith(shape * count, at + count * len(shape)):
        count *= 2
    return count


def _checked(text: bytes, layout: _Layout, count: int, course: Course, at: int) -> Block | None:
    """The block that ``count`` lines of one layout are, if they are in order."""
    width = len(text) // count
    if not _constant(text, width, layout.rank, layout.epoch):
        return None
    fields = tuple(chain.from_iterable(layout.cut.iter_unpack(text)))
    stamps, rates = fields[0::3], list(map(float, fields[2::3]))
    begin = course.last.number + course.stride
    numbers = range(begin, begin + count * course.stride, course.stride)
    first, last = (
        Step(text[layout.rank], stamps[row], int(text[layout.epoch]), numbers[row], rates[row], 0)
        for row in (0, -1)
    )
    # To print what is expected and to compare takes less time than to read what is there.
    if b"%d " * count % tuple(numbers) != b" ".join(fields[1::3]) + b" ":
        return None
    in_order = first.follows(course.last, course.stride) and stamps == tuple(sorted(stamps))
    return Block(last, numbers, stamps, rates, at + len(text)) if in_order and all(rates) else None


def _constant(text: bytes, width: int, *columns: slice) -> bool:
    """Whether all lines say the same in ``columns``."""
    return all(
        len(set(text[column::width])) == 1
        for part in columns
        for column in range(part.start, part.stop)
    )
