"""Real gangs of real processes: how a sweep runs, what it keeps, and how it goes on."""

import json
import os
import pty
import socket
import subprocess
import sys
from datetime import UTC, datetime

import pytest

from tests import commands
from tests.commands import TELL, loaded
from tests.conftest import Place
from tests.processes import wait_for
from tests.sweeping.kept import outcome, states

pytestmark = pytest.mark.cluster
# What a sweep loads only where something is left to run.
OF_RUNNING = {
    *("orchestrator.sweeping.loop", "orchestrator.probes", "orchestrator.fleet"),
    *("orchestrator.runtimes", "orchestrator.transports", "orchestrator.schedulers.choice"),
    *("orchestrator.submitting", "orchestrator.sweeping.campaign", "concurrent.futures"),
}


def test_a_sweep_runs_every_trial_and_leaves_nothing_running(place: Place) -> None:
    """All trials are valid; table, report and logs are there, and the user's alone."""
    document = place.json("sweep", "toy")
    assert [case["trials_valid"] for case in document["cases"]] == [2, 2]
    assert document["shared_machine"] is True
    assert document["cases"][1]["case"]["world_size"] == 4
    assert place.pids() == []
    report = (place.sweep() / "report.md").read_text()
    assert report.index("SHARED-MACHINE") < report.index("## Cases at a glance")
    names = sorted(str(path.relative_to(place.sweep())) for path in place.sweep().rglob("*.log"))
    assert "logs/2n2g/toy_b4_fp32_1.log" in names
    assert "attempts/2n2g-toy_b4_fp32_1/a1/r1.log" in names
    for path in place.state.rglob("*"):  # whatever the umask was
        mode = path.stat().st_mode & 0o777
        assert mode == (0o700 if path.is_dir() else 0o600), path


def test_what_ran_is_what_the_dry_run_showed(place: Place) -> None:
    """Command lines, environments and node ranks of the plan are those of the attempts."""
    words = ("sweep", "toy", "--repeats", "1")
    shown = json.loads(place.run(*words, "--dry-run", "--json").stdout)["plan"]["trials"]
    assert not place.state.exists()
    place.must(*words)
    for trial in shown:
        ran = json.loads(
            (place.sweep() / "attempts" / trial["name"] / "a1" / "attempt.json").read_text()
        )
        planned, started = str(trial["port"]), str(ran["port"])
        for task in trial["tasks"]:
            task["argv"] = [word.replace(planned, started) for word in task["argv"]]
        assert ran["tasks"] == trial["tasks"]


def test_a_log_has_the_clock_of_its_node_whatever_zone_it_is_in(place: Place) -> None:
    """The toy prints local time; its window is placed in what was observed of its node."""
    place.rewrite(params="params: {step_s: 0.15}")
    place.must("sweep", "toy", "--case", "1x1", "--repeats", "1", TZ="Asia/Kathmandu")
    folder = next((place.sweep() / "attempts").glob("1n1g*/a1"))
    (task,) = json.loads((folder / "attempt.json").read_text())["tasks"]
    assert task["env"]["TZ"] == "UTC0"
    (step, *_) = [line for line in (folder / "r0.log").read_text().splitlines() if "DLL" in line]
    printed = datetime.fromisoformat(step[4:30]).replace(tzinfo=UTC).timestamp()
    assert 0 <= printed - float((folder / "r0.go").read_text()) < 60
    (trial,) = json.loads((place.sweep() / "results.json").read_text())["cases"][0]["trials"]
    assert [state["span"] for state in trial["machines"]] == ["window"]
    assert "NOT-PLACED" not in str(trial["marks"])


