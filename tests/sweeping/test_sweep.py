"""Real gangs of real processes: how they run, fail, stall, are stopped, killed and go on."""

import json
import os
import pty
import shutil
import signal
import socket
import subprocess

import pytest

from tests import commands
from tests.conftest import Place
from tests.loading import TELL, loaded
from tests.sweeping.kept import outcome, running
from tests.waiting import wait_for

pytestmark = pytest.mark.cluster
# What a sweep loads only where something is left to run.
OF_RUNNING = {
    *("orchestrator.sweeping.loop", "orchestrator.probes", "orchestrator.fleet"),
    *("orchestrator.runtimes", "orchestrator.transports", "orchestrator.schedulers.choice"),
    *("orchestrator.submitting", "orchestrator.sweeping.campaign", "concurrent.futures"),
}


def test_sweep_runs_every_trial_and_leaves_nothing_running(place: Place) -> None:
    """All trials of both cases are valid, and the table, the report and the logs are there."""
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


def test_what_ran_is_what_the_dry_run_showed(place: Place) -> None:
    """Command lines, environments and node ranks of the plan are those of the attempts."""
    shown = json.loads(place.run("sweep", "toy", "--dry-run", "--json").stdout)["plan"]["trials"]
    assert not place.state.exists()
    place.must("sweep", "toy")
    for trial in shown:
        ran = json.loads(
            (place.sweep() / "attempts" / trial["name"] / "a1" / "attempt.json").read_text()
        )
        planned, started = str(trial["port"]), str(ran["port"])
        for task in trial["tasks"]:
            task["argv"] = [word.replace(planned, started) for word in task["argv"]]
        assert ran["tasks"] == trial["tasks"]


def test_second_sweep_measures_nothing_again(place: Place) -> None:
    """What has a valid outcome is left alone; the results stay the same to the byte."""
    place.must("sweep", "toy")
    before = (place.sweep() / "results.json").read_bytes()
    files = {path: path.stat().st_ino for path in place.sweep().glob("[rS]*")}
    assert {path.name for path in files} > {"report.html", "results.json", "SHA256SUMS"}
    again = place.must("sweep", "toy")
    assert {path: path.stat().st_ino for path in files} == files  # nothing was written anew
    left = "nothing left to run: a larger --repeats adds trials, --new starts a new sweep"
    assert f"{left}; no node was asked" in again.stderr
    assert (place.sweep() / "results.json").read_bytes() == before
    assert len(place.events("intent")) == 4
    (place.sweep() / "ended.json").write_text("{}")
    asked = place.must("sweep", "toy")
    assert left in asked.stderr
    assert "no node was asked" not in asked.stderr
    assert len(place.events("intent")) == 4
    place.must("collect")
    assert (place.sweep() / "results.json").read_bytes() == before


def test_a_sweep_with_nothing_left_loads_nothing_that_reaches_nodes(place: Place) -> None:
    """Nor what submits jobs: a command that only reads files answers at once."""
    place.must("sweep", "toy", "--case", "1x1", "--repeats", "1")
    again = commands.checked(place.run("sweep", "toy", "--case", "1x1", "--repeats", "1", **TELL))
    assert "no node was asked" in again.stderr
    assert not loaded(again.stderr) & OF_RUNNING


def test_more_repeats_and_single_cases_extend_a_sweep(place: Place) -> None:
    """--case measures only its cases, --repeats adds trials, all in one sweep."""
    place.must("sweep", "toy", "--case", "1x1")
    assert {event["trial"] for event in place.events("intent")} == {
        "1n1g-toy_b4_fp32_1",
        "1n1g-toy_b4_fp32_2",
    }
    place.must("sweep", "toy", "--repeats", "3")
    assert len(place.events("intent")) == 6
    results = json.loads((place.sweep() / "results.json").read_text())
    assert [case["trials_valid"] for case in results["cases"]] == [3, 3]


def test_edited_playbook_starts_a_new_sweep_and_says_what_differs(place: Place) -> None:
    """The old sweep is named, the difference shown, and both are kept."""
    place.must("sweep", "toy", "--case", "1x1")
    old = place.sweep().name
    place.rewrite(micro_batch_size="  micro_batch_size: [8]")
    done = place.must("sweep", "toy", "--case", "1x1")
    assert f"differs from sweep {old}" in done.stderr
    assert "+    8" in done.stderr
    assert len(list(place.state.glob("sweeps/*/sweep.json"))) == 2


def test_reformatted_playbook_goes_on(place: Place) -> None:
    """Comments and blank lines change nothing that is measured."""
    place.must("sweep", "toy", "--case", "1x1")
    path = place.folder / "playbooks" / "toy.yaml"
    path.write_text(f"# a comment\n\n{path.read_text()}")
    assert "goes on" in place.run("sweep", "toy", "--case", "1x1").stderr


