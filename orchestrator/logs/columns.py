"""Lines of one shape, that is equal but for their digits, read by their columns.

They are told by a comparison of bytes and mean the same: one of them is understood, and all are
cut where it has its fields.
"""

import re
from functools import lru_cache
from itertools import chain
from struct import Struct, unpack
from typing import NamedTuple

from orchestrator.logs import nccl
from orchestrator.logs.block import Block, Course, printed
from orchestrator.logs.format import Format

_UNIT = 16
"""Lines that are cut at a time; fewer are no block."""
_LANE, _LANES = 8, 8192
"""Bytes for a number, and how many numbers are reckoned at a time."""
_ZEROS = bytes.maketrans(b"123456789", b"0" * 9)


class _Layout(NamedTuple):
    """Where the lines of one shape have the fields of a step; empty for what is not printed.

    Args:
        stamps: cuts the times out of ``_UNIT`` lines.
        constant: columns in which all lines of a run say the same.
    """

    stamps: Struct
    constant: tuple[int, ...]
    iteration: range
    clock: slice
    rate: slice
    latency: slice


class Columns:
    """Blocks of lines of one shape, in a text of whole lines."""

    def __init__(self, form: Format, text: bytes) -> None:
        self._form = form
        self._text = text
        self._shapes = b""

    def read(self, at: int, course: Course, line: int) -> Block | None:
        """The steps from ``at`` on, in ``line`` of the log; None where no columns are in order."""
        width = self._text.find(b"\n", at) + 1 - at
        if width < 1 or self._text[at + width - 1 : at + _UNIT * width : width] != b"\n" * _UNIT:
            return None
        self._shapes = self._shapes or self._text.translate(_ZEROS)
        shape = self._shapes[at : at + width]
        if not self._shapes.startswith(shape * (_UNIT - 1), at + width):
            return None
        layout = _layout(self._form, shape)
        if layout is None:
            return None
        count = _alike(self._shapes, at, shape)
        text = self._text[at : at + count * width]
        numbers = course.numbers(count)
        last = self._form.read(text[-width:-1], line + count - 1)
        if last is None or not _says(text, width, layout, numbers):
            return None
        stamps, rates = _stamps(text, width, layout), _floats(text, width, layout.rate)
        latencies_s = _floats(text, width, layout.latency) if layout.latency.stop else []
        lines = range(line, line + count)
        block = Block(self._form, text, lines, numbers, stamps, rates, latencies_s, last)
        return block if block.goes_on(course.last) else None


@lru_cache(maxsize=256)
def _layout(form: Format, shape: bytes) -> _Layout | None:
    """The columns of a line with finite numbers; None for all other lines.

    A step with a library's words glued to it is read like a line of its own.
    """
    if b"\r" in shape or nccl.concerns(shape) or form.lost.search(shape):
        return None
    found = form.match(shape)
    if not found or not re.fullmatch(rb"0+(?:\.0+)?", found["rate"]):
        return None
    clock, rate, latency = (
        slice(*found.span(name)) if found[name] else slice(0, 0)
        for name in ("clock", "rate", "latency")
    )
    cut = f"{clock.start}x{clock.stop - clock.start}s{len(shape) - clock.stop}x"
    constant = (*range(*found.span("rank")), *range(*found.span("epoch")))
    iteration = range(*found.span("iteration"))
    return _Layout(Struct("=" + cut * _UNIT), constant, iteration, clock, rate, latency)


def _alike(shapes: bytes, at: int, shape: bytes) -> int:
    """How many lines have ``shape``, from ``at`` on."""
    count, more = 1, 1
    while more:
        if shapes.startswith(shape * more, at + count * len(shape)):
            count += more
            more *= 2
        else:
            more //= 2
    return count


def _says(text: bytes, width: int, layout: _Layout, numbers: range) -> bool:
    """Whether lines have these iterations, and the same in all columns that do not change."""
    expected, digits = printed(numbers), len(layout.iteration)
    if len(expected) != len(numbers) * (digits + 1) - 1:
        return False
    for place in layout.constant:
        if text[place::width].strip(text[place : place + 1]):
            return False
    return all(
        text[place::width] == expected[digit :: digits + 1]
        for digit, place in enumerate(layout.iteration)
    )


def _stamps(text: bytes, width: int, layout: _Layout) -> tuple[bytes, ...]:
    """The times of all lines; empty where none is printed."""
    clock = layout.clock
    if not clock.stop:
        return ()
    whole = len(text) - len(text) % layout.stamps.size
    rest = [text[at : at + width][clock] for at in range(whole, len(text), width)]
    return (*chain.from_iterable(layout.stamps.iter_unpack(text[:whole])), *rest)


def _floats(text: bytes, width: int, place: slice) -> list[float]:
    """The numbers in one place of each line, all of one shape; as ``float`` reads them.

    Those of at most 8 digits are reckoned side by side, in the lanes of one large whole number:
    digits become numbers of 2, of 4, of 8 digits. What is then divided by a power of 10 is rounded
    once, as ``float`` does it, in half of its time.
    """
    shape, count = text[place], len(text) // width
    digits = [at for at, sign in enumerate(shape, place.start) if sign != ord(".")]
    if len(digits) > _LANE or count > _LANES:
        return [float(text[at : at + width][place]) for at in range(0, len(text), width)]
    lanes = bytearray(_LANE * count)
    for lane, at in enumerate(digits, _LANE - len(digits)):
        lanes[lane::_LANE] = text[at::width]
    numbers, (ones, pairs, fours) = int.from_bytes(lanes, "big"), _masks()
    numbers = ((numbers >> 8) & ones) * 10 + (numbers & ones)
    numbers = ((numbers >> 16) & pairs) * 100 + (numbers & pairs)
    numbers = ((numbers >> 32) & fours) * 10_000 + (numbers & fours)
    unit = 10.0 ** len(shape.partition(b".")[2])
    wholes = unpack(f">{count}Q", numbers.to_bytes(_LANE * count, "big"))
    return [whole / unit for whole in wholes]


@lru_cache(maxsize=1)
def _masks() -> tuple[int, int, int]:
    """Of every second digit, of every second pair of them, and of every second four, in lanes."""
    ones, pairs, fours = (
        int.from_bytes(part * _LANES, "big")
        for part in (b"\x00\x0f" * 4, b"\x00\x00\x00\xff" * 2, b"\x00" * 6 + b"\xff" * 2)
    )
    return ones, pairs, fours
