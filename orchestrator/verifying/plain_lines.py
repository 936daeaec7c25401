"""The lines of a raw log, as its program printed them."""

import re
from collections.abc import Iterator
from pathlib import Path

_TAGGED = "]<std"
_TAG = re.compile(
    r"(?:[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d [\d:]{8} \d{4})?\[\d+,(\d+)\]<std(?:out|err|diag)>:"
)
CUT = "\N{HORIZONTAL ELLIPSIS}"
"""Behind the last line of a log that was cut, where the program may have gone on."""
LONGEST = 64 << 10
"""Bytes of a line; a longer one is no step of a program."""


def is_cut(path: Path) -> bool:
    """Whether nothing ends its last line."""
    with open(path, "rb") as file:
        size = file.seek(0, 2)
        file.seek(max(size - 1, 0))
        return file.read() not in (b"", b"\n")


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """Numbers and texts of whole lines; pieces that mpirun tagged are put together by rank.

    A line that is longer than any record is passed over.
    """
    pieces: dict[str, str] = {}
    count, whole = 1, True
    with open(path, "rb") as file:
        while raw := file.readline(LONGEST):
            number, begun = count, whole
            whole = raw.endswith(b"\n")
            count += whole
            if not begun or (len(raw) == LONGEST and not whole):
                continue
            text = raw.lstrip(b"\0").decode("utf-8", "replace") + ("" if whole else CUT)
            parts = _TAG.split(text) if _TAGGED in text else [text]
            if len(parts) == 1:
                yield number, text
                continue
            ranks, said = parts[1::2], parts[2::2]
            for rank, piece in zip(ranks[:-1], said[:-1], strict=True):
                pieces[rank] = pieces.get(rank, "") + piece
            yield number, f"[1,{ranks[-1]}]<stdout>:{pieces.pop(ranks[-1], '')}{said[-1]}"