def test_two_controllers_cannot_share_a_cluster(place: Place) -> None:
    """The second is told who holds the lock, exit 6, and starts nothing."""
    place.rewrite(params="params: {step_s: 0.3}")
    process = place.start("sweep", "toy")
    wait_for(lambda: running(place), "a task runs")
    second = place.must("sweep", "toy", code=6)
    assert f"LOCKED: cluster two is in use by pid {process.pid} of " in second.stderr
    assert f"`dlperf-orch stop --state {place.state}`" in second.stderr
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 143


def test_a_state_folder_that_cannot_be_written_is_told_before_anything_starts(
    place: Place,
) -> None:
    """Exit 6, no traceback."""
    done = place.must("sweep", "toy", "--state", "/proc/nowhere", code=6)
    assert "ERROR STORE-RIGHTS" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_taken_port_is_passed_over(place: Place) -> None:
    """The first candidate is held by somebody else: the next free one is used and told."""
    shown = json.loads(place.run("sweep", "toy", "--dry-run", "--json").stdout)
    first = shown["plan"]["trials"][0]["port"]
    with socket.create_server(("127.0.0.1", first)):
        place.must("sweep", "toy", "--case", "1x1", "--repeats", "1")
    assert int(str(place.events("intent")[0]["port"])) > first


def test_files_are_the_users_alone(place: Place) -> None:
    """Folders 0700 and files 0600, whatever the umask was."""
    place.must("sweep", "toy", "--case", "1x1")
    for path in place.state.rglob("*"):
        mode = path.stat().st_mode & 0o777
        assert mode == (0o700 if path.is_dir() else 0o600), path


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


def test_a_log_that_is_gone_or_edited_counts_for_nothing_and_is_measured_anew(
    place: Place,
) -> None:
    """`collect` says so and exits 3, the other trials keep their numbers; `sweep` mends it."""
    place.must("sweep", "toy")
    logs = place.sweep() / "logs"
    (logs / "1n1g" / "toy_b4_fp32_1.log").unlink()
    path = logs / "2n2g" / "toy_b4_fp32_2.log"
    path.write_bytes(path.read_bytes() + b"a line more\n")
    first, second = place.json("collect", code=3)["cases"]
    assert [trial["state"] for trial in first["trials"]] == ["invalid", "valid"]
    assert first["trials"][0]["problems"][0]["code"] == "MISSING"
    assert [trial["state"] for trial in second["trials"]] == ["valid", "invalid"]
    assert second["trials"][1]["problems"][0]["code"] == "LOG-CHANGED"
    place.must("sweep", "toy")
    assert len(place.events("intent")) == 6


def test_an_outcome_of_another_sweep_is_not_believed(place: Place) -> None:
    """Log and outcome copied from elsewhere agree with each other, but not with the events."""
    place.must("sweep", "toy", "--case", "1x1", "--repeats", "1")
    alien = place.sweep() / "logs" / "1n1g"
    kept = place.folder / "alien"
    shutil.copytree(alien, kept)
    shutil.rmtree(place.state)
    place.must("sweep", "toy", "--case", "1x1", "--repeats", "1")
    shutil.copytree(kept, place.sweep() / "logs" / "1n1g", dirs_exist_ok=True)
    trials = json.loads(place.run("collect", "--json").stdout)["cases"][0]["trials"]
    assert trials[0]["problems"][0]["code"] == "LOG-CHANGED"


def test_going_back_to_an_earlier_playbook_goes_on_with_its_sweep(place: Place) -> None:
    """A to B to A: what was measured for A counts."""
    place.must("sweep", "toy", "--case", "1x1")
    first = place.sweep().name
    before = (place.folder / "playbooks" / "toy.yaml").read_text()
    place.rewrite(micro_batch_size="  micro_batch_size: [8]")
    place.must("sweep", "toy", "--case", "1x1")
    (place.folder / "playbooks" / "toy.yaml").write_text(before)
    assert f"sweep {first} goes on" in place.run("sweep", "toy", "--case", "1x1").stderr


def test_a_damaged_sweep_stops_no_other(place: Place) -> None:
    """It is named by `list sweeps` and passed over."""
    (place.state / "sweeps" / "old-1").mkdir(parents=True)
    (place.state / "sweeps" / "old-1" / "sweep.json").write_text("{")
    place.must("sweep", "toy", "--case", "1x1", "--repeats", "1")
    rows = json.loads(place.run("list", "sweeps", "--json").stdout)
    assert {row["cluster"] for row in rows} == {"two", "damaged"}
    (whole,) = (row for row in rows if row["state"] == "readable")
    (median,) = whole["medians"]
    results = json.loads((place.state / "sweeps" / whole["sweep"] / "results.json").read_text())[
        "cases"
    ]
    assert median["median"] == results[0]["median"]
    assert (whole["trials"], whole["valid"], median["trials_valid"]) == (1, 1, 1)
    assert f"1x1 fp32 {median['median']:.2f}" in place.run("list", "sweeps").stdout
    watched = place.run("status", "toy", "--watch", "--json")
    assert set(json.loads(watched.stdout)["trials"].values()) == {"valid"}


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
    states = [event["state"] for event in place.events("outcome")]
    assert states == ["valid"] * 4
