"""An inventory's settings for Slurm, and what Slurm prints about nodes."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.files import yaml_reader
from orchestrator.inputs import user_files
from orchestrator.model.cluster import Cluster
from orchestrator.model.slurm import (
    OF_QOS,
    Slurm,
    SlurmNode,
    environment,
    records,
    seconds,
    walltime,
)
from tests.model.test_mistakes import QUEUE

SAMPLES = Path(__file__).parents[1] / "samples" / "slurm"


def queue(text: str) -> Cluster:
    return user_files.judged_cluster(yaml_reader.document(text, "it"))


@pytest.mark.parametrize(
    ("words", "length_s"),
    [
        *(("04:00:01", 14401), ("2-12:00:00", 216_000), ("1-02:03:04", 93784), ("59:59", 3599)),
        *(("UNLIMITED", None), ("", None)),
    ],
)
def test_durations_are_parsed_as_slurm_prints_them(words: str, length_s: int | None) -> None:
    """In hours or days, or shorter, as squeue's %L has them."""
    assert seconds(words) == length_s
    if words.count(":") == 2:
        assert Slurm(time=words, nodes=1).time_s == length_s


@given(st.integers(0, 360_000))
def test_a_written_time_is_read_as_it_was(length_s: int) -> None:
    assert seconds(walltime(length_s)) == length_s


def test_options_in_the_users_environment_do_not_reach_slurm() -> None:
    """Variables that name a cluster or an account are kept, and those that are not Slurm's."""
    options = (
        "SBATCH_PARTITION SBATCH_JOB_NAME SBATCH_WAIT SBATCH_ARRAY_INX SQUEUE_USERS SQUEUE_FORMAT"
        " SLURM_LABELIO SLURM_STDINMODE SLURM_TIME_FORMAT SLURM_NTASKS SRUN_CPUS_PER_TASK"
        " SINFO_SORT SCONTROL_ALL SCANCEL_STATE"
    )
    kept = "PATH SLURM_CONF SLURM_CLUSTERS SBATCH_ACCOUNT SLURMD_NODENAME MY_SLURM_NOTE"
    assert list(environment(dict.fromkeys(f"{options} {kept}".split(), "1"))) == kept.split()


def test_nodes_come_from_the_job_in_its_order() -> None:
    text = QUEUE.replace("nodes: 4}", "nodes: 4, extra: [--qos=high, --exclusive]}")
    cluster = queue(text).with_nodes({"gpu2": "10.0.0.2", "gpu1": "10.0.0.1"})
    assert [node.name for node in cluster.members] == ["gpu2", "gpu1"]
    assert {node.transport for node in cluster.members} == {"slurm"}
    assert cluster.shares_files


@pytest.mark.parametrize(
    ("runtime", "contained", "from_files", "engine"),
    [
        ("docker", True, False, True),
        ("process", False, False, False),
        ("pyxis", True, True, False),
        ("apptainer", True, True, False),
    ],
)
def test_only_docker_needs_an_engine_and_the_others_an_image_file(
    runtime: str, contained: bool, from_files: bool, engine: bool
) -> None:
    cluster = queue(QUEUE.replace("process", runtime)).with_nodes({"n1": "n1"})
    assert (cluster.in_containers, cluster.from_files) == (contained, from_files)
    assert cluster.members[0].has_engine == engine


def test_further_options_are_known_by_their_names() -> None:
    for option in ("--qos=high", "-q=high"):
        assert Slurm(time="01:00:00", nodes=1, extra=(option,)).asks(OF_QOS)
    assert not Slurm(time="01:00:00", nodes=1, extra=("--qosx",)).asks(OF_QOS)


@pytest.mark.parametrize(("time", "limit_s"), [("01:02:30", 3600), ("00:05:00", 150)])
def test_a_trial_fits_into_a_job_with_60_s_before_it_and_90_s_after(
    time: str, limit_s: float
) -> None:
    slurm = Slurm(time=time, nodes=1)
    assert slurm.shortage(limit_s) is None
    assert slurm.shortage(limit_s + 0.5)


@pytest.mark.parametrize(
    ("time", "limit_s", "needed", "write"),
    [
        ("01:00:00", 3600.0, "01:02:30 for one trial: 01:00:00", '"01:03:00" or more, or'),
        ("1-00:00:00", 90_000.0, "25:02:30 for one trial: 25:00:00", '"25:03:00" or more, or'),
    ],
)
def test_a_job_too_short_for_a_trial_says_what_to_write(
    time: str, limit_s: float, needed: str, write: str
) -> None:
    """In whole minutes, which Slurm counts; each of the two values that it offers is enough."""
    slurm = Slurm(time=time, nodes=1)
    shortage = slurm.shortage(limit_s)
    assert shortage is not None
    seen, fix = shortage
    assert f"needed {needed} by method.time_limit_s, 60 s until it begins and 90 s" in seen
    assert fix.startswith(f"write slurm.time: {write}")
    enough = fix.split('"')[1]
    assert Slurm(time=enough, nodes=1).shortage(limit_s) is None
    fits_s = float(fix.removesuffix(" or less").rpartition(" ")[2])
    assert slurm.shortage(fits_s) is None
    assert slurm.shortage(fits_s + 1)


@pytest.mark.parametrize("name", ["22.05.8_show_nodes.txt", "22.05.8_show_nodes_oneline.txt"])
def test_nodes_are_parsed_from_the_output_of_scontrol(name: str) -> None:
    """On one line each or on many; a reason has blanks and words with an equals sign."""
    found = [SlurmNode.of(record) for record in records((SAMPLES / name).read_text(), "nodename")]
    assert [(node.name, node.is_up, node.gpus, node.state) for node in found] == [
        ("vs001", True, 8, "ALLOCATED"),
        ("vs002", False, 8, "DOWN+NOT_RESPONDING"),
        ("vs003", True, 8, "ALLOCATED"),
        ("vs004", False, 8, "ALLOCATED+DRAIN"),
    ]
    assert found[0].address == "10.11.0.2"
    assert found[0].partitions == ("main", "high", "debug")


@pytest.mark.parametrize(
    ("states", "is_up"),
    [
        ("IDLE MIXED+CLOUD ALLOCATED+COMPLETING IDLE+CLOUD+POWERED_DOWN", True),
        ("IDLE+DRAIN DOWN* DOWN*+DRAIN ALLOCATED* IDLE+NOT_RESPONDING FUTURE", False),
    ],
)
def test_a_node_is_up_where_slurm_may_start_jobs(states: str, is_up: bool) -> None:
    """As versions since 20.02 print states; a node that is off to save power is started."""
    for state in states.split():
        assert SlurmNode.of({"nodename": "n1", "state": state}).is_up is is_up, state
