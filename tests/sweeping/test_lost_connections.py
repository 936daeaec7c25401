"""A connection that is lost once, in the worst moment, ends no trial and no sweep."""

import contextlib
import getpass
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Place
from tests.processes import wait_for
from tests.sshd import Sshd, free_port
from tests.sweeping.kept import FLOOD, outcome

pytestmark = [pytest.mark.cluster, pytest.mark.daemons]

# Wraps each command of sshd: before a line with a certain word, its connection is killed once.
CUTTER = """#!/bin/sh
word=$(cat {word} 2>/dev/null)
while IFS= read -r line; do
    case $line in
    *"${{word:-no such word}}"*)
        mv {word} {word}.done
        pid=$PPID
        while [ "$(cat /proc/$pid/comm)" != sshd ]; do pid=$(cut -d' ' -f4 /proc/$pid/stat); done
        kill -KILL "$pid"
        exit ;;
    esac
    printf '%s\\n' "$line"
done | sh -c "$SSH_ORIGINAL_COMMAND"
"""

# Enters a mount namespace where nobody else holds the machine's lock.
ANOTHER_MACHINE = (
    *("unshare", "--mount", "--propagation", "private"),
    *("sh", "-c", 'mount -t tmpfs none /var/tmp && exec "$@"', "sh"),
)


@pytest.fixture
def server(place: Place, tmp_path: Path) -> Iterator[Sshd]:
    """Start an sshd, and write an inventory of one node behind it."""
    made = started(tmp_path / "one")
    place.rewrite(placement="  placement: [1x1]")
    write(place, made)
    yield made
    made.stop()


def started(folder: Path) -> Sshd:
    """Start an sshd that cuts a connection at the word in its folder, on a machine of its own."""
    folder.mkdir()
    cutter = folder / "cutter"
    cutter.write_text(CUTTER.format(word=folder / "word"))
    cutter.chmod(0o755)
    env = f"HOME={folder} PATH={Path(sys.executable).parent}:/usr/bin:/bin"
    return Sshd(
        folder,
        {"ForceCommand": str(cutter), "SetEnv": env},
        port=free_port(),
        within=ANOTHER_MACHINE,
    ).start()


def write(place: Place, *servers: Sshd) -> None:
    """Write an inventory of the nodes behind these; each keeps its files beside its sshd's."""
    nodes = [
        f"  - {{name: {sshd.folder.name}, address: {sshd.address}, port: {sshd.port},"
        f" identity: {sshd.identity}, known_hosts: {sshd.known_hosts},"
        f" folder: {sshd.folder / 'node'}}}\n"
        for sshd in servers
    ]
    head = f"name: far\ndefaults: {{runtime: process, user: {getpass.getuser()}}}\nnodes:\n"
    (place.folder / "far.yaml").write_text(head + "".join(nodes))


def swept(place: Place) -> list[tuple[object, object]]:
    """Run a sweep of one trial; return the state and code of each attempt."""
    place.must("sweep", "toy", "--inventory", "far.yaml", "--repeats", "1")
    assert place.pids() == []
    return [(event["state"], event["code"]) for event in place.events("outcome")]


def test_a_connection_lost_while_a_gang_is_ended_costs_nothing(place: Place, server: Sshd) -> None:
    """The question is put again over a new connection: one attempt, and it counts."""
    (server.folder / "word").write_text('"DLPERF_TASK=$1"')
    assert swept(place) == [("valid", "")]
    assert (server.folder / "word.done").exists(), "no connection was cut"


def test_a_connection_lost_in_the_middle_of_a_log_costs_no_trial(
    place: Place, server: Sshd
) -> None:
    """The rest of the log is copied over a new connection, and its sha256 is the supervisor's."""
    place.rewrite(params="params: {behaviour: wordy}")
    process = place.start("sweep", "toy", "--inventory", "far.yaml", "--repeats", "1")
    wait_for(lambda: list(place.state.rglob("r0.log*.new")), "the log is being copied", 20)
    for pid in server.sessions():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    copied = list(place.state.rglob("r0.log*.new"))
    assert copied, "the log was copied before its connection could be cut"
    _, said = process.communicate(timeout=90)
    assert process.returncode == 0, said
    outcomes = [(event["state"], event["code"]) for event in place.events("outcome")]
    assert outcomes == [("valid", "")]


def test_no_more_of_a_flooded_log_is_copied_over_ssh_than_is_allowed(
    place: Place, server: Sshd
) -> None:
    with open(place.folder / "far.yaml", "a") as file:
        file.write("max_log_size: 1m\n")
    (place.folder / "images/toy/program.py").write_text(FLOOD.format(left=1 << 40))
    place.must("sweep", "toy", "--inventory", "far.yaml", "--repeats", "1", code=3)
    kept = outcome(place, "1n1g/toy_b4_fp32_1.log")
    assert (kept["state"], kept["attempt"]) == ("failed", 1)
    assert "'LOG-TOO-LARGE'" in str(kept["problems"])
    (log,) = place.sweep().glob("attempts/*/a1/r0.log")
    assert log.stat().st_size == 1 << 20
    assert log.read_bytes()[:12] == b"DLL begins\nx"
    assert place.pids() == []
    assert not list((server.folder / "node").glob("*/*/a1")), "the node has forgotten the attempt"


