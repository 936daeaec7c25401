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
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.commands import ended, told
from tests.conftest import PROGRAM, Place
from tests.processes import wait_for
from tests.sweeping.kept import running, states

pytestmark = pytest.mark.cluster


def catches(pid: int, number: int) -> bool:
    """Return whether a process has a handler for a signal."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    (mask,) = (int(line.split()[1], 16) for line in lines if line.startswith("SigCgt:"))
    return bool(mask >> number - 1 & 1)


def token(pid: int) -> str:
    """Return the name of the task that a process belongs to; empty if it has ended meanwhile."""
    words: list[str] = []
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        words = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
    marks = ("DLPERF_TASK=", "DLPERF_SUPERVISOR=", "DLPERF_OBSERVER=")
    found = [word.partition("=")[2] for word in words if word.startswith(marks)]
    return found[0] if found else ""


@contextlib.contextmanager
def typed(place: Place, *words: str) -> Iterator[int]:
    """Type a command into the shell of a terminal, which is closed after the block."""
    shell, terminal = pty.fork()
    if shell == 0:
        os.chdir(place.folder)
        os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"], place.env())
    os.write(terminal, shlex.join([*PROGRAM, *words]).encode() + b"\n")
    os.set_blocking(terminal, False)
    yield terminal
    os.close(terminal)
    os.waitpid(shell, 0)


def read(terminal: int) -> bytes:
    """Read what a terminal shows now."""
    with contextlib.suppress(BlockingIOError):
        return os.read(terminal, 65536)
    return b""


def test_a_sweep_under_nohup_runs_to_its_end(place: Place) -> None:
    """A SIGHUP that was ignored at the start stays ignored."""
    process = subprocess.Popen(
        ["nohup", *PROGRAM, "sweep", "toy", "--case", "1x1"],
        cwd=place.folder,
        env=place.env(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_for(lambda: running(place), "a task runs")
    process.send_signal(signal.SIGHUP)
    assert process.wait(60) == 0
    assert states(place) == ["valid"] * 2


def test_a_terminal_that_vanishes_leaves_nothing_running(place: Place) -> None:
    """The shell leads the session and passes the hang-up on to its jobs, as the kernel does."""
    place.rewrite(params="params: {step_s: 0.3}")
    with typed(place, "sweep", "toy") as terminal:
        wait_for(lambda: (read(terminal), running(place))[1], "a task runs")
    wait_for(lambda: states(place) and not place.pids(), "the sweep has ended what it ran", 30)
    assert states(place) == ["interrupted"]
    place.must("sweep", "toy")
    assert states(place).count("valid") == 4


@pytest.mark.parametrize("times", [3, pytest.param(8, marks=pytest.mark.long)])
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
        code, said = ended(process, 60)
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


@pytest.mark.parametrize("words", [("sweep", "toy"), ("collect",)])
def test_ctrl_c_during_the_imports_is_reported(place: Place, words: tuple[str, ...]) -> None:
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


# Ctrl-C cuts the import of a module short, once: what the import left half-made stays.
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
    """The modules that the error and the search for leftovers need were imported before."""
    (place.folder / "sitecustomize.py").write_text(CUT_SHORT)
    path = f"{place.folder}:{place.env()['PYTHONPATH']}"
    done = place.run("sweep", "toy", PYTHONPATH=path)
    assert (done.returncode, "ERROR INTERRUPTED" in done.stderr) == (130, True), done.stderr


def test_a_sweep_that_is_stopped_early_names_what_an_earlier_one_left(place: Place) -> None:
    """Before it has looked at anything: what runs without a controller is never passed over."""
    place.rewrite(params="params: {behaviour: hangs}")
    killed = place.start("sweep", "toy")
    wait_for(lambda: running(place), "a task runs")
    killed.kill()
    killed.wait()
    process = place.start("sweep", "toy")
    wait_for(partial(catches, process.pid, signal.SIGTERM), "the program has begun")
    process.send_signal(signal.SIGINT)
    said = told(process, 7, 60)
    assert "ERROR LEFTOVER" in said
    assert all(token(pid) in said for pid in place.pids())
    place.must("stop")
    assert place.pids() == []


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
    wait_for(lambda: states(place) == ["valid"] * 4, "it has run to its end")
    wait_for(lambda: (place.sweep() / "report.md").exists(), "it has written its report")
    wait_for(lambda: '"exit_code": 0' in Path(said["log"]).read_text(), "its log has its results")


def test_a_detached_sweep_outlives_its_terminal_and_is_stopped_by_stop(place: Place) -> None:
    """The terminal's hang-up does not reach it; `stop` does."""
    place.rewrite(params="params: {behaviour: hangs}")
    seen = b""

    def is_detached() -> bool:
        nonlocal seen
        seen += read(terminal)
        return b"runs in the background" in seen

    with typed(place, "sweep", "toy", "--detach") as terminal:
        wait_for(is_detached, "the command returns")
    time.sleep(1)
    assert running(place)
    assert states(place) == []
    place.must("stop")
    assert states(place) == ["interrupted"]
    assert place.pids() == []


def test_a_detached_sweep_that_cannot_start_says_why(place: Place) -> None:
    """With its exit code and its own document, and no log stays; a dry run is not detached."""
    refused = place.must("sweep", "toy", "--case", "9x9", "--detach", "--json", code=2)
    assert json.loads(refused.stdout)["errors"][0]["code"] == "NO-CASE"
    assert "ERROR NO-CASE" in refused.stderr
    assert not list(place.state.glob("detached-*"))
    nowhere = place.must("sweep", "toy", "--detach", "--state", "/proc/nowhere", code=6)
    assert "ERROR STORE-RIGHTS" in nowhere.stderr
    shutil.rmtree(place.state)
    assert "4 trials" in place.must("sweep", "toy", "--detach", "--dry-run").stdout
    assert not place.state.exists()
