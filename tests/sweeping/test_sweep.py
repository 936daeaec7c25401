"""Real gangs of real processes: how they run, fail, stall, are stopped, killed and go on."""

import contextlib
import json
import os
import pty
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests import SAMPLES
from tests.conftest import Place
from tests.waiting import wait_for

pytestmark = pytest.mark.cluster


def events(place: Place, kind: str) -> list[dict[str, object]]:
    lines = (place.sweep() / "events.jsonl").read_text().splitlines()
    return [event for event in map(json.loads, lines) if event["event"] == kind]


def outcome(place: Place, log: str) -> dict[str, object]:
    found = json.loads((place.sweep() / "logs" / log).with_suffix(".json").read_text())
    assert isinstance(found, dict)
    return found


def running(place: Place, rank: int = 0) -> list[Path]:
    """Gates that have opened for tasks that have not ended."""
    opened = place.opened(rank)
    return [path for path in opened if not path.with_suffix(".end").exists() and path.exists()]


def test_sweep_runs_every_trial_and_leaves_nothing_running(place: Place) -> None:
    """All trials of both cases are valid, and the table, the report and the logs are there."""
    done = place.run("sweep", "toy", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert [case["trials_valid"] for case in document["cases"]] == [2, 2]
    assert document["shared_machine"] is True
    assert document["cases"][1]["case"]["world_size"] == 4
    assert place.pids() == []
    report = (place.sweep() / "report.md").read_text()
    assert report.index("SHARED-MACHINE") < report.index("## Final Result")
    names = sorted(str(path.relative_to(place.sweep())) for path in place.sweep().rglob("*.log"))
    assert "logs/2n2g/toy_b4_fp32_1.log" in names
    assert "attempts/2n2g-toy_b4_fp32_1/a1/r1.log" in names


def test_a_program_that_prints_on_its_last_node_is_measured_there(place: Place) -> None:
    """As Megatron-LM's does: the log that counts is the last node's, byte for byte."""
    place.rewrite(workload="workload: toy_last")
    done = place.run("sweep", "toy", "--json", "--repeats", "1")
    assert done.returncode == 0, done.stderr
    (two,) = [each for each in json.loads(done.stdout)["cases"] if each["case"]["nodes"] == 2]
    assert two["trials_valid"] == 1
    kept = (place.sweep() / "logs/2n2g/toy_b4_fp32_1.log").read_bytes()
    attempt = place.sweep() / "attempts/2n2g-toy_b4_fp32_1/a1"
    assert kept == (attempt / "r1.log").read_bytes()
    assert b"Iteration: 10 " in kept
    assert b"Iteration" not in (attempt / "r0.log").read_bytes()


def test_what_ran_is_what_the_dry_run_showed(place: Place) -> None:
    """Command lines, environments and node ranks of the plan are those of the attempts."""
    shown = json.loads(place.run("sweep", "toy", "--dry-run", "--json").stdout)["plan"]["trials"]
    assert not place.state.exists()
    assert place.run("sweep", "toy").returncode == 0
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
    assert place.run("sweep", "toy").returncode == 0
    before = (place.sweep() / "results.json").read_bytes()
    assert place.run("sweep", "toy").returncode == 0
    assert (place.sweep() / "results.json").read_bytes() == before
    assert len(events(place, "intent")) == 4
    assert place.run("collect").returncode == 0
    assert (place.sweep() / "results.json").read_bytes() == before


def test_more_repeats_and_single_cases_extend_a_sweep(place: Place) -> None:
    """--case measures only its cases, --repeats adds trials, all in one sweep."""
    assert place.run("sweep", "toy", "--case", "1x1").returncode == 0
    assert {event["trial"] for event in events(place, "intent")} == {
        "1n1g-toy_b4_fp32_1",
        "1n1g-toy_b4_fp32_2",
    }
    assert place.run("sweep", "toy", "--repeats", "3").returncode == 0
    assert len(events(place, "intent")) == 6
    results = json.loads((place.sweep() / "results.json").read_text())
    assert [case["trials_valid"] for case in results["cases"]] == [3, 3]


def test_edited_playbook_starts_a_new_sweep_and_says_what_differs(place: Place) -> None:
    """The old sweep is named, the difference shown, and both are kept."""
    assert place.run("sweep", "toy", "--case", "1x1").returncode == 0
    old = place.sweep().name
    place.rewrite(micro_batch_size="  micro_batch_size: [8]")
    done = place.run("sweep", "toy", "--case", "1x1")
    assert done.returncode == 0
    assert f"differs from sweep {old}" in done.stderr
    assert "+    8" in done.stderr
    assert len(list(place.state.glob("sweeps/*/sweep.json"))) == 2


def test_reformatted_playbook_goes_on(place: Place) -> None:
    """Comments and blank lines change nothing that is measured."""
    assert place.run("sweep", "toy", "--case", "1x1").returncode == 0
    path = place.folder / "playbooks" / "toy.yaml"
    path.write_text(f"# a comment\n\n{path.read_text()}")
    assert "goes on" in place.run("sweep", "toy", "--case", "1x1").stderr


def test_a_failing_rank_ends_the_gang_and_is_reported(place: Place) -> None:
    """The trial failed with that rank's last lines; the other node's tasks are gone."""
    place.rewrite(params="params: {behaviour: fails}", repeats="")
    began = time.monotonic()
    done = place.run("sweep", "toy", "--case", "2x2", "--max-fail", "1")
    assert done.returncode == 3
    assert time.monotonic() - began < 15
    found = outcome(place, "2n2g/toy_b4_fp32_1.log")
    assert found["state"] == "failed"
    assert re.search(r"node \w+, node_rank 1: exit status 1", str(found["problems"]))
    assert "this rank fails on purpose" in str(found["problems"])
    assert "--max-fail 1" in done.stderr
    assert place.pids() == []


def test_a_rank_that_fails_far_above_its_agents_last_words_is_shown(place: Place) -> None:
    """As under torchrun, which prints a Traceback of its own and a table after that of the rank."""
    said = SAMPLES / "failed-torchrun" / "one-rank.log"
    program = f"import sys\nprint(open({str(said)!r}).read())\nsys.exit(1)\n"
    (place.folder / "images/toy/program.py").write_text(program)
    done = place.run("sweep", "toy", "--case", "1x1", "--repeats", "1")
    assert done.returncode == 3
    (problem,) = json.loads((place.sweep() / "logs/1n1g/toy_b4_fp32_1.json").read_text())[
        "problems"
    ]
    assert problem["code"] == "PROGRAM-FAILED"
    first, last = problem["message"].split("\nits last lines:\n")
    assert first.splitlines() == [
        "node left, node_rank 0: exit status 1; its first Traceback ends with:",
        '  File "/workspace/p.py", line 5, in inner',
        '    raise RuntimeError("mat1 and mat2 shapes cannot be multiplied (64x8 and 9x5)")',
        "RuntimeError: mat1 and mat2 shapes cannot be multiplied (64x8 and 9x5)",
    ]
    assert "Root Cause (first observed failure):" in last


def test_a_killed_agent_is_tried_again_as_a_new_attempt(place: Place) -> None:
    """Exit status 128 and more is the machine's doing: two more attempts, then it is told."""
    place.rewrite(params="params: {behaviour: killed}")
    done = place.run("sweep", "toy", "--case", "1x1", "--max-fail", "1")
    assert done.returncode == 3
    found = outcome(place, "1n1g/toy_b4_fp32_1.log")
    assert (found["state"], found["attempt"]) == ("infra-lost", 3)
    assert "KILLED" in str(found["problems"])
    assert place.pids() == []


def test_a_container_that_lost_its_gpus_is_tried_again(place: Place) -> None:
    """The program is not to blame: a new attempt has the GPUs again, and its number counts."""
    place.rewrite(params="params: {behaviour: detached}")
    done = place.run("sweep", "toy", "--case", "1x1", "--repeats", "1")
    said = [(event["state"], event["code"]) for event in events(place, "outcome")]
    assert said == [("infra-lost", "GPU-DETACHED"), ("valid", "")]
    assert done.returncode == 0, done.stderr
    assert place.pids() == []


def test_a_supervisor_that_cannot_be_identified_leaves_nothing_at_its_gate(place: Place) -> None:
    """Its start time is not found out: START says what the pid file holds, and the gang ends."""
    stubs = place.folder / "stubs"
    stubs.mkdir()
    stub = '#!/bin/sh\n[ "$2" = -f20 ] || exec /usr/bin/cut "$@"\n'
    (stubs / "cut").write_text(stub)
    (stubs / "cut").chmod(0o755)
    path = f"{stubs}:{os.environ['PATH']}"
    done = place.run("sweep", "toy", "--case", "1x1", "--repeats", "1", PATH=path)
    assert place.pids() == []
    assert done.returncode == 3, done.stderr
    found = outcome(place, "1n1g/toy_b4_fp32_1.log")
    assert found["state"] == "infra-lost"
    assert "r0.pid: " in str(found["problems"])
    assert "needed pid, start time and boot id" in str(found["problems"])


def test_a_gang_that_prints_nothing_is_stalled(place: Place) -> None:
    """No new line for the stall limit ends the gang; it is tried once more."""
    method = "method: {repeats: 1, iterations: 11, window: [2, 8], stall_limit_s: 1}"
    place.rewrite(params="params: {behaviour: hangs}", method=method)
    done = place.run("sweep", "toy", "--case", "2x2")
    assert done.returncode == 3
    found = outcome(place, "2n2g/toy_b4_fp32_1.log")
    assert found["attempt"] == 2
    words = "no task printed anything for 1 s, which is method.stall_limit_s"
    assert found["problems"] == [{"code": "STALLED", "message": words}]
    assert place.pids() == []


def test_the_time_limit_is_kept(place: Place) -> None:
    """A gang that goes on for too long is ended by its supervisors."""
    method = "method: {repeats: 1, iterations: 11, window: [2, 8], time_limit_s: 1}"
    place.rewrite(params="params: {behaviour: hangs}", method=method)
    assert place.run("sweep", "toy", "--case", "2x2").returncode == 3
    found = outcome(place, "2n2g/toy_b4_fp32_1.log")
    words = "it ran longer than 1 s, which is method.time_limit_s"
    assert found["problems"] == [{"code": "DEADLINE", "message": words}]
    assert place.pids() == []


def test_the_time_limit_is_kept_without_the_controller(place: Place) -> None:
    """A supervisor ends its program and writes how, though nobody is there to ask for it."""
    method = "method: {repeats: 1, iterations: 11, window: [2, 8], time_limit_s: 3}"
    place.rewrite(params="params: {behaviour: hangs}", method=method)
    process = place.start("sweep", "toy", "--case", "2x2")
    wait_for(lambda: running(place, 1), "both tasks run")
    process.kill()
    process.wait()
    wait_for(lambda: not place.pids(), "the supervisors have ended everything", 20)
    ends = [path.read_text() for path in (place.files or place.state).rglob("r?.exit")]
    assert [text.split()[1] for text in ends] == ["deadline", "deadline"]


def test_a_log_cut_short_is_invalid_and_never_zero(place: Place) -> None:
    """A program that ends well but early gives no number."""
    place.rewrite(params="params: {behaviour: short}")
    done = place.run("sweep", "toy", "--case", "1x1", "--repeats", "2", "--json")
    assert done.returncode == 3
    trials = json.loads(done.stdout)["cases"][0]["trials"]
    assert {trial["state"] for trial in trials} == {"invalid"}
    assert {problem["code"] for problem in trials[0]["problems"]} >= {"TRUNCATED"}
    assert json.loads(done.stdout)["cases"][0]["median"] is None


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143)]
)
def test_a_signal_ends_the_gang_and_the_sweep_goes_on_later(
    place: Place, number: int, code: int
) -> None:
    """Nothing runs on after the signal; the same command then finishes, with nothing lost."""
    place.rewrite(params="params: {step_s: 0.1}")
    process = place.start("sweep", "toy")
    wait_for(lambda: running(place), "a task runs")
    process.send_signal(number)
    assert process.wait(30) == code
    assert place.pids() == []
    assert [event["state"] for event in events(place, "outcome")][-1] == "interrupted"
    assert place.run("sweep", "toy").returncode == 0
    valid = [event["trial"] for event in events(place, "outcome") if event["state"] == "valid"]
    assert len(valid) == len(set(valid)) == 4


