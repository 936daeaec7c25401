"""Which nodes count: what --nodes makes of an inventory."""

from typing import Any

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
    found = sites.narrow(FOUR, pattern)
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
        sites.narrow(FOUR, pattern)
    assert words in raised.value.cause


def queue(runtime: str = "docker", **asked: Any) -> Cluster:
    """An inventory whose nodes Slurm gives."""
    slurm = {"partition": "main", "time": "04:00:00", "nodes": 4, **asked}
    document = {"name": "queue", "scheduler": "slurm", "slurm": slurm}
    return Cluster.model_validate({**document, "defaults": {"runtime": runtime}})


@pytest.mark.parametrize("asked", [{"time": "00:30:00"}, {"nodes": 2}, {"account": "perf"}])
def test_what_a_job_is_asked_for_makes_no_other_nodes(asked: dict[str, Any]) -> None:
    """Nodes found fit in one job are so in a longer or a smaller one."""
    assert sites.digest(queue(**asked)) == sites.digest(queue())


@pytest.mark.parametrize(
    "asked", [{"partition": "other"}, {"extra": ("--constraint=h100",)}, {"runtime": "process"}]
)
def test_another_partition_is_other_nodes(asked: dict[str, Any]) -> None:
    """So are a constraint and a runtime: what was prepared may be elsewhere."""
    assert sites.digest(queue(**asked)) != sites.digest(queue())
