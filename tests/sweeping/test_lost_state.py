"""A sweep runs on although its controller was killed and its state folder is lost."""

import json
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tests import proc
from tests.conftest import Place
from tests.waiting import wait_for

pytestmark = pytest.mark.cluster
HANGS = "params: {behaviour: hangs}"


def carried(sweep: str) -> list[int]:
    """Processes of that sweep."""
    return proc.carrying(f"=dlp-{sweep}-".encode())


@pytest.fixture
def lost(place: Place) -> str:
    """The id of a sweep whose tasks are all that there is of it."""
    place.rewrite(params=HANGS)
    process = place.start("sweep", "toy", "--case", "2x2", "--repeats", "1")
    wait_for(lambda: place.opened(0) and place.opened(1), "both tasks run")
    process.kill()
    process.wait()
    sweep = place.sweep().name
    shutil.rmtree(place.state)
    return sweep


def test_what_runs_without_its_state_folder_is_told_and_ended(place: Place, lost: str) -> None:
    """OTHER-GANG names owner, folder, sweep and deadline; its command ends it; then all is well."""
    refused = place.must("provision", "two", code=5)
    document = place.json("provision", "two", code=5)
    (found,) = (one for one in document["site"]["findings"] if one["code"] == "OTHER-GANG")
    assert found["severity"] == "error"
    assert f"sweep {lost} runs on the node, started by pid " in found["seen"]
    assert f"state folder {place.state};" in found["seen"]
    until = re.search(r"by itself at (\S+ \S+) UTC", found["seen"])
    assert until is not None
    left_s = time.mktime(time.strptime(until[1], "%Y-%m-%d %H:%M:%S")) - time.mktime(time.gmtime())
    assert 0 < left_s < 24 * 3600
    assert "Not fit to measure" in refused.stderr
    said = place.must("sweep", "toy", "--case", "1x1", "--repeats", "1", code=5).stderr
    assert "ERROR OTHER-GANG" in said
    command = f"dlperf-orch stop {lost} --on "
    assert command in said
    cleaned = place.must("clean", "--inventory", "two").stderr
    assert command in cleaned
    assert carried(lost)
    (words,) = re.findall(f"`({re.escape(command)}.*?)`", cleaned)
    done = place.json(*words.split()[1:])
    assert len(done["ended"]) >= 2
    assert carried(lost) == []
    assert place.json(*words.split()[1:])["ended"] == []
    place.rewrite(params="params: {}")
    place.must("sweep", "toy", "--case", "1x1", "--repeats", "1")


@pytest.mark.parametrize("name", ["toy", "toy-20260101-000000-abcdef;id", ""])
def test_only_a_whole_id_ends_a_lost_sweep(place: Place, name: str) -> None:
    """A prefix could be somebody else's."""
    assert "ERROR USAGE" in place.must("stop", name, "--on", "two", code=2).stderr


def test_a_sweep_of_this_folder_is_stopped_without_on(place: Place) -> None:
    """Its record says where it runs."""
    place.must("sweep", "toy", "--case", "1x1", "--repeats", "1")
    said = place.must("stop", place.sweep().name, "--on", "two", code=2).stderr
    assert "leave out --on" in said


def test_words_of_strangers_in_the_owner_are_quoted(place: Place) -> None:
    """What a process says of its owner goes into a command only quoted, and without escapes."""
    folder = "/tmp/a b;$(id)"
    holder = {
        "process": {"host": "h", "pid": 1, "started": "1", "boot": "b"},
        "user": "eve",
        "since": "now",
        "folder": folder,
    }
    sweep = "toy-20260101-000000-abcdef"
    env = {
        **os.environ,
        "DLPERF_TASK": f"dlp-{sweep}-1n1g-a1-r0",
        "DLPERF_OWNER": json.dumps(holder),
        "DLPERF_DEADLINE": "9" * 30,
        "DLPERF_LOCK": place.env()["DLPERF_LOCK"],
    }
    process = subprocess.Popen(["sleep", "60"], env=env)
    try:
        said = place.must("sweep", "toy", "--case", "1x1", "--repeats", "1", code=5).stderr
    finally:
        process.kill()
        process.wait()
    assert f"--state '{folder}'` on h;" in said
    assert "it has no known deadline" in said
    assert not Path("/tmp/a b").exists()