def test_a_second_signal_leaves_at_once_and_says_what_is_left(place: Place) -> None:
    """Exit 7 names the attempt; the next sweep ends what is left of it."""
    place.rewrite(params="params: {behaviour: deaf}")
    process = place.start("sweep", "toy", "--case", "1x1")
    wait_for(lambda: running(place), "a task runs")
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    assert process.wait(10) == 7
    assert process.stderr is not None
    assert "ERROR LEFTOVER" in process.stderr.read()
    assert place.pids() != []
    again = place.start("sweep", "toy", "--case", "1x1", "--max-fail", "1")
    wait_for(lambda: events(place, "adopted"), "the gang is adopted")
    again.send_signal(signal.SIGTERM)
    assert again.wait(60) == 143
    assert place.pids() == []


def test_a_gang_whose_controller_was_killed_is_adopted(place: Place) -> None:
    """The trial in flight is not started anew: its one attempt becomes the outcome."""
    place.rewrite(params="params: {step_s: 0.2}")
    process = place.start("sweep", "toy", "--case", "2x2", "--repeats", "1")
    wait_for(lambda: running(place, 1), "both tasks run")
    process.kill()
    process.wait()
    assert place.pids() != []
    assert place.run("sweep", "toy", "--case", "2x2").returncode == 0
    assert [event["attempt"] for event in events(place, "adopted")] == [1]
    assert outcome(place, "2n2g/toy_b4_fp32_1.log")["attempt"] == 1
    assert place.pids() == []


