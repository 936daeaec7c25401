"""Sweeps that are stopped or killed at any moment go on where they were."""

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from functools import partial

import pytest

from tests.conftest import Place
from tests.processes import wait_for
from tests.sweeping.kept import outcome, running, states

pytestmark = pytest.mark.cluster
PAIR = ("sweep", "toy", "--case", "2x2", "--repeats", "1")


def kill(place: Place, *words: str, step_s: float) -> None:
    """Kill the controller of a sweep while the gang of its first trial runs."""
    place.rewrite(params=f"params: {{step_s: {step_s}}}")
    process = place.start(*words)
    last = int("2x2" in words)
    wait_for(lambda: running(place, last), "all tasks run")
    process.kill()
    process.wait()
    assert place.pids() != []


def begins(place: Place, process: "subprocess.Popen[str]") -> bool:
    """Return whether a task runs, or the sweep has ended."""
    return bool(running(place)) or process.poll() is not None


@pytest.mark.parametrize(
    ("number", "times", "pause_s", "code"),
    [
        (signal.SIGINT, 1, 0.0, 130),
        (signal.SIGTERM, 2, 0.02, 143),  # `timeout` sends one to the program, one to its group
        (signal.SIGHUP, 3, 0.0, 143),  # a terminal that closes sends it by its shell and itself
        (signal.SIGHUP, 3, 0.5, 143),
    ],
)
def test_a_signal_ends_the_gang_and_the_sweep_goes_on_later(
    place: Place, number: int, times: int, pause_s: float, code: int
) -> None:
    """Several at once are one request; the same command then finishes, with nothing lost."""
    place.rewrite(params="params: {step_s: 0.3}")
    process = place.start("sweep", "toy", "--case", "1x1")
    wait_for(lambda: running(place), "a task runs")
    for _ in range(times):
        process.send_signal(number)
        time.sleep(pause_s)
    assert process.wait(30) == code
    assert place.pids() == []
    assert states(place) == ["interrupted"]
    place.must("sweep", "toy", "--case", "1x1")
    valid = [event["trial"] for event in place.events("outcome") if event["state"] == "valid"]
    assert len(valid) == len(set(valid)) == 2


def test_a_second_signal_leaves_at_once_and_says_what_is_left(place: Place) -> None:
    """Exit 7 names the attempt; the next sweep ends what is left of it."""
    place.rewrite(params="params: {behaviour: deaf}")
    process = place.start("sweep", "toy", "--case", "1x1")
    wait_for(place.stepping, "its ranks ignore SIGTERM from now on")
    for _ in range(2):
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
    assert process.wait(10) == 7
    assert process.stderr is not None
    said = process.stderr.read()
    assert "ERROR LEFTOVER" in said
    assert f"dlp-{place.sweep().name}-1n1g-toy_b4_fp32_1-a1-r0 on " in said
    assert place.pids() != []
    again = place.start("sweep", "toy", "--case", "1x1", "--max-fail", "1")
    wait_for(lambda: place.events("adopted"), "the gang is adopted")
    again.send_signal(signal.SIGTERM)
    assert again.wait(60) == 143
    assert place.pids() == []


def test_a_gang_whose_controller_was_killed_is_open_and_adopted(place: Place) -> None:
    """Status shows the command that goes on; with it, the one attempt becomes the outcome."""
    kill(place, *PAIR, step_s=0.6)
    command = " ".join(("dlperf-orch", *PAIR))
    seen, _, more = place.run("status").stdout.partition("\n")
    assert seen.endswith("on cluster two: 1 open")
    assert more.startswith(f"no controller runs; continue with: {command}\n")
    last = json.loads(place.run("status", "--watch", "--every", "0.5", "--json").stdout)
    assert (last["controller"], last["trials"]) == (None, {"2n2g-toy_b4_fp32_1": "open"})
    assert {task["phase"] for task in last["tasks"]} == {"ended"}
    assert last["continue"] == command
    # The same of a controller whose machine went down: its name stays in the file.
    (lock,) = place.state.glob("sweeps/*/lock")
    lock.write_text(lock.read_text().replace(socket.gethostname(), "elsewhere"))
    assert json.loads(place.run("status", "--watch", "--json").stdout)["continue"] == command
    place.must(*PAIR)
    assert [event["attempt"] for event in place.events("adopted")] == [1]
    assert outcome(place, "2n2g/toy_b4_fp32_1.log")["attempt"] == 1
    done = json.loads(place.run("status", "--json").stdout)
    assert (done["trials"], done["continue"]) == ({"2n2g-toy_b4_fp32_1": "valid"}, None)


def test_a_gang_that_runs_is_adopted(place: Place) -> None:
    """The trial in flight is not started anew."""
    kill(place, *PAIR, step_s=0.2)
    place.must(*PAIR)
    assert [event["attempt"] for event in place.events("adopted")] == [1]
    assert states(place) == ["valid"]
    assert place.pids() == []


def test_a_killed_supervisor_loses_the_attempt_and_nothing_else(place: Place) -> None:
    """Its program is ended too, and a new attempt gives the outcome."""
    place.rewrite(params="params: {step_s: 0.1}")
    process = place.start(*PAIR)
    wait_for(lambda: running(place, 1), "both tasks run")
    (gate,) = running(place, 1)
    os.kill(int(gate.with_suffix(".pid").read_text().split()[0]), signal.SIGKILL)
    assert process.wait(60) == 0
    assert states(place) == ["infra-lost", "valid"]
    assert place.pids() == []


