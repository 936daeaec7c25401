"""Which nodes count: what --nodes makes of an inventory."""

import pytest

from orchestrator import errors
from orchestrator.inputs import sites
from orchestrator.model.cluster import Cluster

FOUR = Cluster.model_validate_json(
    '{"name": "seeds", "nodes": ['
    + ",".join(f'{{"name": "vs00{n}", "address": "10.11.0.{n + 1}"}}' for n in range(1, 5))
    + "]}"
)


@pytest.mark.parametrize(
    ("pattern", "left"),
    [
        (None, "1234"),
        ("vs001", "1"),
        ("vs004,vs002", "24"),
        ("vs00[1-3]", "123"),
        ("!vs003", "124"),
        ("!vs003,!vs004", "12"),
        ("vs*,!vs001", "234"),
        ("!vs00[12]", "34"),
    ],
)
def test_nodes_are_chosen_by_name_glob_or_exception(pattern: str | None, left: str) -> None:
    """In the order of the inventory, which is rank order, whatever the order of the words."""
    found = sites.narrowed(FOUR, pattern)
    assert "".join(node.name[-1] for node in found.nodes) == left


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("vs009", "no node fits 'vs009'; there are vs001, vs002, vs003, vs004"),
        ("vs001,", "no node fits ''"),
        ("vs001,!vs001", "leaves no node"),
        ("!*", "leaves no node"),
    ],
)
def test_nodes_that_are_not_there_are_refused(pattern: str, words: str) -> None:
    """A slip of the pen does not measure on other nodes than was meant."""
    with pytest.raises(errors.UsageError, match="NO-NODE") as raised:
        sites.narrowed(FOUR, pattern)
    assert words in raised.value.cause
