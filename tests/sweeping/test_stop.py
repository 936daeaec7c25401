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

from orchestrator.state.store import Store
from orchestrator.state.sweep import Sweep
from tests.conftest import PROGRAM, Place
from tests.processes import wait_for
from tests.state.test_store import RECORD

pytestmark = pytest.mark.cluster
HANGS = "params: {behaviour: hangs}"
LOOKED = '#!/bin/sh\n: >"$0.asked"\nuntil [ -e "$0.go" ]; do sleep 0.05; done\nexec {} "$@"\n'


def begun(place: Place) -> "subprocess.Popen[str]":
    """Start a sweep whose first task runs and will not end by itself."""
    place.rewrite(params=HANGS)
    process = place.start("sweep", "toy", "--case", "1x1")
    wait_for(place.opened, "a task runs")
    return process


def test_stop_waits_for_a_controller_that_holds_no_sweep_yet(place: Place) -> None:
    """It holds the cluster and looks at its nodes when `stop` begins."""
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
    record = json.loads(path.read_text().replace(f"{process.pid}", f"{foreign.pid}"))
    if controller == "on another machine":
        stat = Path(f"/proc/{foreign.pid}/stat").read_text().rpartition(") ")[2].split()
        record["process"] |= {"host": "elsewhere", "started": stat[19]}
    path.write_text(json.dumps(record))
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
        place.must("stop")  # the holder is gone
        assert foreign.poll() is None
        assert place.pids() == []
    finally:
        foreign.kill()
        foreign.wait()


def refuse(second: Place, first: Place, pid: int, thing: str) -> None:
    """Run a second controller, whose error names the first one's pid and what ends it."""
    refused = second.must("sweep", "toy", "--case", "1x1", code=6)
    assert f"ERROR LOCKED: {thing} is in use by pid {pid} of " in refused.stderr
    assert f"`dlperf-orch stop --state {first.state}`" in refused.stderr


def test_a_second_controller_is_refused_until_stop_ends_the_first(place: Place) -> None:
    process = begun(place)
    refuse(place, place, process.pid, "cluster two")
    assert place.json("stop")["controller"] == process.pid
    assert process.wait(30) == 143
    assert place.pids() == []


def test_two_state_folders_do_not_measure_on_this_machine_at_once(
    place: Place, tmp_path: Path
) -> None:
    other = Place.made(tmp_path / "other")
    inventory = other.folder / "inventory" / "two.yaml"
    inventory.write_text(inventory.read_text().replace("name: two", "name: twin"))
    process = begun(place)
    refuse(other, place, process.pid, "this machine")
    assert not list(other.state.glob("sweeps/*"))
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 143
    other.must("sweep", "toy", "--case", "1x1", "--repeats", "1")


def test_status_shows_no_task_of_a_trial_that_ends_while_it_looks(place: Place) -> None:
    """Such a trial has its outcome, and its files and processes are gone: nothing is lost."""
    process = begun(place)
    process.kill()
    process.wait()
    events, sweep = place.sweep() / "events.jsonl", Sweep(place.sweep())
    name = "1n1g-toy_b4_fp32_2"
    said = {"at": "2026-01-05T09:00:00+00:00", "trial": name, "attempt": 1, "port": 1}
    said |= {"log": "1n1g/toy_b4_fp32_2.log", "state": "valid"}
    with open(events, "a") as file:
        file.write(json.dumps({**said, "event": "intent"}) + "\n")
    folder = sweep.attempt_folder(name, 1)
    first = sweep.attempt("1n1g-toy_b4_fp32_1", 1)
    folders = dict.fromkeys(first.folders, str(folder))
    sweep.keep_attempt(replace(first, trial=name, folders=folders), {})
    boot = Path("/proc/sys/kernel/random/boot_id").read_text()
    (folder / "r0.pid").write_text(f"{process.pid} 1 {boot}")
    slow = place.folder / "bin" / "wc"  # the first trial's node takes its time
    slow.parent.mkdir()
    slow.write_text(LOOKED.format(shutil.which("wc")))
    slow.chmod(0o755)
    looking = subprocess.Popen(
        [*place.program, "status", "--json"],
        cwd=place.folder,
        env={**place.env(), "PATH": f"{slow.parent}:{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        text=True,
    )
    wait_for(slow.with_name("wc.asked").exists, "status looks at the first trial's node")
    with open(events, "a") as file:
        file.write(json.dumps({**said, "event": "outcome"}) + "\n")
    slow.with_name("wc.go").touch()
    document = json.loads(looking.communicate(timeout=60)[0])
    assert document["trials"][name] == "valid"
    assert [(task["trial"], task["phase"]) for task in document["tasks"]] == [
        ("1n1g-toy_b4_fp32_1", "running")
    ]


def test_status_takes_no_lock_that_a_sweep_needs(place: Place) -> None:
    """Commands that only read are in nobody's way, however often they run: they lock no file."""
    Store(place.state).new_sweep(RECORD)
    calls = place.folder / "calls"
    trace = ("strace", "-qq", "-f", "-y", "-e", "trace=flock", "-o", str(calls))
    for words in (("status",), ("stop",), ("list", "sweeps")):
        subprocess.run([*trace, *PROGRAM, *words], cwd=place.folder, env=place.env(), check=True)
        assert str(place.state) not in calls.read_text()
