"""The cause in a failed task's log: its first Traceback, and its last lines."""

import mmap
import re
from pathlib import Path

LAST_LINES, LAST_BYTES = 20, 16 << 10
TRACEBACK = b"Traceback (most recent call last):"
TRACEBACK_BYTES = 256 << 10  # deeper ones are shown by their last lines alone
LONGEST_LINE = 500
MOST_FRAME_LINES = 3
_POINTER = re.compile(rb"[ ^~]*")
_ERROR = re.compile(rb"[A-Za-z_][\w.]*(: .*)?")


def words(path: Path) -> bytes:
    """Return the last lines of a log, below its first error unless that is among them.

    Under torchrun the rank that failed prints first, and the agent prints many lines after it.
    """
    if not path.exists():
        return b"it left no log"
    size_bytes = path.stat().st_size
    with open(path, "rb") as file:
        file.seek(max(0, size_bytes - LAST_BYTES))
        last = b"\n".join(file.read().splitlines()[-LAST_LINES:])
    cause = _find_first_error(path) if size_bytes else []
    if not cause or cause[-1] in last:
        return b"its last lines:\n" + last
    shown = b"\n".join(line[:LONGEST_LINE] for line in cause)
    return b"its first Traceback ends with:\n" + shown + b"\nits last lines:\n" + last


def _find_first_error(path: Path) -> list[bytes]:
    """Return the last frame and the error of the first Traceback; nothing if it lacks one.

    Its lines may have a prefix, such as ``[rank1]: ``; those of others between them have another.
    """
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as log:
        at = log.find(TRACEBACK)
        if at < 0:
            return []
        start = log.rfind(b"\n", 0, at) + 1
        prefix, text = log[start:at], log[start : start + TRACEBACK_BYTES]
    frame: list[bytes] = []
    for line in text.splitlines():
        own = line.removeprefix(prefix)
        if not line.startswith(prefix) or own == TRACEBACK:
            continue
        if own.startswith(b"  File "):
            frame = []
        if own.startswith(b" "):
            frame += [] if _POINTER.fullmatch(own) else [own]
        elif frame and _ERROR.fullmatch(own):
            return [*frame[:MOST_FRAME_LINES], own]
    return []