def test_a_killed_supervisor_loses_the_attempt_and_nothing_else(place: Place) -> None:
    """Its program is ended too, and a new attempt gives the outcome."""
    place.rewrite(params="params: {step_s: 0.1}")
    process = place.start("sweep", "toy", "--case", "2x2", "--repeats", "1")
    wait_for(lambda: running(place, 1), "both tasks run")
    (gate,) = running(place, 1)
    os.kill(int(gate.with_suffix(".pid").read_text().split()[0]), signal.SIGKILL)
    assert process.wait(60) == 0
    states = [event["state"] for event in events(place, "outcome")]
    assert states[:2] == ["infra-lost", "valid"]
    assert place.pids() == []


def test_a_survivor_is_not_taken_for_another_process_with_its_pid(place: Place) -> None:
    """A foreign process that has the recorded pid by now is neither adopted nor ended."""
    place.rewrite(params="params: {step_s: 0.2}")
    process = place.start("sweep", "toy", "--case", "1x1", "--repeats", "1")
    wait_for(lambda: running(place), "the task runs")
    process.kill()
    process.wait()
    (gate,) = running(place)
    said = gate.with_suffix(".pid").read_text().split()
    for pid in (int(said[0]), *place.pids()):  # the supervisor first, or it would have its say
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not place.pids(), "nothing runs")
    foreign = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    gate.with_suffix(".pid").write_text(f"{foreign.pid} {said[1]} {said[2]}\n")
    assert place.run("sweep", "toy", "--case", "1x1").returncode == 0
    assert events(place, "adopted") == []
    assert foreign.poll() is None
    foreign.kill()
    foreign.wait()


