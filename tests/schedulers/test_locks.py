"""Locks of nodes: a loss for good is an error, and a planted file is not used."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator import errors
from orchestrator.fleet import Fleet
from orchestrator.model.cluster import Cluster
from orchestrator.schedulers import locks
from orchestrator.schedulers.fanout import Fanout
from orchestrator.transports.local import LocalTransport
from tests.processes import wait_for


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The lock of the machine, at a place of the test's own."""
    path = tmp_path / "machine.lock"
    monkeypatch.setattr(locks, "MACHINE", str(path))
    monkeypatch.setattr(locks, "LOCK_SILENCE_S", 0.5)
    monkeypatch.setattr(locks, "BEAT_S", 0.1)
    return path


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    """A node with a folder of its own that is this machine, reached without SSH."""
    node = {"name": "left", "address": "10.0.0.1", "folder": str(tmp_path / "node")}
    said = {"name": "far", "defaults": {"runtime": "process"}, "nodes": [node]}
    transport = LocalTransport("left")
    yield Fleet(Cluster.model_validate_json(json.dumps(said)), {"left": transport})
    transport.close()


def test_a_lock_that_cannot_be_had_again_ends_what_runs(
    machine: Path, fleet: Fleet, tmp_path: Path
) -> None:
    """Its stream ends, and another file is in its place."""
    scheduler = Fanout(fleet, tmp_path, lambda: False)
    with scheduler.held():
        scheduler.check()
        assert not scheduler.is_ending()
        transport = fleet.transports["left"]
        machine.unlink()
        machine.symlink_to(tmp_path / "elsewhere")
        assert isinstance(transport, LocalTransport)
        transport.close()
        wait_for(scheduler.is_ending, "the loss is noticed", 10)
        with pytest.raises(errors.UnfitError, match="lost") as raised:
            scheduler.check()
    assert (raised.value.code, raised.value.where["node"]) == ("LOCK", "left")


@pytest.mark.parametrize("planted", ["link", "fifo", "folder"])
def test_a_planted_file_is_not_written(
    planted: str, machine: Path, fleet: Fleet, tmp_path: Path
) -> None:
    """In a folder that all can write to, somebody else may have put it there."""
    precious = tmp_path / "precious"
    precious.write_text("precious")
    if planted == "link":
        machine.symlink_to(precious)
    elif planted == "fifo":
        os.mkfifo(machine)
    else:
        machine.mkdir()
    refused = pytest.raises(errors.UnfitError, match="cannot be opened")
    with refused as raised, locks.held(fleet, tmp_path):
        pass
    assert raised.value.code == "LOCK"
    assert precious.read_text() == "precious"


def test_a_file_that_is_exchanged_while_it_is_opened_is_not_written(tmp_path: Path) -> None:
    """A name that was a link when it was opened, and a file when it was looked at."""
    precious, name = tmp_path / "precious", tmp_path / "machine.lock"
    precious.write_text("precious")
    name.write_text("")
    swap = f'ln -sfn "{precious}" "{name}"; command exec 9<"$4"; rm "{name}"; : >"{name}"; true'
    script = locks.HOLD.replace('command exec 9<"$4"', f"{{ {swap}; }}")
    assert script != locks.HOLD
    words = ("sh", "-c", script, "sh", str(tmp_path / "node"), "record", "1", str(name))
    done = subprocess.run(words, capture_output=True, stdin=subprocess.DEVNULL, check=False)
    assert b"cannot be opened" in done.stdout
    assert precious.read_text() == "precious"


def test_a_lock_is_held_by_one(machine: Path, fleet: Fleet, tmp_path: Path) -> None:
    """The second is told whose it is, in words that a shell takes as one."""
    with locks.held(fleet, tmp_path / "a; touch harm"):
        assert json.loads(machine.read_text())["folder"].endswith("harm")
        with pytest.raises(errors.StoreError) as raised, locks.held(fleet, tmp_path):
            pass
    assert raised.value.code == "LOCKED"
    assert f"--state '{tmp_path}/a; touch harm'" in raised.value.fix
