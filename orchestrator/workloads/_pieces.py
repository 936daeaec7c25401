"""Bytes of a log in pieces of one size, however they arrive."""

from collections.abc import Iterable, Iterator

PIECE = 256 * 1024
"""Bytes."""


def even(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in pieces of ``PIECE``, but for the last; no verdict depends on the chunks."""
    parts: list[bytes] = []
    missing = PIECE
    for chunk in chunks:
        begin = 0
        while len(chunk) - begin >= missing:
            parts.append(chunk[begin : begin + missing])
            yield b"".join(parts)
            begin += missing
            parts, missing = [], PIECE
        parts.append(chunk[begin:])
        missing -= len(chunk) - begin
    yield b"".join(parts)