def test_two_controllers_cannot_share_a_cluster(place: Place) -> None:
    """The second is told who holds the lock, exit 6, and starts nothing."""
    place.rewrite(params="params: {step_s: 0.3}")
    process = place.start("sweep", "toy")
    wait_for(lambda: running(place), "a task runs")
    second = place.run("sweep", "toy")
    assert second.returncode == 6
    assert f"LOCKED: cluster two is in use by pid {process.pid} of " in second.stderr
    assert f"`dlperf-orch stop --state {place.state}`" in second.stderr
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 143


def test_a_torn_last_event_is_cut_off_and_a_damaged_one_refused(place: Place) -> None:
    """A crash tears only what was not acknowledged; anything else is damage, and is kept."""
    assert place.run("sweep", "toy", "--case", "1x1").returncode == 0
    path = place.sweep() / "events.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"at": "2026-')
    assert place.run("sweep", "toy", "--case", "1x1").returncode == 0
    assert path.read_bytes() == whole + b'{"at": "2026-'  # read past, and cut at the next append
    path.write_bytes(b"\xff" + whole)
    damaged = place.run("sweep", "toy")
    assert damaged.returncode == 6
    assert "STORE-DAMAGED" in damaged.stderr
    assert path.read_bytes() == b"\xff" + whole


def test_a_state_folder_that_cannot_be_written_is_told_before_anything_starts(
    place: Place,
) -> None:
    """Exit 6, no traceback."""
    done = place.run("sweep", "toy", "--state", "/proc/nowhere")
    assert done.returncode == 6
    assert "ERROR STORE-RIGHTS" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_taken_port_is_passed_over(place: Place) -> None:
    """The first candidate is held by somebody else: the next free one is used and told."""
    shown = json.loads(place.run("sweep", "toy", "--dry-run", "--json").stdout)
    first = shown["plan"]["trials"][0]["port"]
    with socket.create_server(("127.0.0.1", first)):
        assert place.run("sweep", "toy", "--case", "1x1", "--repeats", "1").returncode == 0
    assert int(str(events(place, "intent")[0]["port"])) > first


