"""The bytes of a log as whole lines."""

from orchestrator.logs.text import LONGEST_RECORD, whole_lines

MIB = 1024 * 1024


def test_a_line_without_an_end_comes_in_parts() -> None:
    """Of 5 MiB without a line feed never more than 1 MiB and a piece is held; all of it comes."""
    raw = b"begin" + b"x" * 5 * MIB + b"\nend"
    parts = list(whole_lines([raw]))
    assert max(map(len, parts)) < 2 * MIB
    assert b"".join(parts).replace(b"\r", b"").count(b"x") == 5 * MIB
    assert [part[-1:] for part in parts[:-2]] == [b"\r"] * (len(parts) - 2)
    assert (parts[-1], parts[0][:5]) == (b"end", b"begin")
    assert len(parts[-2]) >= LONGEST_RECORD


def test_what_a_carriage_return_ends_is_a_line() -> None:
    """A progress bar at the end of a log is no line that somebody cut."""
    assert list(whole_lines([b"a\n 5 %\r 6 %\r"])) == [b"a\n", b" 5 %\r 6 %\r", b""]
    assert list(whole_lines([b"a\r\nb\x1b[32m\r\n", b"c"])) == [b"a\nb\n", b"c"]
