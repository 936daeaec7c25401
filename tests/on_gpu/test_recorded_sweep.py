"""A sweep that was run on an NVIDIA H200 is collected and verified from its archive."""

import json
import re
import shutil
from datetime import datetime
from pathlib import Path
from statistics import median

import pytest

from orchestrator.state.archives import unpack
from tests import ROOT, SAMPLES
from tests.commands import checked, run
from tests.conftest import PROGRAM

ARCHIVE = SAMPLES / "h200" / "sweep.tar.zst"
BATCH, FIRST, LAST = 256, 20, 80  # images of an iteration; the window of its playbook


def count_by_hand(log: Path) -> float:
    """Return images/s of a log by the clocks of two lines, without the program's own readers."""
    clock = {
        int(found[2]): datetime.fromisoformat(found[1])
        for found in re.finditer(r"DLL (\S+ \S+) - Epoch: 0 Iteration: (\d+) ", log.read_text())
    }
    return BATCH * (LAST - FIRST) / (clock[LAST] - clock[FIRST]).total_seconds()


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A state folder that has the recorded sweep."""
    unpack(ARCHIVE, tmp_path / "state" / "sweeps")
    return tmp_path / "state"


def test_its_numbers_come_from_its_logs(state: Path) -> None:
    """Medians, power and clocks are those of the recorded bytes, and verify derives them again."""
    checked(run((*PROGRAM, "collect", "--state", state)), code=3)  # its last trial has no outcome
    (sweep,) = (state / "sweeps").iterdir()
    cases = json.loads((sweep / "results.json").read_text())["cases"]
    assert [(case["case"]["precision"], case["trials_valid"]) for case in cases] == [
        ("bf16", 3),
        ("amp", 3),
        ("fp32", 2),
    ]
    for case in cases:
        logs = (sweep / trial["log"] for trial in case["trials"] if trial["state"] == "valid")
        assert case["median"] == pytest.approx(median(map(count_by_hand, logs)), rel=1e-9)
        assert case["marks"] == []
    (machine,) = cases[1]["trials"][0]["machines"]
    # Lines of r0.gpus within the window, of a GPU that AMP brings to its power cap.
    assert (machine["moments"], machine["power_w"], machine["sm_mhz"]) == (3, 678.81, 1980.0)
    assert (machine["limits"], machine["slowed_s"]) == (["sw_power_cap"], 0.0)
    checked(run((*PROGRAM, "verify", "--state", state)))


def test_a_machine_without_a_gpu_runs_nothing(tmp_path: Path) -> None:
    """`make gpu` says what is missing, exits 0, and leaves nothing."""
    if shutil.which("nvidia-smi"):
        pytest.skip("this machine has nvidia-smi")
    done = checked(run(("sh", ROOT / "tests" / "on_gpu" / "run.sh", tmp_path / "run")))
    assert "nvidia-smi names no GPU here" in done.stdout
    assert not [*tmp_path.iterdir()]


def test_its_playbook_is_valid() -> None:
    checked(run((*PROGRAM, "check", ROOT / "tests" / "on_gpu" / "playbook.yaml")))