def test_a_program_that_prints_on_its_last_node_is_measured_there(place: Place) -> None:
    """As Megatron-LM's does: the log that counts is the last node's, byte for byte."""
    place.rewrite(workload="workload: toy_last")
    cases = place.json("sweep", "toy", "--repeats", "1")["cases"]
    (two,) = [case for case in cases if case["case"]["nodes"] == 2]
    assert two["trials_valid"] == 1
    kept = (place.sweep() / "logs/2n2g/toy_b4_fp32_1.log").read_bytes()
    attempt = place.sweep() / "attempts/2n2g-toy_b4_fp32_1/a1"
    assert kept == (attempt / "r1.log").read_bytes()
    assert b"Iteration: 10 " in kept
    assert b"Iteration" not in (attempt / "r0.log").read_bytes()


def test_a_format_of_the_docs_is_swept_verified_and_explained(place: Place) -> None:
    """A workload and a log format that the program does not ship: every number is derived."""
    place.rewrite(workload="workload: toy_plain")
    document = place.json("sweep", "toy")
    assert [case["trials_valid"] for case in document["cases"]] == [2, 2]
    found = place.json("verify")
    assert (found["differences"], found["not_derived"]) == ([], {})
    page = place.must("explain", "1x1").stdout
    assert "step=8 time=" in page
    log = next((place.sweep() / "logs").rglob("toy_b4_fp32_1.log"))
    log.write_text(log.read_text().replace("step=8 ", "step=9 "))
    files = {it["file"] for it in place.json("verify", code=3)["differences"]}
    assert str(log.relative_to(place.sweep())) in files


def test_a_second_sweep_measures_nothing_again(place: Place) -> None:
    """Results stay the same to the byte, and no node is asked, also after comments were added."""
    place.must("sweep", "toy")
    before = (place.sweep() / "results.json").read_bytes()
    files = {path: path.stat().st_ino for path in place.sweep().glob("[rS]*")}
    assert {path.name for path in files} > {"report.html", "results.json", "SHA256SUMS"}
    playbook = place.folder / "playbooks" / "toy.yaml"
    playbook.write_text(f"# a comment\n\n{playbook.read_text()}")
    again = place.must("sweep", "toy")
    assert {path: path.stat().st_ino for path in files} == files  # nothing was written anew
    left = "nothing left to run: a larger --repeats adds trials, --new starts a new sweep"
    assert f"{left}; no node was asked" in again.stderr
    assert (place.sweep() / "results.json").read_bytes() == before
    (place.sweep() / "ended.json").write_text("{}")
    asked = place.must("sweep", "toy")
    assert left in asked.stderr
    assert "no node was asked" not in asked.stderr
    assert len(place.events("intent")) == 4
    place.must("collect")
    assert (place.sweep() / "results.json").read_bytes() == before
    (row,) = json.loads(place.run("list", "sweeps", "--json").stdout)
    assert (row["state"], row["trials"], row["valid"]) == ("readable", 4, 4)
    cases = json.loads(before)["cases"]
    assert [it["median"] for it in row["medians"]] == [case["median"] for case in cases]
    assert f"1x1 fp32 {cases[0]['median']:.2f}" in place.run("list", "sweeps").stdout


def test_a_sweep_with_nothing_left_loads_nothing_that_reaches_nodes(place: Place) -> None:
    """Nor what submits jobs: a command that only reads files answers at once."""
    words = ("sweep", "toy", "--case", "1x1", "--repeats", "1")
    place.must(*words)
    again = commands.checked(place.run(*words, **TELL))
    assert "no node was asked" in again.stderr
    assert not loaded(again.stderr) & OF_RUNNING


def test_an_edited_playbook_starts_a_new_sweep_and_the_old_one_goes_on_later(
    place: Place,
) -> None:
    """The old sweep is named and the difference shown; edited back, it goes on."""
    words = ("sweep", "toy", "--case", "1x1", "--repeats", "1")
    place.must(*words)
    old, before = place.sweep().name, (place.folder / "playbooks" / "toy.yaml").read_text()
    place.rewrite(micro_batch_size="  micro_batch_size: [8]")
    done = place.must(*words)
    assert f"differs from sweep {old}" in done.stderr
    assert "+    8" in done.stderr
    assert len(list(place.state.glob("sweeps/*/sweep.json"))) == 2
    (place.folder / "playbooks" / "toy.yaml").write_text(before)
    assert f"sweep {old} goes on" in place.must(*words).stderr


