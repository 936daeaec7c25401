"""What is known of a partition without a job, by what scontrol printed."""

from pathlib import Path

import pytest

from orchestrator import errors
from orchestrator.model.slurm import SlurmNode
from orchestrator.submitting import one_step

SAMPLES = Path(__file__).parents[1] / "samples" / "slurm"


@pytest.fixture(autouse=True)
def scontrol(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Print what 22.05 printed: two nodes are up, one of them and one that is down in `debug`."""
    path = tmp_path / "scontrol"
    path.write_text(f"#!/bin/sh\ncat {SAMPLES}/22.05.8_show_$3_oneline.txt\n")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")


def test_a_partition_has_its_own_nodes_and_limits() -> None:
    """GPUs are those that Slurm gives; a node that is down or drained says why."""
    debug = one_step.partition("debug")
    assert [node.name for node in debug.nodes] == ["vs001", "vs002"]
    assert [node.name for node in debug.up] == ["vs001"]
    assert (debug.limit_s, debug.most, debug.gpus) == (1800, 1, 8)
    assert debug.down == "vs002 (DOWN+NOT_RESPONDING, Not responding)"
    default = one_step.partition(None)
    assert (default.name, default.limit_s, default.most) == ("main", None, 4)


def test_nodes_that_are_down_alike_are_folded() -> None:
    """On large clusters dozens are."""
    nodes = tuple(SlurmNode(f"n{n}", f"n{n}", 0, "DOWN*", "power", ("p",)) for n in range(10, 60))
    assert one_step.Partition("p", nodes, None, 50).down == "n[10-59] (DOWN*, power)"


def test_a_partition_that_is_not_there_is_told_from_the_others() -> None:
    """With their names."""
    with pytest.raises(errors.UnfitError, match=r"NO-PARTITION.*no partition gpu.*main, high, deb"):
        one_step.partition("gpu")
