"""The bytes of a log as whole lines, the same however they arrive.

``mpirun --tag-output`` tags every piece that it reads of a rank and every line in it. Where ranks
print at the same time, a piece may end in the middle of a line, and another rank's tag follows on
the same line. Source: orte/mca/iof/base/iof_base_output.c of Open MPI 4; seen with 4.1.4.
"""

import re
from collections.abc import Callable, Iterable, Iterator

PIECE = 256 * 1024
"""Bytes."""
LONGEST_RECORD = 64 * 1024
"""Bytes; a longer line is foreign text."""
_LONGEST_LINE = 1024 * 1024

_CONTROL = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\r\n]*(?:\x07|\x1b\\)|[@-Z\\^_])")
_MARK = b"]<std"
# Thu Dec 17 18:27:52 2020[1,0]<stdout>:
_TAG = re.compile(
    rb"(?:[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4})?"
    rb"(\[\d{1,9},\d{1,9}\]<std(?:out|err|diag)>:)"
)


def _cut_pieces(chunks: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    for chunk in chunks:
        rest += chunk
        whole = len(rest) - len(rest) % PIECE
        yield from (rest[at : at + PIECE] for at in range(0, whole, PIECE))
        rest = rest[whole:]
    yield rest


def whole_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield text that ends where a line ends, and last the line that nothing ends, often empty.

    The text has no terminal control, lines end as on Unix, and the lines of mpirun's ranks are
    whole. A line of more than 1 MiB, such as the hole of zeros that copytruncate leaves, comes in
    parts, each ended by a carriage return.
    """
    ranks, rest = RankLines(), b""
    for piece in _cut_pieces(chunks):
        cut = piece.rfind(b"\n") + 1 or piece.rfind(b"\r") + 1
        if cut:
            yield _remove_control(ranks.join(rest + piece[:cut]))
            rest = piece[cut:]
            continue
        rest += piece
        if len(rest) > _LONGEST_LINE:
            yield _remove_control(rest[:-LONGEST_RECORD] + b"\r")
            rest = rest[-LONGEST_RECORD:]
    before, end, last = ranks.close(rest).rpartition(b"\r")
    if end:
        yield _remove_control(before + end)
    yield _remove_control(last)


def _remove_control(text: bytes) -> bytes:
    if b"\x1b" in text:
        text = _CONTROL.sub(b"", text)
    if b"\r" in text:  # looking for one byte takes a tenth of the time of looking for two
        text = text.replace(b"\r\n", b"\n")
    return text


def select_lines(
    concerns: Callable[[bytes], object], text: bytes, first: int
) -> list[tuple[int, bytes]]:
    """Return the lines that ``concerns`` accepts with their numbers, cut at carriage returns.

    Args:
        first: number of the text's first line, by line feeds.
    """
    lines = [it for it in enumerate(text.split(b"\n"), first) if concerns(it[1])]
    if b"\r" not in text:
        return lines
    parts = ((number, part) for number, line in lines for part in line.split(b"\r"))
    return [(number, part) for number, part in parts if concerns(part)]


class RankLines:
    """Joins the lines of mpirun's ranks from the pieces that mpirun tags.

    A line takes the place where its end is printed, with its last piece's tag, so that line numbers
    stay.
    """

    def __init__(self) -> None:
        self._open: dict[bytes, bytearray] = {}
        """Unfinished lines by tag."""

    def join(self, text: bytes) -> bytes:
        """Return the lines that end in ``text``; keep what ranks printed of other lines."""
        if not self._open and not (b"<" in text and _MARK in text):  # one byte is found far sooner
            return text
        *lines, rest = text.split(b"\n")
        return b"\n".join([*map(self._finish, lines), rest])

    def _finish(self, line: bytes) -> bytes:
        if not self._open and line.count(_MARK) < 2:
            return line
        before, tag, last = self._keep_pieces(line)
        return before + tag + self._open.pop(tag, b"") + last

    def close(self, rest: bytes) -> bytes:
        """Return all unfinished lines, separated by zeros, which no record contains."""
        before, tag, last = self._keep_pieces(rest)
        if tag:
            self._keep(tag, last)
        return b"\x00".join(filter(None, (before, *(tag + it for tag, it in self._open.items()))))

    def _keep_pieces(self, text: bytes) -> tuple[bytes, bytes, bytes]:
        """Keep all pieces but the last; return the text before them, the last tag and piece."""
        before, *pieces = _TAG.split(text)
        for tag, piece in zip(pieces[:-2:2], pieces[1:-2:2], strict=True):
            self._keep(tag, piece)
        return (before, pieces[-2], pieces[-1]) if pieces else (before, b"", b"")

    def _keep(self, tag: bytes, piece: bytes) -> None:
        # A rank's progress bar may go on for hours without a line feed.
        line = self._open.setdefault(tag, bytearray())
        line += piece
        if len(line) > 2 * LONGEST_RECORD:
            del line[:-LONGEST_RECORD]
