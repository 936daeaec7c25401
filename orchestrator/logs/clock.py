"""Clocks of logs in whole nanoseconds: what a log prints is kept to its last digit."""

from datetime import datetime

from orchestrator.model.log import SECOND_NS

_EPOCH = datetime(1970, 1, 1)


def of_stamp(stamp: bytes) -> int | None:
    """Nanoseconds since 1970 of a date and time read as UTC; None if there is no such time.

    Args:
        stamp: with no decimals, with 6, or with more, up to 9.
    """
    try:
        since = datetime.fromisoformat(stamp.decode("ascii")) - _EPOCH  # to the microsecond
    except ValueError:
        return None
    time_ns = (since.days * 86_400 + since.seconds) * SECOND_NS + since.microseconds * 1000
    return time_ns + int(stamp[26:].ljust(3, b"0")) if len(stamp) > 26 else time_ns


def of_seconds(text: bytes) -> int:
    """Nanoseconds of a number of seconds with at most 9 decimals."""
    whole, _, decimals = text.partition(b".")
    return int(whole) * SECOND_NS + int(decimals.ljust(9, b"0"))
