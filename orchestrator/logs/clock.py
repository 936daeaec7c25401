"""Clocks of logs in whole nanoseconds: what a log prints is kept to its last digit."""

from datetime import datetime
from functools import lru_cache

from orchestrator.model.log import SECOND_NS

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
