"""Who runs a sweep, and who may: `status`, `stop`, and other controllers on this machine."""

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.state.sweep import Sweep
from tests.conftest import PROGRAM, Place
from tests.waiting import wait_for

pytestmark = pytest.mark.cluster
HANGS = "params: {behaviour: hangs}"


def begun(place: Place) -> "subprocess.Popen[str]":
    """A sweep whose first task runs and will not end by itself."""
    place.rewrite(params=HANGS)
    process = place.start("sweep", "toy", "--case", "1x1")
    wait_for(place.opened, "a task runs")
    return process


def test_stop_waits_for_a_controller_that_holds_no_sweep_yet(place: Place) -> None:
    """It holds the cluster and asks its nodes, when stop comes."""
    place.rewrite(params=HANGS)
    process = place.start("sweep", "toy", "--case", "1x1")
    wait_for(
        lambda: any(lock.stat().st_size for lock in place.state.glob("sites/*.lock")), "a lock"
    )
    process.send_signal(signal.SIGSTOP)
    assert not list(place.state.glob("sweeps/*"))
    stopping = place.start("stop")
    with pytest.raises(subprocess.TimeoutExpired):
        stopping.wait(timeout=3)
    process.send_signal(signal.SIGCONT)
    assert stopping.wait() == 0
    assert process.wait() == 143
    assert place.pids() == []


@pytest.mark.parametrize("controller", ["killed", "on another machine"])
def test_stop_ends_no_process_that_only_has_the_controllers_pid(
    place: Place, controller: str
) -> None:
    """The lock is held and its file names a pid: of long ago, or of another machine."""
    process = begun(place)
    process.kill()
    process.wait()
    foreign = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    path = place.sweep() / "lock"
    record = path.read_text().replace(f"{process.pid}", f"{foreign.pid}")
    if controller == "on another machine":
        stat = Path(f"/proc/{foreign.pid}/stat").read_text().rpartition(") ")[2].split()
        said = json.loads(record)
        said["process"] |= {"host": "elsewhere", "started": stat[19]}
        record = json.dumps(said)
    path.write_text(record)
    try:
        with open(path, "r+") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            done = place.must("stop", code=6)
            assert "ERROR LOCKED" in done.stderr
            assert foreign.poll() is None
            if controller == "on another machine":
                assert f"pid {foreign.pid} of root on elsewhere since" in done.stderr
                assert "`dlperf-orch stop --state" in done.stderr
                assert "on elsewhere since" in place.run("status").stdout
        place.must("stop")  # whoever held it is gone
        assert foreign.poll() is None
        assert place.pids() == []
    finally:
        foreign.kill()
        foreign.wait()


def test_stop_ends_the_controller_and_what_it_runs(place: Place) -> None:
    """As if it had been asked by SIGTERM; its pid is told."""
    process = begun(place)
    assert place.json("stop")["controller"] == process.pid
    assert process.wait(30) == 143
    assert place.pids() == []


def test_two_state_folders_do_not_measure_on_this_machine_at_once(
    place: Place, tmp_path: Path
) -> None:
    """The second is refused, told who is there and how to end it; afterwards it may."""
    other = Place.made(tmp_path / "other")
    inventory = other.folder / "inventory" / "two.yaml"
    inventory.write_text(inventory.read_text().replace("name: two", "name: twin"))
    process = begun(place)
    refused = other.must("sweep", "toy", "--case", "1x1", code=6)
    assert f"ERROR LOCKED: this machine is in use by pid {process.pid} of " in refused.stderr
    assert f"`dlperf-orch stop --state {place.state}`" in refused.stderr
    assert not list(other.state.glob("sweeps/*"))
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 143
    other.must("sweep", "toy", "--case", "1x1")


def test_status_shows_no_task_of_a_trial_that_ends_while_it_looks(place: Place) -> None:
    """Such a trial has its outcome, and its files and processes are gone: nothing is lost."""
    process = begun(place)
    process.kill()
    process.wait()
    events = place.sweep() / "events.jsonl"
    said = {
        "at": "2026-01-05T09:00:00+00:00",
        "trial": "1n1g-toy_b4_fp32_2",
        "attempt": 1,
        "port": 1,
        "log": "1n1g/toy_b4_fp32_2.log",
        "state": "valid",
    }
    with open(events, "a") as file:
        file.write(json.dumps({**said, "event": "intent"}) + "\n")
    folder = place.sweep() / "attempts" / "1n1g-toy_b4_fp32_2" / "a1"
    sweep = Sweep(place.sweep())
    first = sweep.attempt("1n1g-toy_b4_fp32_1", 1)
    folders = dict.fromkeys(first.folders, str(folder))
    sweep.keep_attempt(replace(first, trial="1n1g-toy_b4_fp32_2", folders=folders), {})
    boot = Path("/proc/sys/kernel/random/boot_id").read_text()
    (folder / "r0.pid").write_text(f"{process.pid} 1 {boot}")
    slow = place.folder / "bin" / "wc"  # the first trial's node takes its time
    slow.parent.mkdir()
    slow.write_text(
        '#!/bin/sh\n: >"$0.asked"\nuntil [ -e "$0.go" ]; do sleep 0.05; done\nwc "$@"\n'
    )
    slow.write_text(slow.read_text().replace('\nwc "$@"', f'\nexec {shutil.which("wc")} "$@"'))
    slow.chmod(0o755)
    env = {**place.env(), "PATH": f"{slow.parent}:{os.environ['PATH']}"}
    looking = subprocess.Popen(
        [*place.program, "status", "--json"],
        cwd=place.folder,
        env=env,
        stdout=subprocess.PIPE,
        text=True,
    )
    wait_for(slow.with_name("wc.asked").exists, "status looks at the first trial's node")
    with open(events, "a") as file:
        file.write(json.dumps({**said, "event": "outcome"}) + "\n")
    slow.with_name("wc.go").touch()
    document = json.loads(looking.communicate(timeout=60)[0])
    assert document["trials"]["1n1g-toy_b4_fp32_2"] == "valid"
    assert [(task["trial"], task["phase"]) for task in document["tasks"]] == [
        ("1n1g-toy_b4_fp32_1", "running")
    ]


def test_status_takes_no_lock_that_a_sweep_needs(place: Place) -> None:
    """What only reads is in nobody's way, however often it is asked for: it locks no file."""
    place.must("sweep", "toy", "--case", "1x1")
    calls = place.folder / "calls"
    trace = ("strace", "-qq", "-f", "-y", "-e", "trace=flock", "-o", str(calls))
    for words in (("status",), ("stop",), ("list", "sweeps")):
        subprocess.run([*trace, *PROGRAM, *words], cwd=place.folder, env=place.env(), check=True)
        assert str(place.state) not in calls.read_text()
