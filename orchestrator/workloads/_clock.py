"""Clocks of logs in whole nanoseconds: what a log prints is kept to its last digit."""

from datetime import datetime
from functools import lru_cache

from orchestrator.model.log import SECOND_NS, Moment
from orchestrator.workloads._dll_notes import Notes

_EPOCH = datetime(1970, 1, 1)


def of_stamp(stamp: bytes) -> int | None:
    """Nanoseconds since 1970 of a date and time read as UTC; None if there is no such time.

    Args:
        stamp: with no decimals, with 6, or with more, up to 9.
    """
    second_ns = _second_ns(stamp[:19])
    return None if second_ns is None else second_ns + int(stamp[20:].ljust(9, b"0"))


@lru_cache(maxsize=16)
def _second_ns(text: bytes) -> int | None:
    """Nanoseconds since 1970 of a whole second, which neighbouring lines have in common."""
    try:
        since = datetime.fromisoformat(text.decode("ascii")) - _EPOCH
    except ValueError:
        return None
    return (since.days * 86_400 + since.seconds) * SECOND_NS


def of_seconds(text: bytes) -> int:
    """Nanoseconds of a number of seconds with at most 9 decimals."""
    whole, _, decimals = text.partition(b".")
    return int(whole) * SECOND_NS + int(decimals.ljust(9, b"0"))


def judge(start: Moment | None, end: Moment | None, origin_ns: int | None, notes: Notes) -> None:
    """Note a window that begins and ends on a whole second: its clock has no fractions.

    A clock with microseconds does so once in 10 ** 12 windows.

    Args:
        origin_ns: the time that the moments count from.
    """
    if not (start and end) or origin_ns is None or end.clock_ns <= start.clock_ns:
        return
    if (start.clock_ns + origin_ns) % SECOND_NS or (end.clock_ns + origin_ns) % SECOND_NS:
        return
    seconds = (end.clock_ns - start.clock_ns) // SECOND_NS
    notes.add(
        "COARSE-CLOCK",
        f"lines {start.line} and {end.line}: the clock shows whole seconds; the {seconds} s between"
        " them are good to 1 s",
    )
