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


def test_every_name_counts_once() -> None:
    """A name that comes twice is one node."""
    assert nodeset.fold(["vs001", "vs001", "vs002"]) == "vs[001-002]"


def test_names_that_only_look_alike_are_told_apart() -> None:
    """n1 and n01 are two nodes, and 01 is not what follows 0 in a range without zeros."""
    assert nodeset.fold(["n1", "n01", "n2"]) == "n[1,01,2]"
    assert nodeset.fold(["n0", "n01"]) == "n[0,01]"