def test_a_survivor_is_not_taken_for_another_process_with_its_pid(place: Place) -> None:
    """A foreign process that has the recorded pid by now is neither adopted nor ended."""
    kill(place, "sweep", "toy", "--case", "1x1", "--repeats", "1", step_s=0.2)
    (gate,) = running(place)
    said = gate.with_suffix(".pid").read_text().split()
    for pid in (int(said[0]), *place.pids()):  # the supervisor first, or it would have its say
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not place.pids(), "nothing runs")
    foreign = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    gate.with_suffix(".pid").write_text(f"{foreign.pid} {said[1]} {said[2]}\n")
    place.must("sweep", "toy", "--case", "1x1")
    assert place.events("adopted") == []
    assert foreign.poll() is None
    foreign.kill()
    foreign.wait()


def test_a_gang_of_another_sweep_is_ended_before_anything_is_measured(place: Place) -> None:
    """A dead controller's gang would take part in the next sweep's numbers."""
    kill(place, *PAIR, step_s=2)
    old = place.sweep()
    place.rewrite(params="params: {step_s: 0.01}")
    done = place.must("sweep", "toy", "--case", "1x1", "--repeats", "1")
    assert f"ended what was left of 2n2g-toy_b4_fp32_1 a1 of sweep {old.name}" in done.stderr
    assert place.pids() == []
    assert '"infra-lost"' in (old / "events.jsonl").read_text()


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
    place.must("sweep", "toy", "--case", "1x1", "--repeats", "1")
    assert list(place.state.rglob("*.new")) == []


@pytest.mark.parametrize("times", [6, pytest.param(40, marks=pytest.mark.long)])
def test_kill_at_random_moments_loses_and_doubles_nothing(place: Place, times: int) -> None:
    """SIGKILL of the sweep, often: the same set of trials, each once, and nothing left."""
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")  # noqa: T201 - shown by pytest when the test fails
    dice = random.Random(seed)
    kills = 0
    repeats = times
    began = time.monotonic()
    place.run("sweep", "toy", "--dry-run")
    start_s = time.monotonic() - began  # of the program itself: longer where the machine is slow
    while kills < times:
        process = place.start("sweep", "toy", "--repeats", str(repeats))
        if kills % 2:
            time.sleep(start_s * dice.uniform(0.5, 2.5))
        else:
            wait_for(partial(begins, place, process), "a task runs")
            time.sleep(dice.uniform(0, 0.3))
        if process.poll() is not None:
            repeats += 10  # it had finished: give it more to do
            continue
        process.kill()
        process.wait()
        kills += 1
    document = place.json("sweep", "toy", "--repeats", str(repeats))
    assert [case["trials_valid"] for case in document["cases"]] == [repeats, repeats]
    valid = [str(event["trial"]) for event in place.events("outcome") if event["state"] == "valid"]
    names = [trial["trial"] for case in document["cases"] for trial in case["trials"]]
    assert sorted(valid) == sorted(names)
    attempts = [(event["trial"], event["attempt"]) for event in place.events("intent")]
    assert len(attempts) == len(set(attempts))
    hit = [
        *place.events("adopted"),
        *(e for e in place.events("outcome") if e["state"] != "valid"),
    ]
    assert hit, "no kill came while a trial ran"
    assert place.pids() == []


def test_a_case_that_settles_needs_no_more_trials_wherever_the_sweep_was_killed(
    place: Place,
) -> None:
    """Killed in its first settled case's last trial, it goes on and leaves out the same trials."""
    often = "repeats: {min: 2, max: 4, until_interval: 99%}"
    place.rewrite(
        params="params: {step_s: 0.1}",
        method=f"method: {{{often}, canary: true, iterations: 11, window: [2, 8]}}",
    )
    process = place.start("sweep", "toy")
    second = "1n1g-toy_b4_fp32_2"
    wait_for(lambda: any(second in str(path) for path in running(place)), "the second trial runs")
    process.kill()
    process.wait()
    done = place.must("sweep", "toy", "--json")
    assert "at most" in done.stderr
    document = json.loads(done.stdout)
    of_cases = [[trial["state"] for trial in case["trials"]] for case in document["cases"]]
    assert of_cases == [["valid", "valid", "not-needed", "not-needed"]] * 2
    assert [case["settled"] for case in document["cases"]] == [True, True]
    assert [trial["place"] for trial in document["canary"]["trials"]] == ["start", "middle", "end"]
    valid = [event["trial"] for event in place.events("outcome") if event["state"] == "valid"]
    assert len(valid) == len(set(valid)) == 7
    assert valid[0] == "canary-1n1g-toy_b4_fp32_1"
    assert valid[-1] == "canary-1n1g-toy_b4_fp32_3"
    assert "7 valid, 4 not-needed" in place.run("status").stdout
    left = "7 valid already, 4 not needed, nothing left to run: --new starts a new sweep"
    assert f"11 trials, {left}" in place.must("sweep", "toy").stderr
