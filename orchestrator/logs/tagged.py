"""Logs of ``mpirun --tag-output``: the lines of ranks, joined from the pieces that mpirun tags.

mpirun tags every piece that it reads of a rank and every line in it. Where ranks print at the same
time, a piece may end in the middle of a line, and another rank's tag follows on the same line.
Source: orte/mca/iof/base/iof_base_output.c of Open MPI 4; seen with 4.1.4.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

LONGEST = 64 * 1024
"""Bytes that are kept of an unfinished line, at least: the last ones."""
MOST_RANKS = 1024
"""Streams whose lines may be unfinished at the same time."""
_MARK = b"]<std"
_LONGEST_TAG = 100
_TAG = re.compile(rb"\[\d{1,9},\d{1,9}\]<std(?:out|err|diag)>:")
_TIME = re.compile(rb"[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}$")
_TIME_BYTES = 24


class _Tag(NamedTuple):
    """A tag of a rank's stream with the time before it, and where they stand."""

    words: bytes
    rank: bytes
    start: int
    end: int


def _tags(text: bytes) -> Iterator[_Tag]:
    for match in _TAG.finditer(text):
        start = match.start()
        if _TIME.match(text, max(0, start - _TIME_BYTES), start):
            start -= _TIME_BYTES
        yield _Tag(text[start : match.end()], match[0], start, match.end())


class Rejoined:
    """A log's text with the lines of its ranks whole, as it comes in.

    Every line stands where its end stood, with its last piece's tag, so that line numbers stay.
    Text without tags passes as it is.
    """

    def __init__(self) -> None:
        self._open: dict[bytes, bytearray] = {}
        self._rest = b""

    def feed(self, text: bytes) -> bytes:
        """The lines that ``text`` makes whole."""
        text = self._rest + text
        cut = text.rfind(b"\n") + 1
        self._rest = text[cut:]
        whole = text[:cut]
        if self._open or (b"<" in whole and _MARK in whole):  # one byte is found far sooner
            lines = whole.split(b"\n")[:-1]
            whole = b"".join([self._line(line) + b"\n" for line in lines])
        if len(self._rest) > LONGEST:
            whole += self._shorten()
        return whole

    def close(self) -> bytes:
        """What no line feed ends: of several ranks apart by zeros, which no record has."""
        before, last = self._put_aside(self._rest)
        if last:
            self._keep(last.rank, self._rest[last.end :])
        self._rest = b""
        return b"\x00".join(
            filter(None, (before, *(tag + text for tag, text in self._open.items())))
        )

    def _line(self, line: bytes) -> bytes:
        """The line that ends here, without its line feed."""
        if not self._open and line.count(_MARK) < 2:
            return line
        before, last = self._put_aside(line)
        if last is None:
            return line
        return before + last.words + self._open.pop(last.rank, b"") + line[last.end :]

    def _put_aside(self, text: bytes) -> tuple[bytes, _Tag | None]:
        """Keep all pieces but the last; what stands before the first tag, and the last tag."""
        before, last = text, None
        for tag in _tags(text):
            if last:
                self._keep(last.rank, text[last.end : tag.start])
            else:
                before = text[: tag.start]
            last = tag
        return before, last

    def _keep(self, rank: bytes, piece: bytes) -> None:
        """Keep what a rank printed of a line that goes on elsewhere."""
        if rank not in self._open and len(self._open) >= MOST_RANKS:
            return
        line = self._open.setdefault(rank, bytearray())
        line += piece
        if len(line) > 2 * LONGEST:
            del line[:-LONGEST]

    def _shorten(self) -> bytes:
        """Make room in a line without an end; what of it belongs to no rank."""
        before, last = self._put_aside(self._rest)
        if last is None:
            self._rest = self._rest[-LONGEST:]
            return before[:-LONGEST]
        cut = max(last.end, len(self._rest) - _LONGEST_TAG)
        self._keep(last.rank, self._rest[last.end : cut])
        self._rest = last.words + self._rest[cut:]
        return before
