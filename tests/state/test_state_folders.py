"""State folders with names that no file can have, or of an earlier dlperf-orch: explained."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator import disk
from tests import SAMPLES, warm
from tests.conftest import Place

LONG = "a" * 5000
OLD = "toy-20210105-090000-b4f45b"
TASK = f"dlp-{OLD}-1n1g-toy_b4_fp32_1-a2-r0"


def test_a_name_that_is_too_long_for_a_file_is_explained(place: Place) -> None:
    """A sweep is as one that is not there; a state folder needs another name."""
    state = ("--state", "b" * 300)
    lines = [
        ("status", LONG),
        ("logs", "--sweep", LONG),
        ("clean", *state),
        ("sweep", "toy", *state),
    ]
    for words, (code, _, err) in zip(lines, warm.run(place, lines), strict=True):
        is_sweep = LONG in words
        assert code == (2 if is_sweep else 6), (words[0], err[:300])
        fix = "File name too long. Fix: choose another folder with --state"
        assert ("ERROR NO-SWEEP: no sweep 'aaaa" if is_sweep else fix) in err
        assert len(err) < 400 + (0 if is_sweep else len(state[1]))


def test_a_path_that_cannot_be_followed_is_not_taken_for_absent(tmp_path: Path) -> None:
    """As pathlib takes it since 3.13; below no folder, or below a file, there is no file."""
    (tmp_path / "file").touch()
    for absent in (tmp_path / "x", tmp_path / "x/y", tmp_path / "file/y"):
        assert not disk.is_there(absent)
        assert disk.listed(absent) == []
    assert disk.is_there(tmp_path / "file")
    assert disk.listed(tmp_path) == [tmp_path / "file"]
    with pytest.raises(OSError, match="too long"):
        disk.is_there(tmp_path / ("b" * 300))
    with pytest.raises(OSError, match="too long"):
        disk.listed(tmp_path / ("b" * 300))


def test_a_folder_in_the_place_of_a_site_file_is_named(place: Place) -> None:
    """`clean`, which looks for the last cluster found fit: exit 6 with the path."""
    (place.state / "sites" / "two.json").mkdir(parents=True)
    done = place.must("clean", code=6)
    assert "ERROR STORE-RIGHTS: .dlperf/sites/two.json: Is a directory" in done.stderr


def test_an_empty_state_folder_is_refused(place: Place) -> None:
    """As from `--state "$UNSET"`: no file of ours is written into the working folder."""
    before = sorted(place.folder.iterdir())
    errors = place.json("sweep", "toy", "--state", "", code=2)["errors"]
    assert "--state" in errors[0]["message"]
    assert sorted(place.folder.iterdir()) == before


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


@pytest.mark.cluster
def test_commands_on_an_old_sweep_name_the_version_that_reads_it(old: Place) -> None:
    """Exit 6 with the version, by id, by playbook and as the newest; no byte of it changes."""
    before = files(old)
    verbs = [("status",), ("collect",), ("stop",), ("logs",)]
    lines = [("status", OLD), ("collect", OLD), ("stop", OLD), ("logs", "--sweep", OLD)]
    lines += [*verbs, ("collect", "toy")]
    for words, (code, _, err) in zip(lines, warm.run(old, lines), strict=True):
        assert code == 6, (words, err)
        assert "ERROR STORE-VERSION" in err
        assert f"sweep {OLD} was written by dlperf-orch of another version and has version 1" in err
        assert "read it with the dlperf-orch that wrote it" in err
    (row,) = old.json("list", "sweeps")
    assert (row["sweep"], row["cluster"]) == (OLD, "other version")
    assert files(old) == before


@pytest.mark.cluster
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


@pytest.mark.cluster
def test_clean_keeps_tasks_that_an_old_sweep_left_running(
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
