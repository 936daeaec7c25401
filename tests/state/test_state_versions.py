"""A state folder that an earlier dlperf-orch wrote, as it was recorded: refused sweep by sweep."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import SAMPLES, warm
from tests.conftest import Place

pytestmark = pytest.mark.cluster

OLD = "toy-20210105-090000-b4f45b"
TASK = f"dlp-{OLD}-1n1g-toy_b4_fp32_1-a2-r0"


@pytest.fixture
def old(place: Place) -> Place:
    """A place whose state folder has a sweep of version 1, which ended well."""
    shutil.copytree(SAMPLES / "state-v1" / "sweeps", place.state / "sweeps")
    place.rewrite(method="method: {repeats: 1, iterations: 11, window: [2, 8], time_limit_s: 60}")
    return place


@pytest.fixture
def left_running(old: Place) -> Iterator["subprocess.Popen[bytes]"]:
    """A process that the old sweep's controller left when it died."""
    del old
    with subprocess.Popen(["sleep", "600"], env={**os.environ, "DLPERF_TASK": TASK}) as process:
        yield process
        process.kill()


def files(place: Place) -> dict[Path, bytes]:
    """What the old sweep's folder holds."""
    found = (place.state / "sweeps" / OLD).rglob("*")
    return {path: path.read_bytes() for path in found if path.is_file() and path.name != "lock"}


def test_commands_on_an_old_sweep_say_who_can_read_it(old: Place) -> None:
    """Exit 6 with the version, by id, by playbook and as the newest; no byte of it changes."""
    before = files(old)
    verbs = [("status",), ("collect",), ("stop",), ("logs",)]
    lines = [("status", OLD), ("collect", OLD), ("stop", OLD), ("logs", "--sweep", OLD)]
    lines += [*verbs, ("collect", "toy")]
    for words, (code, _, err) in zip(lines, warm.run(old, lines), strict=True):
        assert code == 6, (words, err)
        assert "ERROR STORE-VERSION" in err
        assert f"sweep {OLD} was written by an earlier dlperf-orch and has version 1" in err
        assert "read it with the dlperf-orch that wrote it" in err
    (row,) = old.json("list", "sweeps")
    assert (row["sweep"], row["cluster"]) == (OLD, "other version")
    assert files(old) == before


def test_a_new_sweep_starts_beside_an_old_one(
    old: Place, left_running: "subprocess.Popen[bytes]"
) -> None:
    """One line says why; what the old one left running is ended; every command goes on."""
    before = files(old)
    done = old.must("sweep", "toy", "--json")
    new = json.loads(done.stdout)["sweep"]
    (line,) = (line for line in done.stderr.splitlines() if line.startswith(f"sweep {OLD}"))
    assert "has version 1" in line
    assert line.endswith("it is kept and cannot be resumed")
    assert TASK in done.stderr
    assert left_running.wait(10) == -signal.SIGKILL
    again = old.run("sweep", "toy")
    assert f"sweep {new} goes on" in again.stderr
    assert OLD not in again.stderr
    lines = [("status",), ("collect",), ("stop",), ("collect", "toy"), ("collect", OLD)]
    assert [code for code, _, _ in warm.run(old, lines)] == [0, 0, 0, 0, 6]
    rows = json.loads(old.run("list", "sweeps", "--json").stdout)
    assert [row["sweep"] for row in rows] == [new, OLD]
    assert files(old) == before


def test_clean_keeps_what_an_old_sweep_left_running(
    old: Place, left_running: "subprocess.Popen[bytes]"
) -> None:
    """Exit 7 with its name and what to do; without it there is nothing to say."""
    done = old.must("clean", "--inventory", "two", code=7)
    assert TASK in done.stderr
    assert "clean with the dlperf-orch that wrote it" in done.stderr
    assert left_running.poll() is None
    left_running.kill()
    left_running.wait()
    done = old.run("clean", "--inventory", "two")
    assert (done.returncode, done.stderr) == (0, "")
