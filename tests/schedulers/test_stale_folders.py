"""Folders of questions that were killed: found on this machine and removed, nobody else's."""

import json
import secrets
import subprocess
from pathlib import Path

import pytest

from orchestrator.probes import sections
from orchestrator.probes.sections import Section
from tests.conftest import Place
from tests.processes import wait_for

# A neighbour's `clean` would remove them first.
pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("machine_alone")]


def test_clean_removes_what_a_killed_question_left(place: Place) -> None:
    """A question whose shell was killed leaves its folder; one that still runs keeps it."""
    nonces = [f"{kind}{secrets.token_hex(6)}" for kind in ("dead", "beef")]
    dead, alive = (
        subprocess.Popen(
            sections.argv([Section("slow", ("sleep", seconds), 60)], nonce=nonce),
            stdout=subprocess.DEVNULL,
            text=True,
        )
        for nonce, seconds in zip(nonces, ("3", "50"), strict=True)
    )
    place.started.extend([dead, alive])
    shm = Path("/dev/shm")
    wait_for(lambda: all([*shm.glob(f"dlperf-{nonce}.*/*.out")] for nonce in nonces), "two folders")
    dead.kill()
    dead.wait()
    (left,), (used,) = ([*shm.glob(f"dlperf-{nonce}.*")] for nonce in nonces)
    wait_for((left / "slow.rc").exists, "the end of what it had asked")
    shown = json.loads(place.run("clean", "--dry-run", "--json", "--inventory", "two").stdout)
    assert list(shown["nodes"]) == ["left", "right"]
    for node in shown["nodes"].values():
        assert str(left) in node["folders"]
        assert str(used) not in node["folders"]
    assert left.exists()
    done = place.run("clean", "--inventory", "two")
    assert (done.returncode, left.exists(), used.exists()) == (0, False, True), done.stderr


def test_looking_for_stale_folders_finds_them_beside_another_look() -> None:
    """Two nodes on one machine are asked at once; neither takes the other's grep for the owner."""
    left = Path(f"/dev/shm/dlperf-{secrets.token_hex(8)}.abcdef")
    left.mkdir()
    looks = [
        subprocess.Popen(["sh", "-c", sections.STALE], stdout=subprocess.PIPE, text=True)
        for _ in range(30)
    ]
    found = [str(left) in look.communicate()[0].splitlines() for look in looks]
    left.rmdir()
    assert all(found)
