"""Gangs that fail, stall, run too long or print too much: each ends, and says why."""

import json
import os
import re
import time

import pytest

from tests import SAMPLES
from tests.conftest import Place
from tests.sweeping.kept import FLOOD, outcome, running
from tests.waiting import wait_for

pytestmark = pytest.mark.cluster


def test_a_failing_rank_ends_the_gang_and_is_reported(place: Place) -> None:
    """The trial failed with that rank's last lines; the other node's tasks are gone."""
    place.rewrite(params="params: {behaviour: fails}", repeats="")
    began = time.monotonic()
    done = place.must("sweep", "toy", "--case", "2x2", "--max-fail", "1", code=3)
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
    place.must("sweep", "toy", "--case", "1x1", "--repeats", "1", code=3)
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
    """SIGKILL comes from outside: two more attempts, then the trial is lost."""
    place.rewrite(params="params: {behaviour: killed}")
    place.must("sweep", "toy", "--case", "1x1", "--max-fail", "1", code=3)
    found = outcome(place, "1n1g/toy_b4_fp32_1.log")
    assert (found["state"], found["attempt"]) == ("infra-lost", 3)
    assert "KILLED" in str(found["problems"])
    assert place.pids() == []


def test_an_agent_that_crashes_has_failed_and_is_not_run_again(place: Place) -> None:
    """A segmentation fault is the program's own: another attempt would only repeat it."""
    place.rewrite(params="params: {behaviour: crashes}")
    place.must("sweep", "toy", "--case", "1x1", "--max-fail", "1", code=3)
    found = outcome(place, "1n1g/toy_b4_fp32_1.log")
    assert (found["state"], found["attempt"]) == ("failed", 1)
    assert "exit status 139 (SIGSEGV)" in str(found["problems"])
    assert place.pids() == []


def test_a_container_that_lost_its_gpus_is_tried_again(place: Place) -> None:
    """The program is not to blame: a new attempt has the GPUs again, and its number counts."""
    place.rewrite(params="params: {behaviour: detached}")
    done = place.run("sweep", "toy", "--case", "1x1", "--repeats", "1")
    said = [(event["state"], event["code"]) for event in place.events("outcome")]
    assert said == [("infra-lost", "GPU-DETACHED"), ("valid", "")]
    assert done.returncode == 0, done.stderr
    assert place.pids() == []


def test_a_supervisor_that_cannot_be_identified_leaves_nothing_at_its_gate(place: Place) -> None:
    """Its start time is not told: START says what the pid file holds, and the gang ends."""
    stubs = place.folder / "stubs"
    stubs.mkdir()
    without = """/bin/sed -i 's/"[$][$] [$]start /"$$ /' "$1" """
    stub = f'#!/bin/sh\ncase $1 in */supervise.sh) {without};; esac\nexec /bin/sh "$@"\n'
    (stubs / "sh").write_text(stub)
    (stubs / "sh").chmod(0o755)
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
    place.must("sweep", "toy", "--case", "2x2", code=3)
    found = outcome(place, "2n2g/toy_b4_fp32_1.log")
    assert found["attempt"] == 2
    words = "no task printed anything for 1 s, which is method.stall_limit_s"
    assert found["problems"] == [{"code": "STALLED", "message": words}]
    assert place.pids() == []


def test_the_time_limit_is_kept(place: Place) -> None:
    """A gang that goes on for too long is ended by its supervisors."""
    method = "method: {repeats: 1, iterations: 11, window: [2, 8], time_limit_s: 1}"
    place.rewrite(params="params: {behaviour: hangs}", method=method)
    place.must("sweep", "toy", "--case", "2x2", code=3)
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
    done = place.must("sweep", "toy", "--case", "1x1", "--repeats", "2", "--json", code=3)
    trials = json.loads(done.stdout)["cases"][0]["trials"]
    assert {trial["state"] for trial in trials} == {"invalid"}
    assert {problem["code"] for problem in trials[0]["problems"]} >= {"TRUNCATED"}
    assert json.loads(done.stdout)["cases"][0]["median"] is None


@pytest.mark.parametrize("left", [3 << 20, 1 << 40])
def test_program_that_floods_its_log_is_told_so(place: Place, left: int) -> None:
    """Ended or still printing: one attempt, its log cut at the inventory's max_log_size."""
    with open(place.folder / "inventory/two.yaml", "a") as file:
        file.write("max_log_size: 1m\n")
    (place.folder / "images/toy/program.py").write_text(FLOOD.format(left=left))
    done = place.must("sweep", "toy", "--repeats", "1", "--case", "2x2", code=3)
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
    refused = place.must("check", str(path), code=2)
    assert "max_log_size: got '1 GiB'; needed a whole number with k, m, g or t" in refused.stderr
    path.write_text(text + "max_log_size: 512m\n")
    place.must("check", str(path))