def test_files_are_the_users_alone(place: Place) -> None:
    """Folders 0700 and files 0600, whatever the umask was."""
    assert place.run("sweep", "toy", "--case", "1x1").returncode == 0
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


def test_a_gang_of_another_sweep_is_ended_before_anything_is_measured(place: Place) -> None:
    """A dead controller's gang would take part in the next sweep's numbers."""
    place.rewrite(params="params: {step_s: 2}")
    process = place.start("sweep", "toy", "--case", "2x2")
    wait_for(lambda: running(place, 1), "both tasks run")
    process.kill()
    process.wait()
    old = place.sweep()
    place.rewrite(params="params: {step_s: 0.01}")
    done = place.run("sweep", "toy", "--case", "1x1", "--repeats", "1")
    assert done.returncode == 0, done.stderr
    assert f"ended what was left of 2n2g-toy_b4_fp32_1 a1 of sweep {old.name}" in done.stderr
    assert place.pids() == []
    assert '"infra-lost"' in (old / "events.jsonl").read_text()


def test_code_edited_while_a_trial_runs_makes_it_invalid(place: Place) -> None:
    """A number of two programs is a number of none; a later collect still knows it."""
    place.rewrite(params="params: {step_s: 0.2}")
    process = place.start("sweep", "toy", "--case", "1x1", "--max-fail", "1")
    wait_for(lambda: running(place), "the task runs")
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
    assert place.run("sweep", "toy").returncode == 0
    logs = place.sweep() / "logs"
    (logs / "1n1g" / "toy_b4_fp32_1.log").unlink()
    path = logs / "2n2g" / "toy_b4_fp32_2.log"
    path.write_bytes(path.read_bytes() + b"a line more\n")
    done = place.run("collect", "--json")
    assert done.returncode == 3
    first, second = json.loads(done.stdout)["cases"]
    assert [trial["state"] for trial in first["trials"]] == ["invalid", "valid"]
    assert first["trials"][0]["problems"][0]["code"] == "MISSING"
    assert [trial["state"] for trial in second["trials"]] == ["valid", "invalid"]
    assert second["trials"][1]["problems"][0]["code"] == "LOG-CHANGED"
    assert place.run("sweep", "toy").returncode == 0
    assert len(events(place, "intent")) == 6


def test_an_outcome_of_another_sweep_is_not_believed(place: Place) -> None:
    """Log and outcome copied from elsewhere agree with each other, but not with the events."""
    assert place.run("sweep", "toy", "--case", "1x1", "--repeats", "1").returncode == 0
    alien = place.sweep() / "logs" / "1n1g"
    kept = place.folder / "alien"
    shutil.copytree(alien, kept)
    shutil.rmtree(place.state)
    assert place.run("sweep", "toy", "--case", "1x1", "--repeats", "1").returncode == 0
    shutil.copytree(kept, place.sweep() / "logs" / "1n1g", dirs_exist_ok=True)
    trials = json.loads(place.run("collect", "--json").stdout)["cases"][0]["trials"]
    assert trials[0]["problems"][0]["code"] == "LOG-CHANGED"


def test_going_back_to_an_earlier_playbook_goes_on_with_its_sweep(place: Place) -> None:
    """A to B to A: what was measured for A counts."""
    assert place.run("sweep", "toy", "--case", "1x1").returncode == 0
    first = place.sweep().name
    before = (place.folder / "playbooks" / "toy.yaml").read_text()
    place.rewrite(micro_batch_size="  micro_batch_size: [8]")
    assert place.run("sweep", "toy", "--case", "1x1").returncode == 0
    (place.folder / "playbooks" / "toy.yaml").write_text(before)
    assert f"sweep {first} goes on" in place.run("sweep", "toy", "--case", "1x1").stderr


def test_a_damaged_sweep_stops_no_other(place: Place) -> None:
    """It is named by `list sweeps` and passed over."""
    (place.state / "sweeps" / "old-1").mkdir(parents=True)
    (place.state / "sweeps" / "old-1" / "sweep.json").write_text("{")
    assert place.run("sweep", "toy", "--case", "1x1", "--repeats", "1").returncode == 0
    rows = json.loads(place.run("list", "sweeps", "--json").stdout)
    assert {row["cluster"] for row in rows} == {"two", "damaged"}


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
    states = [event["state"] for event in events(place, "outcome")]
    assert states == ["valid"] * 4


