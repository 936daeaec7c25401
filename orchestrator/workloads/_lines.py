"""Lines of a log with their numbers, however its bytes arrive."""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from orchestrator.launchers import tagged
from orchestrator.workloads import _dll_line, _pieces

TAG = rb"(?:[^\[]{0,80}\[\d{1,9},\d{1,9}\]<std(?:out|err)>:)?[ \t]*"
"""What may stand before a line of a header: mpirun's tag, with or without a time, and blanks."""
NUMBER = rb"(?:\d{1,15}\.\d{%d}|-?nan|-?inf)"
"""A number that is printed with so many decimals; with fewer it was cut."""


class Line(NamedTuple):
    """A line without its end and without terminal control; ``whole`` if it has an end."""

    number: int
    text: bytes
    whole: bool


class Lines:
    """The lines of a log that concern a reader; after the last one, its size and its hash.

    Holds two pieces of the log. Of text without any line feed only the end is kept.
    """

    def __init__(self, chunks: Iterable[bytes], concerns: Callable[[bytes], bool]) -> None:
        self._chunks = chunks
        self._concerns = concerns
        self._sha256 = hashlib.sha256()
        self.size_bytes = 0

    def __iter__(self) -> Iterator[Line]:
        number, rest = 1, b""
        for piece in self._rejoined():
            text = rest + piece
            cut = text.rfind(b"\n") + 1 or text.rfind(b"\r") + 1
            yield from self._whole(text[:cut], number)
            number += text.count(b"\n", 0, cut)
            rest = text[cut:][-_dll_line.LONGEST_RECORD :]
        before, end, last = rest.rpartition(b"\r")
        yield from self._whole(before + end, number)
        last = _dll_line.plain(last)
        if self._concerns(last):
            yield Line(number, last, whole=False)

    def _rejoined(self) -> Iterator[bytes]:
        """The log in pieces, the lines of mpirun's ranks put together again."""
        ranks = tagged.Rejoined()
        for piece in _pieces.even(self._chunks):
            self._sha256.update(piece)
            self.size_bytes += len(piece)
            yield ranks.feed(piece)
        yield ranks.close()

    def _whole(self, text: bytes, number: int) -> Iterator[Line]:
        text = _dll_line.plain(text)
        if not self._concerns(text):
            return
        for row, line in enumerate(text.split(b"\n")):
            for part in line.split(b"\r") if self._concerns(line) else ():
                if self._concerns(part):
                    yield Line(number + row, part, whole=True)

    @property
    def sha256(self) -> str:
        return self._sha256.hexdigest()


def backwards(block: bytes, word: bytes) -> Iterator[bytes]:
    """The ended lines of a block that hold ``word``, the last one first."""
    text = _dll_line.plain(block).replace(b"\r", b"\n")
    end = text.rfind(b"\n")
    while end > 0 and (at := text.rfind(word, 0, end)) >= 0:
        begin = text.rfind(b"\n", 0, at) + 1
        yield text[begin : text.index(b"\n", at)]
        end = begin - 1
