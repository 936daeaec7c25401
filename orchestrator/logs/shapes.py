"""Steps read by the shape of their lines: lines that are equal but for their digits mean the same.

One line of a shape is understood, and all others are cut where it has its fields.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, lru_cache, partial
from itertools import chain, zip_longest
from math import isfinite
from struct import Struct
from typing import NamedTuple

from orchestrator.logs import nccl
from orchestrator.logs.block import Block
from orchestrator.logs.format import Format, Step

_ZEROS = bytes.maketrans(b"123456789", b"0" * 9)
_SHAPES = 4096
"""That are remembered of a format."""
_Row = tuple[bytes, ...]


class _Layout(NamedTuple):
    """Where steps of one shape have their fields.

    Args:
        fields: cuts all fields out of a step.
        times: what the times of the shape have before their decimals; None without a time.
    """

    fields: Struct
    times: bytes | None


def block(
    form: Format, text: bytes, lines: Sequence[int], before: Step, stride: int
) -> Block | None:
    """The steps that all lines of a text are; None if one is none, or does not go on as expected.

    Args:
        lines: the numbers of the lines in the log, and maybe of some behind them.
        before: the last step before them.
        stride: iterations from one step to the next.
    """
    width = text.find(b"\n") + 1
    is_half = form.is_half(text[:width])
    if is_half:
        width, lines = text.find(b"\n", width) + 1 or len(text), lines[1::2]
    rows = _rows(form, text, width, is_half=is_half)
    flat = list(chain.from_iterable(rows))  # no row is held: many are work for the collector
    names = _names(form, is_half=is_half)
    fields = {name: flat[place :: len(names)] for place, name in enumerate(names)}
    count = len(fields["iteration"])
    numbers = range(before.number + stride, before.number + stride + count * stride, stride)
    if not count or not _go_on(fields, before, numbers):
        return None
    stamps, rates = fields.get("clock", []), list(map(float, fields["rate"]))
    if form.pair and is_half:
        stamps = list(map(form.pair.stamp, stamps))
    if min(rates) <= 0 or not _in_order(form, stamps, before):
        return None
    lines = lines[:count]
    last = form.read(text[text.rfind(b"\n", 0, -1) + 1 : -1], lines[-1]) or before._replace(
        stamp=stamps[-1], number=numbers[-1], rate=rates[-1], line=lines[-1]
    )
    stamps = stamps if any(stamps) else []
    return Block(form, text, lines, numbers, stamps, rates, fields.get("latency", ()), last)


def _rows(form: Format, text: bytes, width: int, *, is_half: bool) -> Iterable[_Row]:
    """The fields of all steps; none if a line is no step, or has a time of another form.

    Args:
        width: of the first step in bytes.
    """
    shapes, layouts = text.translate(_ZEROS), _layouts(form)
    if shapes == shapes[:width] * (len(text) // width):
        layout = layouts(shapes[:width])
        return layout.fields.iter_unpack(text) if layout else ()
    steps, kinds = text.splitlines(True), shapes.splitlines(True)
    if is_half:
        steps, kinds = _pairs(steps), _pairs(kinds)
    found = list(filter(None, map(layouts, kinds)))
    if len(found) < len(kinds) or len({layout.times for layout in found}) > 1:
        return ()
    return (layout.fields.unpack(step) for layout, step in zip(found, steps, strict=True))


def _pairs(lines: Sequence[bytes]) -> list[bytes]:
    """Every two lines as one; an odd one stays alone, which is no step."""
    return list(map(b"".join, zip_longest(lines[::2], lines[1::2], fillvalue=b"")))


def _go_on(fields: Mapping[str, Sequence[bytes]], before: Step, numbers: range) -> bool:
    """Whether steps have the expected iterations, and are of one writer."""
    return (
        b" ".join(fields["iteration"]) == _printed(numbers)
        and {*fields["rank"], *fields.get("other", ())} == {before.rank}
        and {*fields.get("series", (b"",))} == {before.series}
        and {*fields.get("epoch", (b"0",))} == {b"%d" % before.epoch}
    )


@lru_cache(maxsize=16)
def _printed(numbers: range) -> bytes:
    """Numbers as they are expected: to print them takes less time than to read what is there."""
    return (b"%d " * len(numbers) % tuple(numbers))[:-1]


def _in_order(form: Format, stamps: list[bytes], before: Step) -> bool:
    """Whether times of one form, which sort by their bytes, go on from a step before."""
    first = stamps[0] if stamps else b""
    return sorted(stamps) == stamps and not form.goes_back(first, before.stamp)


@cache
def _layouts(form: Format) -> Callable[[bytes], _Layout | None]:
    return lru_cache(_SHAPES)(partial(_layout, form))


def _layout(form: Format, shape: bytes) -> _Layout | None:
    """Where steps of a shape have their fields; None if they are none, or lack a finite number.

    A step with a library's words glued to it is read like a line of its own.
    """
    if b"\r" in shape or nccl.concerns(shape) or form.lost.search(shape):
        return None
    is_half = form.is_half(shape)
    found = form.two.search(shape) if is_half else form.match(shape[:-1])
    if not found or not isfinite(float(found["rate"]) + float(found["latency"] or 0)):
        return None
    cuts, at = "=", 0
    for name in _names(form, is_half=is_half):
        start, stop = found.span(name) if found[name] else (at, at)
        if start < at:
            return None
        cuts, at = f"{cuts}{start - at}x{stop - start}s", stop
    times = found["clock"] and found["clock"].rpartition(b".")[0]
    return _Layout(Struct(f"{cuts}{len(shape) - at}x"), times)


@cache
def _names(form: Format, *, is_half: bool) -> list[str]:
    """Of the fields of a step, as they follow each other."""
    step = form.two if is_half else form.one
    return re.findall(r"\(\?P<(?!words)(\w+)>(?!\))", step.pattern.decode())
