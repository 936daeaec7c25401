"""What an inventory may say of Slurm."""

from pathlib import Path

import pytest

from orchestrator import errors
from orchestrator.files import yaml_reader
from orchestrator.inputs import user_files
from orchestrator.model.cluster import Cluster
from orchestrator.model.slurm import Slurm

GOOD = """\
name: queue
scheduler: slurm
slurm: {partition: gpu, time: "04:00:00", nodes: 4}
defaults: {runtime: process}
"""


def judged(text: str, tmp_path: Path) -> Cluster:
    """The inventory of a file."""
    path = tmp_path / "q.yaml"
    path.write_text(text)
    return user_files.judged_cluster(yaml_reader.read(path))


@pytest.mark.parametrize(
    ("time", "seconds"), [("00:05:00", 300), ("04:00:01", 14401), ("2-12:00:00", 216_000)]
)
def test_times_are_slurms(time: str, seconds: int) -> None:
    """Hours or days."""
    assert Slurm(time=time, nodes=1).time_s == seconds


def test_nodes_come_from_the_job(tmp_path: Path) -> None:
    """In its order, with its addresses; further options of sbatch are taken as they are."""
    text = GOOD.replace("nodes: 4}", "nodes: 4, extra: [--qos=high, --exclusive]}")
    cluster = judged(text, tmp_path).given({"gpu2": "10.0.0.2", "gpu1": "10.0.0.1"})
    assert [node.name for node in cluster.members] == ["gpu2", "gpu1"]
    assert {node.transport for node in cluster.members} == {"slurm"}
    assert cluster.shares_files


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("scheduler: slurm\n", "", "2:8: slurm: settings for Slurm; needed `scheduler: slurm`"),
        ('slurm: {partition: gpu, time: "04:00:00", nodes: 4}\n', "", "2:12: scheduler: it is"),
        ("04:00:00", "00:04:59", "time is 00:04:59; needed at least 00:05:00"),
        ("04:00:00", "4h", "got '4h'; needed a time such as '04:00:00'"),
        (", nodes: 4", "", "slurm: key 'nodes' is missing"),
        ("nodes: 4}", "nodes: 4, extra: [--time=1]}", "--time=1 sets time again; needed `time:`"),
        ("nodes: 4}", "nodes: 4, extra: [--array=1-3]}", "--array=1-3 is an option that this"),
        (
            "nodes: 4}",
            "nodes: 4, extra: [--exclusive, now]}",
            "got 'now'; needed an option of sbatch",
        ),
        (
            "{runtime: process}",
            "{runtime: docker}\ncontainer: {privileged: true}",
            "privileged containers without a reason",
        ),
        (
            "{runtime: process}",
            "{runtime: pyxis}\ncontainer: {shm_size: 1g}",
            "settings of Docker's; needed none with runtime pyxis",
        ),
        (
            "{runtime: process}",
            "{runtime: apptainer}\nregistry: {mirror: m.example, user: bob}",
            "user is for Docker; needed none, since apptainer logs in with its own credentials",
        ),
        ("{runtime: process}", "{runtime: process, user: bob}", "user is how nodes are reached"),
        (
            "defaults:",
            "nodes: [{name: n1, address: n1}]\ndefaults:",
            "Slurm's allocation gives the nodes; needed no `nodes:`",
        ),
    ],
)
def test_what_cannot_hold_is_said_where_it_stands(
    old: str, new: str, said: str, tmp_path: Path
) -> None:
    """With file, line and column, and nothing else is."""
    assert old in GOOD
    with pytest.raises(errors.ConfigError) as refused:
        judged(GOOD.replace(old, new), tmp_path)
    assert said in str(refused.value)
    assert len(refused.value.mistakes) == 1


@pytest.mark.parametrize(
    ("runtime", "contained", "from_files", "engine"),
    [
        ("docker", True, False, True),
        ("process", False, False, False),
        ("pyxis", True, True, False),
        ("apptainer", True, True, False),
    ],
)
def test_runtimes_make_containers_of_images_or_of_files(
    runtime: str, contained: bool, from_files: bool, engine: bool, tmp_path: Path
) -> None:
    """Only Docker needs an engine on nodes, only the others a file that all nodes see."""
    cluster = judged(GOOD.replace("process", runtime), tmp_path).given({"n1": "n1"})
    assert (cluster.in_containers, cluster.from_files) == (contained, from_files)
    assert cluster.members[0].has_engine == engine


def test_without_slurm_nothing_makes_containers_of_files(tmp_path: Path) -> None:
    """Their options are srun's, and their files on a file system that all nodes see."""
    text = "name: two\ndefaults: {runtime: pyxis}\nnodes: [{name: n1, address: n1}]\n"
    with pytest.raises(errors.ConfigError, match="n1 has runtime pyxis, which runs in steps of"):
        judged(text, tmp_path)


def test_without_slurm_there_must_be_nodes(tmp_path: Path) -> None:
    """As ever."""
    with pytest.raises(errors.ConfigError, match="needed `nodes:`"):
        judged("name: empty\n", tmp_path)