def test_a_node_that_stays_away_is_given_up_in_time(place: Place, server: Sshd) -> None:
    """Nothing is tried for ever: exit 7 within the deadlines, and what may run there is named."""
    place.rewrite(params="params: {step_s: 3}")
    process = place.start("sweep", "toy", "--inventory", "far.yaml", "--repeats", "1")
    wait_for(lambda: place.pids(), "the task runs", 20)
    time.sleep(1)
    server.signal(signal.SIGSTOP)  # or it would let the controller in again at once
    sessions = server.sessions()
    server.signal(signal.SIGKILL)
    for pid in sessions:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    began = time.monotonic()
    _, said = process.communicate(timeout=120)
    assert process.returncode == 7, said
    assert "ERROR LEFTOVER node=one" in said
    assert time.monotonic() - began < 60


def test_status_of_a_task_on_a_silent_node_is_unknown(place: Place, server: Sshd) -> None:
    """It is not taken for ended; the error and its exit code say why."""
    place.rewrite(params="params: {behaviour: hangs}")
    process = place.start("sweep", "toy", "--inventory", "far.yaml", "--repeats", "1")
    wait_for(place.pids, "the task runs")
    process.kill()
    process.wait()
    server.stop()
    said = place.json("status", code=4)
    assert [task["phase"] for task in said["tasks"]] == ["unknown"]
    errors = [(error["code"], error["where"]["node"]) for error in said["errors"]]
    assert errors == [("SSH-REFUSED", "one")]
    assert said["trials"] == {"1n1g-toy_b4_fp32_1": "open"}
    server.start()
    place.must("stop")
    assert place.pids() == []


def test_what_may_be_left_counts_more_than_who_is_silent(
    place: Place, server: Sshd, tmp_path: Path
) -> None:
    """On one node a folder cannot be removed (7), the other goes away meanwhile (4): 7."""
    swept(place)
    second = started(tmp_path / "two")
    write(place, server, second)
    (second.folder / "word").write_text("=dlp-data-")
    busy = server.folder / "node" / place.sweep().name / "busy"
    busy.mkdir(parents=True)
    assert server.process is not None
    there = ("nsenter", "--target", str(server.process.pid), "--mount")
    subprocess.run((*there, "mount", "-t", "tmpfs", "none", str(busy)), check=True)
    done = place.run("clean", "--inventory", "far.yaml")
    second.stop()
    looked = place.run("clean", "--inventory", "far.yaml", "--dry-run")
    assert place.sweep().name in looked.stdout, looked.stderr
    assert "ERROR SSH-REFUSED node=two" in looked.stderr
    assert looked.returncode == 4, looked.stderr
    assert "ERROR SSH-RESET node=two" in done.stderr
    assert "ERROR LEFTOVER node=one" in done.stderr
    assert done.returncode == 7, done.stderr


def command(text: str) -> list[str]:
    """Return the words of the command line that leaves nodes out, as a shell reads them."""
    (found,) = re.findall(r"leave (?:it|them) out: `?(dlperf-orch [^`\n]*)", text)
    return shlex.split(found)[1:]


def test_a_refusal_for_a_dead_node_has_the_command_that_leaves_it_out(
    place: Place, server: Sshd
) -> None:
    """Pasted, it works; where the case needs the node, no command is offered."""
    path = place.folder / "far.yaml"
    dead = f"address: {server.address}, port: {free_port()}, identity: {server.identity}"
    more = f"known_hosts: {server.known_hosts}, folder: {place.folder / 'dead'}"
    data = f"data: {{imagenet: {place.folder / 'images'}}}"
    path.write_text(
        path.read_text().replace("runtime: process", f"runtime: process, {data}")
        + f"  - {{name: dead, {dead}, {more}}}\n"
    )
    place.rewrite(placement="  placement: [1x1, 2x1]")
    words = ("--inventory", "far.yaml", "--repeats", "1")
    refused = place.must("sweep", "toy", *words, "--case", "1x1", code=4)
    out = command(refused.stderr)
    assert out == ["sweep", "toy", *words, "--case", "1x1", "--nodes", "!dead"]
    assert "--nodes" not in place.must("sweep", "toy", *words, "--case", "2x1", code=4).stderr
    place.must(*out)
    for verb in (
        ("provision", "far.yaml"),
        ("data", "check", "imagenet", "--inventory", "far.yaml"),
    ):
        refused = place.must(*verb, code=4)
        out = command(refused.stderr)
        assert out == [*verb, "--nodes", "!dead"]
        assert "node=dead" not in place.must(*out, code=0 if verb[0] == "provision" else 5).stderr
