"""Ctrl-C, SIGTERM, closed terminals: nothing runs on, or it is named; nothing is lost."""

import contextlib
import json
import os
import pty
import random
import shlex
import shutil
import signal
import subprocess
import time
from functools import partial
from pathlib import Path

import pytest

from tests.conftest import PROGRAM, Place
from tests.waiting import wait_for

pytestmark = pytest.mark.cluster
SLOW = "params: {step_s: 0.3}"


def outcomes(place: Place) -> list[str]:
    """States of all attempts that have an outcome, in order."""
    return [event["state"] for event in place.events("outcome")]


def runs(place: Place) -> bool:
    """Whether a task's gate has opened and the task has not ended."""
    opened = place.opened()
    return any(not path.with_suffix(".end").exists() and path.exists() for path in opened)


def catches(pid: int, number: int) -> bool:
    """Whether a process has a handler for a signal."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    (mask,) = (int(line.split()[1], 16) for line in lines if line.startswith("SigCgt:"))
    return bool(mask >> number - 1 & 1)


def is_over(place: Place) -> bool:
    """Whether the sweep ended what it ran, and said so in its events."""
    return bool(outcomes(place)) and not place.pids()


def goes_on(place: Place) -> None:
    """The same command finishes the sweep, every trial valid once."""
    place.must("sweep", "toy")
    assert outcomes(place).count("valid") == 4


def typed(*words: str) -> str:
    """The command as a person types it into a shell."""
    return shlex.join([*PROGRAM, *words])


@pytest.mark.parametrize("pause_s", [0.0, pytest.param(0.05, marks=pytest.mark.long), 0.5])
def test_two_hangups_are_one_request(place: Place, pause_s: float) -> None:
    """A terminal that closes sends SIGHUP by its shell and by the kernel: the sweep ends well."""
    place.rewrite(params=SLOW)
    process = place.start("sweep", "toy")
    wait_for(lambda: runs(place), "a task runs")
    for _ in range(3):
        process.send_signal(signal.SIGHUP)
        time.sleep(pause_s)
    assert process.wait(30) == 143
    assert place.pids() == []
    assert outcomes(place) == ["interrupted"]
    goes_on(place)


def test_timeouts_two_sigterms_are_one_request(place: Place) -> None:
    """`timeout` sends one to the program and one to its own group."""
    place.rewrite(params=SLOW)
    process = place.start("sweep", "toy")
    wait_for(lambda: runs(place), "a task runs")
    for _ in range(2):
        process.send_signal(signal.SIGTERM)
        time.sleep(0.02)
    assert process.wait(30) == 143
    assert outcomes(place) == ["interrupted"]


def test_a_sweep_under_nohup_runs_to_its_end(place: Place) -> None:
    """A SIGHUP that was ignored at the start stays ignored."""
    process = subprocess.Popen(
        ["nohup", *PROGRAM, "sweep", "toy"],
        cwd=place.folder,
        env=place.env(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_for(lambda: runs(place), "a task runs")
    process.send_signal(signal.SIGHUP)
    assert process.wait(60) == 0
    assert outcomes(place) == ["valid"] * 4


@pytest.mark.skipif(not shutil.which("tmux"), reason="tmux, a terminal emulator, is not installed")
def test_a_terminal_emulator_closed_in_the_middle_leaves_nothing_running(place: Place) -> None:
    """tmux ends with its windows: the sweep ends its gang, and the same command goes on."""
    place.rewrite(params=SLOW)
    name = f"dlperf-{os.getpid()}-{place.folder.parent.name}"
    tmux = ("tmux", "-L", name, "-f", "/dev/null")
    shell = ("bash", "--norc", "--noprofile", "-i")
    subprocess.run(
        [*tmux, "new-session", "-d", "-x", "100", "-y", "30", "-c", place.folder, *shell],
        env=place.env(),
        check=True,
    )
    try:
        words = typed("sweep", "toy")
        subprocess.run([*tmux, "send-keys", words, "Enter"], check=True)
        wait_for(lambda: runs(place), "a task runs")
    finally:
        subprocess.run([*tmux, "kill-server"], check=True)
    wait_for(lambda: is_over(place), "the sweep has ended what it ran", 30)
    assert outcomes(place) == ["interrupted"]
    goes_on(place)


def test_a_shells_terminal_that_vanishes_leaves_nothing_running(place: Place) -> None:
    """The shell leads the session and passes the hang-up on to its jobs, as the kernel does."""
    place.rewrite(params=SLOW)
    shell, terminal = pty.fork()
    if shell == 0:
        os.chdir(place.folder)
        os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"], place.env())
    os.write(terminal, typed("sweep", "toy").encode() + b"\n")
    os.set_blocking(terminal, False)

    def seen() -> bool:
        with contextlib.suppress(BlockingIOError):
            os.read(terminal, 65536)
        return runs(place)

    wait_for(seen, "a task runs")
    os.close(terminal)
    os.waitpid(shell, 0)
    wait_for(lambda: is_over(place), "the sweep has ended what it ran", 30)
    assert outcomes(place) == ["interrupted"]
    goes_on(place)


@pytest.mark.parametrize("times", [2, 5, pytest.param(8, marks=pytest.mark.long)])
@pytest.mark.parametrize("behaviour", ["good", "deaf"])
def test_many_ctrl_c_end_in_good_order_or_with_the_list_of_what_is_left(
    place: Place, times: int, behaviour: str
) -> None:
    """Pressed at any moment and at any pace; never death by SIGINT, never a false all-clear."""
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")  # noqa: T201 - shown by pytest when the test fails
    dice = random.Random(seed)
    place.rewrite(params=f"params: {{behaviour: {behaviour}, step_s: 0.02}}")
    for _ in range(4):
        process = place.start("sweep", "toy")
        wait_for(partial(catches, process.pid, signal.SIGTERM), "the program has begun")
        time.sleep(dice.choice([0.0, dice.uniform(0, 1), dice.uniform(1, 4)]))
        for _ in range(times):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGINT)
            time.sleep(dice.choice([0.0, dice.uniform(0, 0.05), dice.uniform(0, 0.5)]))
        code = process.wait(60)
        assert process.stderr is not None
        said = process.stderr.read()
        assert code in (0, 7, 130), said
        assert "Traceback" not in said
        if code == 7:
            assert "ERROR LEFTOVER" in said
            assert "dlperf-orch stop" in said
            assert all(token(pid) in said for pid in place.pids())
        elif code == 130:
            assert "ERROR INTERRUPTED" in said
            assert place.pids() == [], said
    done = place.run("stop")
    assert done.returncode in (0, 2), done.stderr
    assert place.pids() == []


@pytest.mark.parametrize("words", [("sweep", "toy"), ("collect",), ("provision", "two")])
def test_ctrl_c_during_the_imports_is_told(place: Place, words: tuple[str, ...]) -> None:
    """No traceback and no silence: the reason in words, and as the one JSON document."""
    with subprocess.Popen(
        [*PROGRAM, *words, "--json"],
        cwd=place.folder,
        env=place.env(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        wait_for(partial(catches, process.pid, signal.SIGTERM), "the program has begun")
        process.send_signal(signal.SIGINT)
        out, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert said == "ERROR INTERRUPTED: stopped by Ctrl-C. Fix: run the same command to resume.\n"
    assert json.loads(out)["errors"][0]["code"] == "INTERRUPTED"


# A module's import that Ctrl-C cuts short, once: what it left half-made stays.
CUT_SHORT = """\
import os, signal, sys


