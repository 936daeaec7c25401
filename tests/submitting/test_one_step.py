"""What is known of a partition without a job, by what scontrol printed."""

from pathlib import Path

import pytest

from orchestrator import errors
from orchestrator.model.slurm import Slurm
from orchestrator.submitting import one_step, submit

SAMPLES = Path(__file__).parents[1] / "samples" / "slurm"


@pytest.fixture(autouse=True)
def scontrol(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Print what 22.05 printed: two nodes are up, one of them and one that is down in `debug`."""
    path = tmp_path / "scontrol"
    path.write_text(f"#!/bin/sh\ncat {SAMPLES}/22.05.8_show_$3_oneline.txt\n")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")


def test_a_partition_has_its_own_nodes_and_limits() -> None:
    """GPUs are those that Slurm gives; a node that is down or drained is named."""
    debug = one_step.partition("debug")
    assert [node.name for node in debug.nodes] == ["vs001", "vs002"]
    assert [node.name for node in debug.up] == ["vs001"]
    assert (debug.limit_s, debug.most, debug.gpus) == (1800, 1, 8)
    assert debug.down == "vs002"
    default = one_step.partition(None)
    assert (default.name, default.limit_s, default.most) == ("main", None, 4)


def test_a_partition_that_is_not_there_is_told_from_the_others() -> None:
    """With their names."""
    with pytest.raises(errors.UnfitError, match=r"NO-PARTITION.*no partition gpu.*main, high, deb"):
        one_step.partition("gpu")


@pytest.mark.parametrize(
    ("name", "nodes", "time", "said"),
    [
        ("main", 5, "01:00:00", "5 nodes are needed; partition main has 4 for a job. Fix: ask for"),
        ("debug", 2, "00:30:00", "2 nodes are needed; partition debug has 1 for a job. Fix: ask"),
        (
            "debug",
            1,
            "00:30:01",
            "slurm.time is 00:30:01; partition debug allows 00:30:00. Fix: write slurm.time:"
            ' "00:30:00" or less, or name another partition',
        ),
    ],
)
def test_what_slurm_would_never_start_is_refused(
    name: str, nodes: int, time: str, said: str
) -> None:
    """Before it is submitted; a QOS may lift limits of time and nodes, which Slurm then judges."""
    slurm, partition = Slurm(time=time, nodes=nodes), one_step.partition(name)
    with pytest.raises(errors.UnfitError) as refused:
        submit.refuse_never(slurm, partition)
    assert f"QUEUE-NEVER: {said}" in str(refused.value)
    high = slurm.model_copy(update={"extra": ("--qos=high",)})
    if nodes <= len(partition.nodes):
        submit.refuse_never(high, partition)
