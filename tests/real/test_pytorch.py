"""NVIDIA's PyTorch ResNet-50, the real program at its pinned commit, trained on CPUs."""

import re
import shutil
import subprocess
from datetime import datetime
from pathlib import Path
from statistics import mean

import pytest

from tests.real import environments, sources
from tests.real.room import Room, Trial

pytestmark = pytest.mark.real

PATCH = sources.ROOT / "images/ngc-pytorch-20.03/patch_main.sh"
STEP = re.compile(r"DLL (\S+ \S+) - Epoch: 0 Iteration: (\d+) .*train\.total_ips : ([\d.]+) img/s")
EPOCH = re.compile(r"DLL (\S+ \S+) - Epoch: 0  train\.loss")
SUMMARY = re.compile(r"Summary: .*train\.total_ips : ([\d.]+) img/s")
WINDOW = (5, 15)
PLAYBOOK = """\
workload: ngc_pytorch_rn50
image: ngc-pytorch-20.03
device: cuda
method: {repeats: 1, iterations: 16, window: [5, 15], time_limit_s: 900, stall_limit_s: 300}
grid: {placement: [1x1, 1x2], precision: [amp], micro_batch_size: [1]}
"""


@pytest.fixture
def room(tmp_path: Path) -> Room:
    """A room with the program, patched as the image patches it, and a data set of a few files."""
    for part, wnid in (("train", "n01440764"), ("train", "n01443537"), ("val", "n01440764")):
        folder = tmp_path / "data/image" / part / wnid
        folder.mkdir(parents=True)
        for number in range(40):
            (folder / f"{number}.JPEG").touch()
    code = tmp_path / "rn50"  # apart from the image, which nothing may be written into
    shutil.copytree(sources.program("ngc-pytorch-20.03"), code)
    subprocess.run(["sh", str(PATCH), str(code / "main.py")], check=True)
    made = Room(
        tmp_path,
        environments.today(),
        {"/workspace/rn50": code, "/data": tmp_path / "data"},
        {"imagenet": "/data/image"},
    )
    made.image("ngc-pytorch-20.03")
    return made


def test_it_is_measured_as_plain_arithmetic_has_it(room: Room) -> None:
    """By the clock of its lines; what it reports at its end is the mean of its rates."""
    trials = room.swept("real", PLAYBOOK)
    assert len(trials) == 2
    for trial in trials:
        check(room, trial)


def check(room: Room, trial: Trial) -> None:
    """Hold a trial's throughput against its raw lines, and those against the program's summary.

    The summary has a step more than the lines: the last one is never printed.
    """
    ranks = 2 if trial.name.startswith("1n2g") else 1
    assert f"world_size : {ranks} " in trial.log
    found = [(number, clock(stamp), rate) for stamp, number, rate in STEP.findall(trial.log)]
    assert [int(number) for number, _, _ in found] == list(range(1, 16))
    (first, last), clocks = WINDOW, [at for _, at, _ in found]
    by_hand = ranks * (last - first) / (clocks[last - 1] - clocks[first - 1])
    assert trial.outcome["throughput"] == pytest.approx(by_hand, rel=1e-5)
    document = room.inspected(trial, "ngc_pytorch_rn50", "--window", "5:15")
    assert document["throughput"] == trial.outcome["throughput"]
    (summary,) = SUMMARY.findall(trial.log)
    assert document["reported"]["train_throughput"] == float(summary)
    (end,) = EPOCH.findall(trial.log)[:1]
    rates = [*(float(rate) for _, _, rate in found), ranks / (clock(end) - clocks[-1])]
    assert mean(rates) == pytest.approx(float(summary), abs=0.015)


def clock(stamp: str) -> float:
    """Seconds since 1970."""
    return datetime.fromisoformat(stamp).timestamp()
