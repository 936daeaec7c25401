"""The cause in a failed task's log: its first Traceback, and its last lines."""

import re
from collections.abc import Iterable
from pathlib import Path

LAST_LINES, LAST_BYTES = 20, 16 << 10
TRACEBACK = b"Traceback (most recent call last):"
TRACEBACK_BYTES = 256 << 10  # deeper ones are shown by their last lines alone
LONGEST_LINE = 500
PIECE_BYTES = 1 << 20
MOST_FRAME_LINES = 3
_POINTER = re.compile(rb"[ ^~]*")
_ERROR = re.compile(rb"[A-Za-z_][\w.]*(: .*)?")


def words(path: Path) -> bytes:
    """The first Traceback's last frame and error, where they are not among the last lines; those.

    Under torchrun the rank that failed speaks first, and the agent at length after it.
    """
    if not path.exists():
        return b"it left no log"
    last = b"\n".join(_end(path).splitlines()[-LAST_LINES:])
    cause = _first_error(_from_traceback(path))
    if not cause or cause[-1] in last:
        return b"its last lines:\n" + last
    shown = b"\n".join(line[:LONGEST_LINE] for line in cause)
    return b"its first Traceback ends with:\n" + shown + b"\nits last lines:\n" + last


def _end(path: Path) -> bytes:
    with open(path, "rb") as file:
        file.seek(max(0, path.stat().st_size - LAST_BYTES))
        return file.read()


def _from_traceback(path: Path) -> bytes:
    """The log from the line of its first Traceback on, as far as one may go; empty without any."""
    with open(path, "rb") as file:
        before = b""
        while piece := file.read(PIECE_BYTES):
            text = before + piece
            if (at := text.find(TRACEBACK)) >= 0:
                start = text.rfind(b"\n", 0, at) + 1
                return (text[start:] + file.read(TRACEBACK_BYTES))[:TRACEBACK_BYTES]
            before = text[-LONGEST_LINE:]
    return b""


def _first_error(text: bytes) -> list[bytes]:
    """The last frame and the error of the Traceback that a text begins with.

    Its lines may have a prefix, such as ``[rank1]: ``; those of others between them have another.
    """
    prefix = text.partition(TRACEBACK)[0]
    own = (line.removeprefix(prefix) for line in text.splitlines() if line.startswith(prefix))
    return _last_frame(line for line in own if line != TRACEBACK)


def _last_frame(lines: Iterable[bytes]) -> list[bytes]:
    """Return the last frame and the error line of a traceback, nothing if it has no error line."""
    frame: list[bytes] = []
    for line in lines:
        if line.startswith(b"  File "):
            frame = []
        if line.startswith(b" "):
            frame += [] if _POINTER.fullmatch(line) else [line]
        elif frame and _ERROR.fullmatch(line):
            return [*frame[:MOST_FRAME_LINES], line]
    return []
