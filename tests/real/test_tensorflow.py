"""NVIDIA's TensorFlow ResNet-50, the real program with the real Horovod, trained on CPUs."""

import re
from pathlib import Path
from statistics import mean

import pytest

from tests.real import environments, sources
from tests.real.room import Room, Trial

pytestmark = pytest.mark.real

RATES = {"train": "imgs_per_sec", "training_benchmark": "total_ips"}
RESULT = re.compile(r"^DLL \S+ \S+ - \(\) train_throughput : ([\d.]+) $", re.MULTILINE)
TRAIN = """\
workload: ngc_tensorflow_rn50
image: ngc-tensorflow-20.03
device: cuda
method: {repeats: 1, iterations: 24, window: [21, 24], rule: arithmetic, stall_limit_s: 900}
grid: {placement: [1x1, 1x2], precision: [fp32], micro_batch_size: [1]}
params: {mode: train}
"""
BENCHMARK = """\
workload: ngc_tensorflow_rn50
image: ngc-tensorflow-20.03
device: cuda
method: {repeats: 1, iterations: 7, rule: reported, stall_limit_s: 900}
grid: {placement: [1x1, 1x2], precision: [fp32], micro_batch_size: [1]}
params: {mode: training_benchmark, warmup_steps: 3, data: synthetic}
"""


@pytest.fixture
def room(tmp_path: Path) -> Room:
    """A room with the program, and TFRecords that are counted and never read."""
    python = environments.python37()
    if python is None:
        pytest.skip("no Python 3.7, which TensorFlow 1.15 needs: name one by REAL_PYTHON37")
    programs = environments.of_2020(python)
    for name in ("tfrecords", "dali_idx"):
        (tmp_path / "data" / name).mkdir(parents=True)
    shard = tmp_path / "data/tfrecords/train-00000-of-00001"
    environments.tfrecords(programs, shard)
    (tmp_path / "data/dali_idx" / f"{shard.name}.idx").touch()
    data = {"imagenet_tfrecord": "/data/tfrecords", "dali_idx": "/data/dali_idx"}
    made = Room(tmp_path, programs, {"/data": tmp_path / "data"}, data)
    made.image("ngc-tensorflow-20.03", sources.program("ngc-tensorflow-20.03"))
    return made


@pytest.mark.parametrize(("mode", "text"), [("train", TRAIN), ("training_benchmark", BENCHMARK)])
def test_it_is_measured_as_it_reports_itself(room: Room, mode: str, text: str) -> None:
    """By the mean of its rates or its own result, which are the same number."""
    trials = room.swept("real", text)
    assert [trial.name.split("-")[0] for trial in trials] == ["1n1g", "1n2g"]
    for ranks, trial in enumerate(trials, start=1):
        check(trial, RATES[mode])
        assert f"Num GPUs {ranks}" in trial.log.splitlines()


def check(trial: Trial, name: str) -> None:
    """Hold a trial's throughput against its raw lines, and against the program's own result."""
    rates = [float(rate) for rate in re.findall(rf"\) {name} : ([\d.]+) ", trial.log)]
    (result,) = RESULT.findall(trial.log)
    assert len(rates) == 4
    assert mean(rates) == pytest.approx(float(result), rel=1e-9)
    assert trial.outcome["throughput"] == pytest.approx(float(result), rel=1e-6)
