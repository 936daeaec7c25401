"""What an inventory may say of Slurm."""

from pathlib import Path

import pytest

from orchestrator import errors
from orchestrator.files import yaml_reader
from orchestrator.inputs import user_files
from orchestrator.model.cluster import Cluster
from orchestrator.model.slurm import OF_QOS, Slurm, SlurmNode, environment, records, seconds

SAMPLES = Path(__file__).parents[1] / "samples" / "slurm"
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
    ("words", "length_s"),
    [
        *(("04:00:01", 14401), ("2-12:00:00", 216_000), ("1-02:03:04", 93784), ("59:59", 3599)),
        *(("UNLIMITED", None), ("", None)),
    ],
)
def test_times_are_slurms(words: str, length_s: int | None) -> None:
    """Hours or days, and as squeue's %L has them."""
    assert seconds(words) == length_s
    if words.count(":") == 2:
        assert Slurm(time=words, nodes=1).time_s == length_s


def test_options_of_the_users_shell_are_no_options_of_ours() -> None:
    """Those that name Slurm or the account are kept, and what is not Slurm's."""
    options = (
        "SBATCH_PARTITION SBATCH_JOB_NAME SBATCH_WAIT SBATCH_ARRAY_INX SQUEUE_USERS SQUEUE_FORMAT"
        " SLURM_LABELIO SLURM_STDINMODE SLURM_TIME_FORMAT SLURM_NTASKS SRUN_CPUS_PER_TASK"
        " SINFO_SORT SCONTROL_ALL SCANCEL_STATE"
    )
    kept = "PATH SLURM_CONF SLURM_CLUSTERS SBATCH_ACCOUNT SLURMD_NODENAME MY_SLURM_NOTE"
    assert list(environment(dict.fromkeys(f"{options} {kept}".split(), "1"))) == kept.split()


def test_nodes_come_from_the_job(tmp_path: Path) -> None:
    """In its order, with its addresses; further options of sbatch are taken as they are."""
    text = GOOD.replace("nodes: 4}", "nodes: 4, extra: [--qos=high, --exclusive]}")
    cluster = judged(text, tmp_path).with_nodes({"gpu2": "10.0.0.2", "gpu1": "10.0.0.1"})
    assert [node.name for node in cluster.members] == ["gpu2", "gpu1"]
    assert {node.transport for node in cluster.members} == {"slurm"}
    assert cluster.shares_files


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("scheduler: slurm\n", "", "2:8: slurm: settings for Slurm; needed `scheduler: slurm`"),
        ('slurm: {partition: gpu, time: "04:00:00", nodes: 4}\n', "", "2:12: scheduler: it is"),
        ("04:00:00", "4h", "got '4h'; needed a time such as '04:00:00'"),
        (", nodes: 4", "", "slurm: key 'nodes' is missing"),
        (
            "nodes: 4}",
            "nodes: 4, extra: [--time=1]}",
            "--time=1 is an option that this program gives sbatch itself",
        ),
        ("nodes: 4}", "nodes: 4, extra: [--array=1-3]}", "--array=1-3 is an option that this"),
        ("nodes: 4}", "nodes: 4, extra: [--test-only]}", "--test-only is an option that this"),
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
            "user is for Docker; needed none, since apptainer logs in by itself",
        ),
        (
            "{runtime: process}",
            "{runtime: process, user: bob}",
            "nodes given by Slurm are reached by srun; needed no `user:`",
        ),
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
    cluster = judged(GOOD.replace("process", runtime), tmp_path).with_nodes({"n1": "n1"})
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


@pytest.mark.parametrize("options", [("--qos=high",), ("-q=high",)])
def test_further_options_are_known_by_their_names(options: tuple[str, ...]) -> None:
    """Whatever their values are."""
    assert Slurm(time="01:00:00", nodes=1, extra=options).asks(OF_QOS)
    assert not Slurm(time="01:00:00", nodes=1, extra=("--qosx",)).asks(OF_QOS)


@pytest.mark.parametrize(("time", "limit_s"), [("01:02:30", 3600), ("00:05:00", 150)])
def test_a_trial_fits_into_a_job_with_a_minute_before_it_and_90_s_after(
    time: str, limit_s: float
) -> None:
    """To the second."""
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
    """In whole minutes, since Slurm counts those, and what it says is enough."""
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
def test_nodes_are_known_by_what_scontrol_prints(name: str) -> None:
    """On one line each or on many; a reason has blanks and words with an equals sign."""
    found = [SlurmNode.of(record) for record in records((SAMPLES / name).read_text(), "nodename")]
    assert [node.name for node in found] == ["vs001", "vs002", "vs003", "vs004"]
    assert [node.is_up for node in found] == [True, False, True, False]
    assert [node.gpus for node in found] == [8] * 4
    assert found[0].address == "10.11.0.2"
    assert found[0].partitions == ("main", "high", "debug")
    assert [node.state for node in found] == [
        *("ALLOCATED", "DOWN+NOT_RESPONDING", "ALLOCATED", "ALLOCATED+DRAIN"),
    ]


@pytest.mark.parametrize(
    ("state", "is_up"),
    [
        ("IDLE", True),
        ("MIXED+CLOUD", True),
        ("ALLOCATED+COMPLETING", True),
        ("IDLE+CLOUD+POWERED_DOWN", True),
        ("IDLE+DRAIN", False),
        ("DOWN*", False),
        ("DOWN*+DRAIN", False),
        ("ALLOCATED*", False),
        ("IDLE+NOT_RESPONDING", False),
        ("FUTURE", False),
    ],
)
def test_a_node_is_up_where_slurm_may_start_jobs(state: str, is_up: bool) -> None:
    """As versions since 20.02 write it; one that is switched off to save power is started."""
    assert SlurmNode.of({"nodename": "n1", "state": state}).is_up is is_up
