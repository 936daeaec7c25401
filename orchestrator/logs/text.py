"""The bytes of a log as text of whole lines, the same however they arrive."""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator

from orchestrator.logs import tagged

PIECE = 256 * 1024
"""Bytes."""
LONGEST_RECORD = 64 * 1024
"""Bytes; what is longer is somebody else's text."""

_LONGEST = 1024 * 1024
_CONTROL = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\r\n]*(?:\x07|\x1b\\)|[@-Z\\^_])")


Line = tuple[int, bytes]
"""Number and text of a line without its end, or of a part of it up to a carriage return."""


class Raw:
    """The chunks of a log as they pass by, counted and hashed."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = chunks
        self._sha256 = hashlib.sha256()
        self.size_bytes = 0

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._chunks:
            self._sha256.update(chunk)
            self.size_bytes += len(chunk)
            yield chunk

    @property
    def sha256(self) -> str:
        return self._sha256.hexdigest()


def pieces(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in pieces of ``PIECE``, but for the last; no verdict depends on the chunks."""
    rest = b""
    for chunk in chunks:
        rest += chunk
        whole = len(rest) - len(rest) % PIECE
        yield from (rest[at : at + PIECE] for at in range(0, whole, PIECE))
        rest = rest[whole:]
    yield rest


def whole_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Text that ends where a line ends, plain; at last the line that nothing ends, often empty.

    The lines of mpirun's ranks are put together again. A line without an end, such as the hole of
    zeros that copytruncate leaves, comes in parts, each ended by a carriage return.
    """
    rest = b""
    for text in _rejoined(chunks):
        cut = text.rfind(b"\n") + 1 or text.rfind(b"\r") + 1
        if cut:
            yield plain(rest + text[:cut])
            rest = text[cut:]
            continue
        rest += text
        if len(rest) > _LONGEST:
            yield plain(rest[:-LONGEST_RECORD] + b"\r")
            rest = rest[-LONGEST_RECORD:]
    before, end, last = rest.rpartition(b"\r")
    yield from filter(None, [plain(before + end)])
    yield plain(last)


def _rejoined(chunks: Iterable[bytes]) -> Iterator[bytes]:
    ranks = tagged.Rejoined()
    for piece in pieces(chunks):
        yield ranks.feed(piece)
    yield ranks.close()


def plain(text: bytes) -> bytes:
    """The text without terminal control, its lines ended as on Unix."""
    if b"\x1b" in text:
        text = _CONTROL.sub(b"", text)
    if b"\r" in text:  # to look for one byte takes a tenth of the time of looking for two
        text = text.replace(b"\r\n", b"\n")
    return text


def lines_that(concern: Callable[[bytes], object], text: bytes, first: int) -> list[Line]:
    """The lines of a text that concern somebody.

    Args:
        first: number of the text's first line, by line feeds.
    """
    lines = [
        (number, line) for number, line in enumerate(text.split(b"\n"), first) if concern(line)
    ]
    if b"\r" not in text:
        return lines
    parts = ((number, part) for number, line in lines for part in line.split(b"\r"))
    return [(number, part) for number, part in parts if concern(part)]