def test_a_taken_port_is_passed_over(place: Place) -> None:
    """The first candidate is held by somebody else: the next free one is used and told."""
    shown = json.loads(place.run("sweep", "toy", "--dry-run", "--json").stdout)
    first = shown["plan"]["trials"][0]["port"]
    with socket.create_server(("127.0.0.1", first)):
        place.must("sweep", "toy", "--case", "1x1", "--repeats", "1")
    assert int(str(place.events("intent")[0]["port"])) > first


# In a network of its own, all ports that attempts of the toy may try are taken.
NO_PORT = """
import os, socket, subprocess, sys
first = int(os.environ["TOY_PORT"])
held = [socket.create_server(("0.0.0.0", first + at)) for at in range(200)]
sys.exit(subprocess.run(sys.argv[1:]).returncode)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes a network of its own")
def test_the_way_around_a_node_resumes_what_new_began(place: Place) -> None:
    """With --new in the command, trials measured so far would be left behind."""
    words = ("sweep", "toy", "--case", "1x1")
    alone = ("unshare", "--net", sys.executable, "-c", NO_PORT, *place.program, *words, "--new")
    done = commands.run(list(alone), cwd=place.folder, env=place.env())
    assert (done.returncode, "ERROR PORT-BUSY node=left" in done.stderr) == (5, True), done.stderr
    command = " ".join(("dlperf-orch", *words, "--nodes", "'!left'"))
    assert f"Fix: leave it out: `{command}`." in done.stderr


def test_a_terminal_sees_a_live_view(place: Place) -> None:
    """Trials, iterations, rate, elapsed and remaining time move on one spot."""
    place.rewrite(params="params: {step_s: 0.05}")
    leader, follower = pty.openpty()
    env = {**place.env(), "TERM": "xterm", "COLUMNS": "100", "LINES": "30"}
    process = subprocess.Popen(
        [*place.program, "sweep", "toy"],
        cwd=place.folder,
        env=env,
        stderr=follower,
        stdout=follower,
    )
    os.close(follower)
    seen = b""
    while True:
        try:
            piece = os.read(leader, 65536)
        except OSError:
            break
        if not piece:
            break
        seen += piece
    os.close(leader)
    assert process.wait(60) == 0
    text = seen.decode(errors="replace")
    assert "of 4 trials" in text
    assert "elapsed" in text
    assert "of 10," in text
    assert "left" in text


def test_code_edited_while_a_trial_runs_makes_it_invalid(place: Place) -> None:
    """A number of two programs is a number of none; a later collect still knows it."""
    place.rewrite(params="params: {step_s: 0.2}")
    process = place.start("sweep", "toy", "--case", "1x1", "--max-fail", "1")
    logs = "sweeps/*/attempts/*/a1/r0.log"
    wait_for(lambda: any(log.stat().st_size for log in place.state.glob(logs)), "a first line")
    program = place.folder / "images" / "toy" / "program.py"
    program.write_text(f"{program.read_text()}# another program\n")
    assert process.wait(60) == 3
    assert "CODE-CHANGED" in str(outcome(place, "1n1g/toy_b4_fp32_1.log")["problems"])
    trials = json.loads(place.run("collect", "--json").stdout)["cases"][0]["trials"]
    assert trials[0]["state"] == "invalid"
    assert trials[0]["problems"][0]["code"] == "CODE-CHANGED"


def test_a_reader_that_goes_away_stops_no_sweep(place: Place) -> None:
    """As with `sweep 2>&1 | head -1`: the trials run on, all valid."""
    reader, writer = os.pipe()
    process = subprocess.Popen(
        [*place.program, "sweep", "toy"],
        cwd=place.folder,
        env=place.env(),
        stderr=writer,
        stdout=writer,
    )
    os.close(writer)
    os.read(reader, 1)
    os.close(reader)
    assert process.wait(60) in (0, 141)
    assert states(place) == ["valid"] * 4
