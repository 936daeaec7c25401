"""Upstream's real programs on two nodes of the virtual cluster: sshd, Docker, patch, plan, gang."""

import json
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from statistics import mean

import pytest

from tests.cluster import Cluster, cluster, registry
from tests.people import Desk
from tests.real import bases, environments

pytestmark = pytest.mark.real

PYTORCH = """\
workload: ngc_pytorch_rn50
image: ngc-pytorch-20.03
method: {repeats: 1, iterations: 16, window: [5, 15], time_limit_s: 900, stall_limit_s: 600}
grid: {placement: [1x1, 2x1], precision: [amp], micro_batch_size: [1]}
"""
TENSORFLOW = """\
workload: ngc_tensorflow_rn50
image: ngc-tensorflow-20.03
method: {repeats: 1, iterations: 24, window: [21, 24], rule: arithmetic, time_limit_s: 1500,
  stall_limit_s: 900}
grid: {placement: [2x1], precision: [fp32], micro_batch_size: [1]}
params: {mode: train}
"""
STEP = re.compile(r"DLL (\S+ \S+) - Epoch: 0 Iteration: (\d+) ")


@pytest.fixture(scope="module")
def two() -> Iterator[Cluster]:
    """Two nodes, and more images in their data sets than a stand-in reads."""
    with cluster(2) as nodes:
        for node in nodes.nodes:
            for folder in (node.folder / "data/image/train").iterdir():
                for number in range(20):
                    (folder / f"more_{number}.JPEG").touch()
        yield nodes


@pytest.fixture
def desk(two: Cluster, tmp_path: Path) -> Iterator[Desk]:
    """A working folder, and an inventory without HCAs: a CPU talks over TCP, and says nothing."""
    made = Desk.made(two, tmp_path)
    lines = two.inventory.read_text().splitlines(keepends=True)
    inventory = "".join(line for line in lines if "hcas:" not in line)
    (tmp_path / "real.yaml").write_text(inventory)
    yield made
    made.end()


def swept(desk: Desk, image: str, playbook: str) -> dict[str, tuple[float, str]]:
    """By trial, throughput and log, of a sweep in which every trial is valid without a problem."""
    desk.json("provision", "real.yaml", "--image", image, "--lock")
    desk.json("sweep", desk.playbook("real", playbook), "--inventory", "real.yaml")
    outcomes = desk.outcomes()
    for trial, outcome in outcomes.items():
        assert (outcome["state"], outcome["problems"]) == ("valid", []), trial
    assert not desk.left()
    logs = {json.loads(path.read_text())["trial"]: path for path in found(desk)}
    return {
        trial: (outcome["throughput"], logs[trial].with_suffix(".log").read_text())
        for trial, outcome in outcomes.items()
    }


def found(desk: Desk) -> list[Path]:
    """Outcomes of the newest sweep."""
    return sorted(desk.sweeps()[-1].glob("logs/*/*.json"))


def test_pytorch_trains_over_two_nodes(desk: Desk) -> None:
    """The image's own patch is in force, and the numbers are those of the raw lines."""
    name = "ngc-pytorch-20.03"
    bases.pytorch(desk.cluster.place)
    bases.image(desk.cluster, desk.folder, name, registry.PYTORCH)
    trials = swept(desk, name, PYTORCH)
    assert len(trials) == 2
    for trial, (throughput, log) in trials.items():
        ranks = int(trial[0])
        stamps = {int(number): stamp for stamp, number in STEP.findall(log)}
        begin, end = (datetime.fromisoformat(stamps[at]) for at in (5, 15))
        by_hand = ranks * 10 / (end - begin).total_seconds()
        assert throughput == pytest.approx(by_hand, rel=1e-6)
        assert f"world_size : {ranks} " in log
    assert "local_rank : 0  gpu : 1  world_size : 2 " in trials["2n1g-r50_b1_amp_1"][1]


def test_tensorflow_trains_by_mpirun_over_two_nodes(desk: Desk, tmp_path: Path) -> None:
    """Its ranks meet through the sshd of the attempt; its own result is ours."""
    python = environments.python37()
    if python is None:
        pytest.skip("no Python 3.7, which TensorFlow 1.15 needs: name one by REAL_PYTHON37")
    name = "ngc-tensorflow-20.03"
    bases.tensorflow(desk.cluster.place, python)
    bases.image(desk.cluster, desk.folder, name, registry.TENSORFLOW)
    environments.tfrecords(environments.of_2020(python), tmp_path / "records")
    serve(desk, tmp_path / "records")
    ((throughput, log),) = swept(desk, name, TENSORFLOW).values()
    rates = [float(rate) for rate in re.findall(r"imgs_per_sec : ([\d.]+)", log)]
    (result,) = re.findall(r"train_throughput : ([\d.]+)", log)
    assert len(rates) == 4
    assert mean(rates) == pytest.approx(float(result), rel=1e-9)
    assert throughput == pytest.approx(float(result), rel=1e-6)
    assert len(re.findall(r"\[1,[01]\]<stdout>:Using cosine learning rate schedule", log)) == 2


def serve(desk: Desk, file: Path) -> None:
    """Put a TFRecord file on every node, in the place of those that hold nothing."""
    for node in desk.cluster.nodes:
        for shard in (node.folder / "data/tfrecords").iterdir():
            shard.write_bytes(file.read_bytes())
