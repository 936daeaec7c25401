"""Names of nodes, folded; expected values are those of ClusterShell's ``nodeset -f``."""

import pytest

from orchestrator import nodeset


@pytest.mark.parametrize(
    ("names", "folded"),
    [
        ([], ""),
        (["vs001"], "vs001"),
        (["head"], "head"),
        (["vs001", "vs002", "vs003", "vs004"], "vs[001-004]"),
        (["vs001", "vs002", "vs004", "gpu7"], "vs[001-002,004],gpu7"),
        (["vs004", "vs001", "vs002"], "vs[001-002,004]"),
        (["n8", "n9", "n10", "n11"], "n[8-11]"),
        (["n08", "n09", "n10"], "n[08-10]"),
        (["a1-ib", "a2-ib", "a1"], "a[1-2]-ib,a1"),
        (["rack1-n1", "rack1-n2", "rack2-n1"], "rack1-n[1-2],rack2-n1"),
        (["gpu", "gpu1", "head", "gpu2"], "gpu,gpu[1-2],head"),
    ],
)
def test_names_fold(names: list[str], folded: str) -> None:
    """Consecutive numbers become ranges; what stands alone stays as it is."""
    assert nodeset.fold(names) == folded


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


def test_every_name_counts_once() -> None:
    """A name that comes twice is one node."""
    assert nodeset.fold(["vs001", "vs001", "vs002"]) == "vs[001-002]"


def test_names_that_only_look_alike_are_told_apart() -> None:
    """n1 and n01 are two nodes, and 01 is not what follows 0 in a range without zeros."""
    assert nodeset.fold(["n1", "n01", "n2"]) == "n[1,01,2]"
    assert nodeset.fold(["n0", "n01"]) == "n[0,01]"


@pytest.mark.parametrize(
    ("lines", "shown"),
    [
        ({}, []),
        ({"n1": ["run", "RANK=0"]}, [("n1", ":\nrun RANK=0")]),
        (
            {f"n{rank + 1}": ["run", "-r", f"{rank}", f"A={rank}"] for rank in range(1000)},
            [("n1", ":\nrun -r 0 A=0"), ("n[2-1000]", " the same, but -r [1-999] A=[1-999]")],
        ),
        (  # ranks go another way than names: nobody is told a wrong rank
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
        (
            {"a": ["x"], "b": ["x"]},
            [("a", ":\nx"), ("b", ":\nx")],
        ),
        ({"n1": ["gpu"], "n2": ["gpu1"]}, [("n1", ":\ngpu"), ("n2", ":\ngpu1")]),
    ],
)
def test_lines_that_differ_in_numbers_alone_fold(
    lines: dict[str, list[str]], shown: list[tuple[str, str]]
) -> None:
    """One whole line is shown, and the words that differ, in the order of the nodes."""
    assert list(nodeset.fold_lines(lines)) == shown
