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
from orchestrator.logs.block import Block, Course, printed
from orchestrator.logs.format import Format

_ZEROS = bytes.maketrans(b"123456789", b"0" * 9)
_SHAPES = 4096
"""That are remembered of a format."""
_FEW = 16
"""Lines of one shape; of fewer it does not pay to compare columns."""
_VALUES = ("clock", "rate", "latency")


class _Layout(NamedTuple):
    """Where steps of one shape have their fields.

    Args:
        fields: cuts all fields out of a step.
        value, values: cut its clock, rate and latency out of a step, or of many at once.
        constant: columns with digits, which are the same in all steps of one writer.
    """

    fields: Struct
    value: Struct
    values: Struct
    constant: tuple[int, ...]
    iteration: range


class Columns:
    """Blocks of lines of one shape, in a text of whole lines."""

    def __init__(self, form: Format, text: bytes) -> None:
        self._form = form
        self._text = text
        self._shapes = b""

    def read(self, at: int, course: Course, line: int) -> Block | None:
        """The steps from ``at`` on, in ``line`` of the log; None where no columns are in order."""
        width = self._text.find(b"\n", at) + 1 - at
        if width < 1 or self._text[at + width - 1 : at + _FEW * width : width] != b"\n" * _FEW:
            return None
        self._shapes = self._shapes or self._text.translate(_ZEROS)
        shape = self._shapes[at : at + width]
        if not self._shapes.startswith(shape * (_FEW - 1), at + width):
            return None
        layout = _layouts(self._form)(shape)
        if layout is None:
            return None
        count = _alike(self._shapes, at, shape)
        text, lines = self._text[at : at + count * width], range(line, line + count)
        if not _says(text, width, layout, course.numbers(count)):
            return None
        names = [name for name in _names(self._form, is_half=False) if name in _VALUES]
        many, view = layout.values, memoryview(text)
        whole = len(text) - len(text) % many.size
        rows = chain(many.iter_unpack(view[:whole]), layout.value.iter_unpack(view[whole:]))
        fields = _fields(names, rows)
        return _block(self._form, text, lines, fields, course)


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


def of_any(form: Format, text: bytes, lines: Sequence[int], course: Course) -> Block | None:
    """The steps that all lines of a text are, in many shapes; None if one is none, or astray."""
    steps, shapes = text.splitlines(True), text.translate(_ZEROS).splitlines(True)
    is_half = form.is_half(text[: text.find(b"\n") + 1])
    if is_half:
        steps, shapes, lines = _pairs(steps), _pairs(shapes), lines[1::2]
    layouts = list(map(_layouts(form), shapes))
    if None in layouts:
        return None
    rows = (it.fields.unpack(step) for it, step in zip(layouts, steps, strict=True) if it)
    fields = _fields(_names(form, is_half=is_half), rows)
    return _block(form, text, lines, fields, course) if _go_on(fields, course) else None


def _pairs(lines: Sequence[bytes]) -> list[bytes]:
    """Every two lines as one; an odd one stays alone, which is no step."""
    return list(map(b"".join, zip_longest(lines[::2], lines[1::2], fillvalue=b"")))


def _go_on(fields: Mapping[str, Sequence[bytes]], course: Course) -> bool:
    """Whether steps have the next iterations, times of one form, and are of one writer."""
    last, iterations = course.last, fields["iteration"]
    return (
        b" ".join(iterations) == printed(course.numbers(len(iterations)))
        and {*fields["rank"], *fields.get("other", ())} == {last.rank}
        and {*fields.get("series", (b"",))} == {last.series}
        and {int(epoch) for epoch in {*fields.get("epoch", (b"0",))}} == {last.epoch}
        and len({stamp and stamp.find(b".") for stamp in fields.get("clock", ())}) < 2
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
    spans, at = {}, 0
    for name in _names(form, is_half=is_half):
        spans[name] = range(*found.span(name)) if found[name] else range(at, at)
        if spans[name].start < at:
            return None
        at = spans[name].stop
    value = _cut([spans[name] for name in spans if name in _VALUES], len(shape))
    values = Struct("=" + value.format[1:] * _FEW)
    writer = chain.from_iterable(spans.get(name, ()) for name in ("rank", "series", "epoch"))
    constant = tuple(place for place in writer if shape[place] == ord("0"))
    fields = _cut(spans.values(), len(shape))
    return _Layout(fields, value, values, constant, spans["iteration"])


def _cut(places: Iterable[range], width: int) -> Struct:
    """What cuts places out of a step."""
    text, at = "=", 0
    for place in places:
        text, at = f"{text}{place.start - at}x{len(place)}s", place.stop
    return Struct(f"{text}{width - at}x")


@cache
def _names(form: Format, *, is_half: bool) -> list[str]:
    """Of the fields of a step, as they follow each other."""
    step = form.two if is_half else form.one
    return re.findall(r"\(\?P<(?!words)(\w+)>(?!\))", step.pattern.decode())


def _fields(names: Sequence[str], rows: Iterable[tuple[bytes, ...]]) -> Mapping[str, list[bytes]]:
    flat = list(chain.from_iterable(rows))  # no row is held: many tuples are work for the collector
    return {name: flat[place :: len(names)] for place, name in enumerate(names)}


def _block(
    form: Format,
    text: bytes,
    lines: Sequence[int],
    fields: Mapping[str, Sequence[bytes]],
    course: Course,
) -> Block | None:
    stamps, rates = fields.get("clock", ()), list(map(float, fields["rate"]))
    if form.pair and "other" in fields:
        stamps = list(map(form.pair.stamp, stamps))
    numbers, latencies_s = course.numbers(len(rates)), list(map(float, fields.get("latency", ())))
    last = form.read(text[text.rfind(b"\n", 0, -1) + 1 : -1], lines[-1]) or course.last._replace(
        stamp=stamps[-1], number=numbers[-1], rate=rates[-1], line=lines[-1]
    )
    stamps = stamps if any(stamps) else ()
    block = Block(form, text, lines, numbers, stamps, rates, latencies_s, last)
    return block if block.goes_on(course.last) else None
