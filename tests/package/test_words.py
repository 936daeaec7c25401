"""Numbers as people read them."""

from typing import Literal

import pytest

from orchestrator import words


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 B"),
        (512, "512 B"),
        (1024, "1 KiB"),
        (1536, "1.5 KiB"),
        (1023 << 10, "1 MiB"),
        (16160 << 20, "15.8 GiB"),
        (386_000 << 20, "377 GiB"),
        (1024 << 20, "1 GiB"),
        (5 << 40, "5 TiB"),
        (5000 << 40, "5000 TiB"),
    ],
)
def test_sizes_have_three_digits_that_count(size_bytes: int, text: str) -> None:
    """And a unit of powers of 1024, as `free -h` has them."""
    assert words.size(size_bytes) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(1.5, "1.5 s"), (900, "900 s"), (3599, "3599 s"), (3600, "1:00:00"), (14400, "4:00:00")],
)
def test_long_limits_are_told_in_hours(seconds: float, text: str) -> None:
    """Nobody divides 14400 by 3600."""
    assert words.limit(seconds) == text


@pytest.mark.parametrize(("seconds", "text"), [(9.9, "0:09"), (75, "1:15"), (5025, "1:23:45")])
def test_durations_have_hours_only_where_there_are_any(seconds: float, text: str) -> None:
    """As a stopwatch shows them."""
    assert words.duration(seconds) == text


def test_two_sizes_that_differ_read_otherwise() -> None:
    """What a finding saw and what it needed, though both be 64 GiB for a person."""
    gib = 1 << 30
    assert words.sizes(3 * gib, 64 * gib) == ("3 GiB", "64 GiB")
    assert words.sizes(64 * gib - (1 << 20), 64 * gib) == ("65535 MiB", "65536 MiB")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("2026-11-24T10:24:13.756+00:00", "2026-11-24 10:24:13 UTC"),
        ("2026-11-24T12:24:13+02:00", "2026-11-24 10:24:13 UTC"),
        ("yesterday", "yesterday"),
        ("", ""),
    ],
)
def test_a_moment_is_told_to_the_second_in_utc(text: str, said: str) -> None:
    """What is no time stays as it is."""
    assert words.moment(text) == said


@pytest.mark.parametrize(
    ("seen", "bound", "kind", "digits", "shown"),
    [
        (1.83, 0.5, "f", 1, ("1.8", "0.5")),
        (0.52, 0.5, "f", 1, ("0.52", "0.50")),
        (0.02004, 0.02, "%", 1, ("2.004%", "2.000%")),
        (0.899, 0.9, "%", 0, ("89.9%", "90.0%")),
        (0.0000031, 0.0, "%", 1, ("0.0003%", "0.0000%")),
        (0.5, 0.5, "f", 1, ("0.5000000000", "0.5000000000")),
    ],
)
def test_a_number_never_rounds_to_the_bound_that_it_passed(
    seen: float, bound: float, kind: Literal["f", "%"], digits: int, shown: tuple[str, str]
) -> None:
    """With the fewest digits that tell them apart; equal ones have an end, too."""
    assert words.apart(seen, bound, kind, digits) == shown
