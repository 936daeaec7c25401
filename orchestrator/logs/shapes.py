"""Steps read by the shape of their lines: lines that are equal but for their digits mean the same.

One line of a shape is understood, and all others are cut where it has its fields.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, lru_cache, partial
from itertools import zip_longest
from math import isfinite
from struct import Struct
from typing import NamedTuple

from orchestrator.logs import nccl
from orchestrator.logs.block import Block, Course, printed
from orchestrator.logs.format import Format

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


def block(form: Format, text: bytes, lines: Sequence[int], course: Course) -> Block | None:
    """The steps that all lines of a text are, in many shapes; None if one is none, or astray.

    Args:
        lines: the numbers of the lines in the log, and maybe of some behind them.
    """
    width = text.find(b"\n") + 1
    is_half = form.is_half(text[:width])
    if is_half:
        width, lines = text.find(b"\n", width) + 1 or len(text), lines[1::2]
    rows = _rows(form, text, width, is_half=is_half)
    fields = dict(zip(_names(form, is_half=is_half), zip(*rows, strict=True), strict=False))
    if not fields or not _go_on(fields, course):
        return None
    rates, stamps = list(map(float, fields["rate"])), fields.get("clock", ())
    if form.pair and is_half:
        stamps = tuple(map(form.pair.stamp, stamps))
    numbers, latencies_s = course.numbers(len(rates)), list(map(float, fields.get("latency", ())))
    lines = lines[: len(rates)]
    last = form.read(text[text.rfind(b"\n", 0, -1) + 1 : -1], lines[-1]) or course.last._replace(
        stamp=stamps[-1], number=numbers[-1], rate=rates[-1], line=lines[-1]
    )
    stamps = stamps if any(stamps) else ()
    steps = Block(form, text, lines, numbers, stamps, rates, latencies_s, last)
    return steps if steps.goes_on(course.last) else None


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
    cuts, times = zip(*found, strict=True) if len(found) == len(kinds) else ((), ())
    return map(Struct.unpack, cuts, steps) if len({*times}) == 1 else ()


def _pairs(lines: Sequence[bytes]) -> list[bytes]:
    """Every two lines as one; an odd one stays alone, which is no step."""
    return list(map(b"".join, zip_longest(lines[::2], lines[1::2], fillvalue=b"")))


def _go_on(fields: Mapping[str, Sequence[bytes]], course: Course) -> bool:
    """Whether steps have the next iterations, and are of one writer."""
    last, iterations = course.last, fields["iteration"]
    return (
        b" ".join(iterations) == printed(course.numbers(len(iterations)))
        and {*fields["rank"], *fields.get("other", ())} == {last.rank}
        and {*fields.get("series", (b"",))} == {last.series}
        and {*fields.get("epoch", (b"0",))} == {b"%d" % last.epoch}
    )


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
