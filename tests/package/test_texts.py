"""Numbers, moments and names of nodes as people read them."""

from typing import Literal

import pytest

from orchestrator import nodeset, words


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
    """And a unit of powers of 1024, as in `free -h`."""
    assert words.size(size_bytes) == text


def test_two_sizes_that_differ_read_otherwise() -> None:
    """As in a finding that saw nearly 64 GiB where 64 GiB were needed."""
    gib = 1 << 30
    assert words.sizes(3 * gib, 64 * gib) == ("3 GiB", "64 GiB")
    assert words.sizes(64 * gib - (1 << 20), 64 * gib) == ("65535 MiB", "65536 MiB")


@pytest.mark.parametrize(
    ("seconds", "limit", "duration"),
    [
        (1.5, "1.5 s", "0:01"),
        (9.9, "9.9 s", "0:09"),
        (75, "75 s", "1:15"),
        (900, "900 s", "15:00"),
        (3599, "3599 s", "59:59"),
        (3600, "1:00:00", "1:00:00"),
        (5025, "1:23:45", "1:23:45"),
        (14400, "4:00:00", "4:00:00"),
    ],
)
def test_long_limits_and_durations_have_hours(seconds: float, limit: str, duration: str) -> None:
    assert (words.limit(seconds), words.duration(seconds)) == (limit, duration)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("2026-11-24T10:24:13.756+00:00", "2026-11-24 10:24:13 UTC"),
        ("2026-11-24T12:24:13+02:00", "2026-11-24 10:24:13 UTC"),
        ("yesterday", "yesterday"),
        ("", ""),
    ],
)
def test_a_moment_is_shown_to_the_second_in_utc(text: str, said: str) -> None:
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
    """With the fewest digits that differ; equal numbers have an end, too."""
    assert words.apart(seen, bound, kind, digits) == shown


@pytest.mark.parametrize(
    ("names", "folded"),
    [
        ("", ""),
        ("vs001", "vs001"),
        ("head", "head"),
        ("vs001 vs002 vs003 vs004", "vs[001-004]"),
        ("vs001 vs002 vs004 gpu7", "vs[001-002,004],gpu7"),
        ("vs004 vs001 vs002", "vs[001-002,004]"),
        ("n8 n9 n10 n11", "n[8-11]"),
        ("n08 n09 n10", "n[08-10]"),
        ("a1-ib a2-ib a1", "a[1-2]-ib,a1"),
        ("rack1-n1 rack1-n2 rack2-n1", "rack1-n[1-2],rack2-n1"),
        ("gpu gpu1 head gpu2", "gpu,gpu[1-2],head"),
        ("vs001 vs001 vs002", "vs[001-002]"),
        ("n1 n01 n2", "n[1,01,2]"),  # n1 and n01 are two nodes
        ("n0 n01", "n[0,01]"),
    ],
)
def test_names_of_nodes_fold(names: str, folded: str) -> None:
    """As ClusterShell's ``nodeset -f`` folds them."""
    assert nodeset.fold(names.split()) == folded


@pytest.mark.parametrize(
    ("name", "pattern", "fits"),
    [
        ("vs001", "vs001", True),
        ("vs001", "vs00[1-3]", True),
        ("vs001", "vs*", True),
        ("vs001", "vs", False),
        ("vs001", "VS*", False),
        ("a[1]", "a[1]", True),
        ("a1", "a[!1]", False),
    ],
)
def test_one_rule_for_names_and_globs(name: str, pattern: str, fits: bool) -> None:
    """A name fits itself, brackets and all; of nodes, cases and published results alike."""
    assert nodeset.fits(name, pattern) is fits


@pytest.mark.parametrize(
    ("lines", "shown"),
    [
        ({}, []),
        ({"n1": ["run", "RANK=0"]}, [("n1", ":\nrun RANK=0")]),
        (
            {f"n{rank + 1}": ["run", "-r", f"{rank}", f"A={rank}"] for rank in range(1000)},
            [("n1", ":\nrun -r 0 A=0"), ("n[2-1000]", " the same, but -r [1-999] A=[1-999]")],
        ),
        (  # ranks in another order than names: no rank is wrong
            {"n3": ["r=0"], "n2": ["r=1"], "n1": ["r=2"]},
            [("n3", ":\nr=0"), ("n2", " the same, but r=1"), ("n1", " the same, but r=2")],
        ),
        (
            {"n1": ["r=0"], "n2": ["r=1"], "n3": ["r=2"], "n5": ["r=3"]},
            [("n1", ":\nr=0"), ("n[2-3,5]", " the same, but r=[1-3]")],
        ),
        (  # a service beside a leader has a text of its own
            {"n1": ["mpirun"], "n2": ["sshd", "r1"], "n3": ["sshd", "r2"], "n4": ["sshd", "r3"]},
            [("n1", ":\nmpirun"), ("n2", ":\nsshd r1"), ("n[3-4]", " the same, but r[2-3]")],
        ),
        ({"n1": ["x"], "n2": ["x"], "n3": ["x"]}, [("n1", ":\nx"), ("n[2-3]", " the same")]),
        ({"a": ["x"], "b": ["x"]}, [("a", ":\nx"), ("b", ":\nx")]),
        ({"n1": ["gpu"], "n2": ["gpu1"]}, [("n1", ":\ngpu"), ("n2", ":\ngpu1")]),
    ],
)
def test_lines_that_differ_in_numbers_alone_fold(
    lines: dict[str, list[str]], shown: list[tuple[str, str]]
) -> None:
    assert list(nodeset.fold_lines(lines)) == shown
