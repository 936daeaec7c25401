"""Times that logs print, as nanoseconds since 1970."""

import pytest

from orchestrator.logs import clock

AT_S = 1600151333  # date -u -d '2020-09-15 06:28:53' +%s


@pytest.mark.parametrize(
    ("stamp", "nanoseconds"),
    [
        (b"2020-09-15 06:28:53", 0),
        (b"2020-09-15 06:28:53.498443", 498443000),
        (b"2020-09-15 06:28:53.498443123", 498443123),
        (b"2020-09-15 06:28:53.4984431", 498443100),
        (b"2020-09-15T06:28:53Z", 0),
        (b"2020-09-15T14:28:53+08:00", 0),
        (b"2020-09-15 14:28:53.498443+08:00", 498443000),
        (b"2020-09-15 14:28:53.498443123+0800", 498443123),
        (b"2020-09-15 01:13:53.498443-05:15", 498443000),
    ],
)
def test_a_zone_that_a_clock_carries_counts(stamp: bytes, nanoseconds: int) -> None:
    """Without one a time is in UTC, since tasks run so."""
    assert clock.of_stamp(stamp) == AT_S * 10**9 + nanoseconds


@pytest.mark.parametrize("stamp", [b"2020-09-31 06:28:53", b"0001-01-01 00:00:00+14:00", b"", b"x"])
def test_what_is_no_time_is_none(stamp: bytes) -> None:
    """A day that no month has, a year before the first, no date at all."""
    assert clock.of_stamp(stamp) is None