def test_a_kill_while_a_file_is_written_leaves_no_half_of_it(place: Place) -> None:
    """SIGKILL just before a rename: the next to hold the sweep's lock removes what was not done."""
    inject = "inject=rename:signal=KILL:when=3"
    killed = subprocess.run(
        ["strace", "-qq", "-e", "trace=rename", "-e", inject, *place.program, "sweep", "toy"],
        cwd=place.folder,
        env=place.env(),
        capture_output=True,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL
    assert list(place.state.rglob("*.new")) != []
    assert place.run("sweep", "toy", "--case", "1x1", "--repeats", "1").returncode == 0
    assert list(place.state.rglob("*.new")) == []


def test_kill_at_random_moments_loses_and_doubles_nothing(place: Place) -> None:
    """SIGKILL of the sweep, 40 times: the same set of trials, each once, and nothing left."""
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")  # noqa: T201 - shown by pytest when the test fails
    dice = random.Random(seed)
    kills = 0
    repeats = 30
    began = time.monotonic()
    place.run("sweep", "toy", "--dry-run")
    start_s = time.monotonic() - began  # of the program itself: longer where the machine is slow
    while kills < 40:
        process = place.start("sweep", "toy", "--repeats", str(repeats))
        time.sleep(start_s * dice.uniform(0.5, 2.5))
        if process.poll() is not None:
            repeats += 10  # it had finished: give it more to do
            continue
        process.kill()
        process.wait()
        kills += 1
    done = place.run("sweep", "toy", "--repeats", str(repeats), "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert [case["trials_valid"] for case in document["cases"]] == [repeats, repeats]
    valid = [str(event["trial"]) for event in events(place, "outcome") if event["state"] == "valid"]
    names = [trial["trial"] for case in document["cases"] for trial in case["trials"]]
    assert sorted(valid) == sorted(names)
    attempts = [(event["trial"], event["attempt"]) for event in events(place, "intent")]
    assert len(attempts) == len(set(attempts))
    hit = [
        *events(place, "adopted"),
        *(e for e in events(place, "outcome") if e["state"] != "valid"),
    ]
    assert hit, "no kill came while a trial ran"
    assert place.pids() == []


FLOOD = """\
import os, sys
head = b"DLL begins\\n"
os.write(1, head)
left = {left}
while left:
    left -= os.write(1, b"x" * min(left, 1 << 16))
"""


@pytest.mark.parametrize("left", [3 << 20, 1 << 40])
def test_program_that_floods_its_log_is_told_so(place: Place, left: int) -> None:
    """Ended or still printing: one attempt, its log cut at the inventory's max_log_size."""
    with open(place.folder / "inventory/two.yaml", "a") as file:
        file.write("max_log_size: 1m\n")
    (place.folder / "images/toy/program.py").write_text(FLOOD.format(left=left))
    done = place.run("sweep", "toy", "--repeats", "1", "--case", "2x2")
    assert done.returncode == 3
    assert "at most 1 MiB of each task by max_log_size" in done.stderr + done.stdout
    kept = outcome(place, "2n2g/toy_b4_fp32_1.log")
    assert (kept["state"], kept["attempt"]) == ("failed", 1)
    assert "'LOG-TOO-LARGE'" in str(kept["problems"])
    (folder,) = place.sweep().glob("attempts/*/a*")
    logs = [folder / f"r{rank}.log" for rank in (0, 1)]
    assert max(log.stat().st_size for log in logs) == 1 << 20
    # A rank that is ended with the first may not have come so far.
    assert all(b"DLL begins\nx".startswith(log.read_bytes()[:12]) for log in logs)


def test_max_log_size_is_a_size(place: Place) -> None:
    """A number with its unit, as shm_size has it."""
    path = place.folder / "inventory/two.yaml"
    text = path.read_text()
    path.write_text(text + "max_log_size: 1 GiB\n")
    refused = place.run("check", str(path))
    assert refused.returncode == 2
    assert "max_log_size: got '1 GiB'; needed a whole number with k, m, g or t" in refused.stderr
    path.write_text(text + "max_log_size: 512m\n")
    assert place.run("check", str(path)).returncode == 0
