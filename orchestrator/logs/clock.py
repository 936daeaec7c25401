"""Parses the clocks of logs into whole nanoseconds, to the last printed digit."""

import re
from datetime import UTC, datetime

from orchestrator.model.log import SECOND_NS

_EPOCH = datetime(1970, 1, 1)
_NANOSECONDS = re.compile(rb"[.,][0-9]{6}([0-9]{1,3})")


def of_stamp(stamp: bytes) -> int | None:
    """Return nanoseconds since 1970 of a date and time; None if there is no such time.

    Args:
        stamp: with no decimals, or with 6 to 9. Without a zone, such as ``+08:00`` or ``Z``, it is
            in UTC.
    """
    try:
        moment = datetime.fromisoformat(stamp.decode("ascii"))  # to the microsecond
        since = (moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment) - _EPOCH
    except (ValueError, OverflowError):  # in a zone, the first day may be before year 1
        return None
    time_ns = (since.days * 86_400 + since.seconds) * SECOND_NS + since.microseconds * 1000
    finer = _NANOSECONDS.search(stamp) if len(stamp) > 26 else None
    return time_ns + int(finer[1].ljust(3, b"0")) if finer else time_ns


def of_seconds(text: bytes) -> int:
    """Return nanoseconds of a number of seconds with at most 9 decimals."""
    whole, _, decimals = text.partition(b".")
    return int(whole) * SECOND_NS + int(decimals.ljust(9, b"0"))