class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "yaml.tokens":
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)


sys.meta_path.insert(0, Finder())
"""


def test_an_import_that_ctrl_c_cuts_short_is_no_bug(place: Place) -> None:
    """What is said, and what looks for leftovers before it is, was imported before."""
    (place.folder / "sitecustomize.py").write_text(CUT_SHORT)
    path = f"{place.folder}:{place.env()['PYTHONPATH']}"
    done = place.run("sweep", "toy", PYTHONPATH=path)
    assert (done.returncode, "ERROR INTERRUPTED" in done.stderr) == (130, True), done.stderr


def test_a_sweep_that_is_stopped_early_tells_what_an_earlier_one_left(place: Place) -> None:
    """Before it has looked at anything: what runs with no controller is never passed over."""
    place.rewrite(params="params: {behaviour: hangs}")
    killed = place.start("sweep", "toy")
    wait_for(lambda: runs(place), "a task runs")
    killed.kill()
    killed.wait()
    process = place.start("sweep", "toy")
    wait_for(partial(catches, process.pid, signal.SIGTERM), "the program has begun")
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 7
    assert process.stderr is not None
    said = process.stderr.read()
    assert "ERROR LEFTOVER" in said
    assert all(token(pid) in said for pid in place.pids())
    place.must("stop")
    assert place.pids() == []


def token(pid: int) -> str:
    """The name of the task that a process belongs to; empty if it has ended meanwhile."""
    words: list[str] = []
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        words = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
    marks = ("DLPERF_TASK=", "DLPERF_SUPERVISOR=", "DLPERF_OBSERVER=")
    found = [word.partition("=")[2] for word in words if word.startswith(marks)]
    return found[0] if found else ""


def test_a_detached_sweep_runs_to_its_end_and_is_found(place: Place) -> None:
    """The command returns once a task runs; `status`, `logs --follow` and the table find it."""
    place.rewrite(params="params: {step_s: 0.1}")
    done = place.must("sweep", "toy", "--detach", "--json")
    assert "trials, 0 valid already" in done.stderr
    said = json.loads(done.stdout)
    assert said["sweep"] == place.sweep().name
    assert place.opened()
    pid = said["controller"]
    assert Path(said["log"]).name.endswith(f"-{pid}.log")
    assert list(place.state.rglob("detached-*")) == [Path(said["log"])]
    assert os.getsid(pid) == pid
    assert Path(f"/proc/{pid}/fd/0").readlink() == Path("/dev/null")
    assert f"pid {pid} of " in place.run("status").stdout
    assert "Iteration: 10 " in place.run("logs", "--follow").stdout
    wait_for(lambda: outcomes(place) == ["valid"] * 4, "it has run to its end")
    wait_for(lambda: (place.sweep() / "report.md").exists(), "it has written its report")
    wait_for(lambda: '"exit_code": 0' in Path(said["log"]).read_text(), "its log has its results")


def test_a_detached_sweep_outlives_its_terminal_and_is_stopped_by_stop(place: Place) -> None:
    """The terminal's hang-up does not reach it; `stop` does."""
    place.rewrite(params="params: {behaviour: hangs}")
    shell, terminal = pty.fork()
    if shell == 0:
        os.chdir(place.folder)
        os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"], place.env())
    os.write(terminal, typed("sweep", "toy", "--detach").encode() + b"\n")
    seen = b""
    while b"runs in the background" not in seen:
        seen += os.read(terminal, 65536)
    os.close(terminal)
    os.waitpid(shell, 0)
    time.sleep(1)
    assert runs(place)
    assert outcomes(place) == []
    place.must("stop")
    assert outcomes(place) == ["interrupted"]
    assert place.pids() == []


def test_a_detached_sweep_that_cannot_start_says_why(place: Place) -> None:
    """With its exit code and its own document, and without a log that nobody looks for."""
    refused = place.must("sweep", "toy", "--case", "9x9", "--detach", "--json", code=2)
    assert json.loads(refused.stdout)["errors"][0]["code"] == "NO-CASE"
    assert "ERROR NO-CASE" in refused.stderr
    assert not list(place.state.glob("detached-*"))
    nowhere = place.must("sweep", "toy", "--detach", "--state", "/proc/nowhere", code=6)
    assert "ERROR STORE-RIGHTS" in nowhere.stderr


def test_a_dry_run_is_shown_here(place: Place) -> None:
    """It starts nothing that could be detached."""
    shown = place.must("sweep", "toy", "--detach", "--dry-run")
    assert "4 trials" in shown.stdout
    assert not place.state.exists()
