"""The contract of a runtime, run against every implementation."""

import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.runtimes.process import ProcessRuntime
from orchestrator.transports.local import LocalTransport
from tests.processes import wait_for
from tests.runtimes.stage import ENDLESS, LIMITS, Stage, staged

pytestmark = [pytest.mark.cluster, pytest.mark.daemons]
SMALL = replace(LIMITS, log_bytes=1 << 20)
FLOOD = "tr '\\0' y </dev/zero"
FULL = b"y" * (1 << 20)


@pytest.fixture(params=["process", "docker"])
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stage]:
    """Each implementation on this machine; what a test leaves running is removed."""
    with ExitStack() as stack:
        if request.param == "docker":
            made: Stage = stack.enter_context(staged(request.getfixturevalue("dockerd"), tmp_path))
        else:
            made = Stage(lambda: ProcessRuntime(LocalTransport("here")), tmp_path, "lost")
        yield made
        for task in made.tasks:
            task.remove()


def test_a_task_waits_at_its_gate_and_runs_when_it_opens(stage: Stage) -> None:
    task = stage.task("sh", "-c", "echo seen; exit 7")
    assert task.phase == "absent"
    assert not task.start()
    task.create()
    task.wait("waiting")
    time.sleep(0.2)
    assert task.phase == "waiting"
    assert task.output() == b""
    before = time.time()
    assert task.start()
    end = task.end()
    assert (end.node, end.node_rank, end.status, end.why) == ("here", 0, 7, "exited")
    assert (end.size_bytes, end.sha256) == (5, hashlib.sha256(b"seen\n").hexdigest())
    assert end.went_at is not None
    assert before - 0.1 < end.went_at < time.time()
    assert task.phase == "ended"
    wait_for(lambda: not task.pids(), "the end of its processes", 10)


def test_a_task_that_can_make_no_gate_does_not_run(stage: Stage) -> None:
    """On file systems without FIFOs it would begin before the other tasks of its gang."""
    task = stage.task("echo", "ran")
    task.path("gate").parent.mkdir()
    task.path("gate").touch()
    task.create()
    said = task.path("err")
    wait_for(lambda: said.exists() and b"r0.gate" in said.read_bytes(), "the supervisor's reason")
    wait_for(lambda: not task.pids("DLPERF_SUPERVISOR="), "the supervisor's end")
    assert not task.path("log").exists()


def test_bytes_of_the_log_are_those_that_were_written(stage: Stage) -> None:
    end, log = stage.run("printf 'a\\351\\000b'; echo c >&2; printf 'no newline'")
    assert log == b"a\xe9\0bc\nno newline"
    assert end.size_bytes == len(log)
    (task,) = stage.tasks
    assert (task.output(5), task.output(len(log))) == (log[5:], b"")


def test_words_and_environment_arrive_as_they_are(stage: Stage) -> None:
    words = ("a b", "$HOME", "`id`", "; exit 3", "*", "'", '"', "\\", "\n", "-n", "")
    shown = 'printf "%s|" "$@" "$GREETING"'
    task = stage.task("sh", "-c", shown, "sh", *words, GREETING="good day; $x").begin()
    assert task.end().status == 0
    assert task.output().decode().split("|")[:-1] == [*words, "good day; $x"]


def test_a_program_that_is_not_there_is_status_127(stage: Stage) -> None:
    task = stage.task("no-such-program-here").begin()
    end = task.end()
    assert (end.status, end.why) == (127, "exited")
    assert b"no-such-program-here" in task.output()


def test_a_program_that_a_signal_ends_has_128_more(stage: Stage) -> None:
    end, _ = stage.run("kill -KILL $$")
    assert (end.status, end.why) == (137, "exited")


def test_the_deadline_is_kept_without_us(stage: Stage) -> None:
    began = time.monotonic()
    end, _ = stage.run(f"trap '' TERM; {ENDLESS}", replace(LIMITS, time_s=1))
    assert (end.status, end.why) == (137, "deadline")
    assert 1 <= time.monotonic() - began < 15


@pytest.mark.parametrize("script", [FLOOD, f"trap '' TERM; {FLOOD}", f"{FLOOD} | head -c 3000000"])
def test_a_log_is_cut_where_it_becomes_too_large(stage: Stage, script: str) -> None:
    end, log = stage.run(script, SMALL)
    assert (end.why, end.size_bytes) == ("log-too-large", len(FULL))
    assert log == FULL
    assert end.sha256 == hashlib.sha256(FULL).hexdigest()
    wait_for(lambda: not stage.tasks[-1].pids(), "the end of all its processes")


def test_a_log_just_below_the_limit_is_left_alone(stage: Stage) -> None:
    end, log = stage.run(f"{FLOOD} | head -c 1048574; printf x >&2", SMALL)
    assert (end.status, end.why) == (0, "exited")
    assert log == FULL[:-2] + b"x"


@pytest.mark.parametrize(
    "instead", ["ln -s /etc/shadow r0.log", "mkdir r0.log", "mkfifo r0.log", ":"]
)
def test_a_link_or_folder_in_the_place_of_a_log_is_not_read(stage: Stage, instead: str) -> None:
    task = stage.begin(f"rm r0.log; {instead}; touch r0.done; sleep 2")
    wait_for(task.path("done").exists, "what it puts there")
    assert task.output() == b""
    end = task.end()
    assert (end.status, end.why, end.size_bytes) == (0, "log-replaced", 0)
    assert task.output() == b""


def test_end_files_that_are_links_are_ignored_and_replaced(stage: Stage) -> None:
    other = stage.folder / "other"
    other.write_text("7 other")
    end, log = stage.run(f"for each in exit end; do ln -s {other} r0.$each; done; sleep 2")
    assert (end.status, end.why, log) == (0, "exited", b"")
    assert other.read_text() == "7 other"


def test_stop_lets_a_program_end_itself(stage: Stage) -> None:
    task = stage.begin(f"trap 'echo last; exit 3' TERM; echo up; {ENDLESS}")
    wait_for(task.output, "the program's first word")
    task.stop()
    end = task.end()
    assert (end.status, end.why) == (3, "stopped")
    assert task.output().endswith(b"last\n")


def test_stop_at_the_gate_ends_a_task_that_never_ran(stage: Stage) -> None:
    task = stage.task("sh", "-c", "echo never")
    task.create()
    task.wait("waiting")
    task.stop()
    end = task.end()
    assert (end.why, end.went_at, end.size_bytes) == ("stopped", None, 0)
    assert not task.start()


def test_children_that_left_the_session_end_with_the_task(stage: Stage) -> None:
    """torchrun's workers leave the session."""
    end, log = stage.run("setsid sleep 300 & setsid sleep 301 & sleep 0.3; echo done; exit 0")
    assert (end.status, log) == (0, b"done\n")
    wait_for(lambda: not stage.tasks[0].pids(), "the end of every child", 10)


def test_remove_ends_every_process_and_may_be_repeated(stage: Stage) -> None:
    task = stage.begin(f"trap '' TERM; setsid sleep 300 & {ENDLESS}")
    wait_for(lambda: len(task.pids()) > 3, "the program")
    task.remove()
    assert not task.pids()
    task.remove()
    assert task.phase in ("lost", "ended")


def test_a_killed_supervisor_is_no_end_of_the_program(stage: Stage) -> None:
    """Its watches end too, so that they signal no other process that gets its pid."""
    task = stage.begin(ENDLESS)
    task.kill_supervisor()
    end = task.end()
    assert task.phase == "lost"
    assert (end.why, end.size_bytes, end.sha256) == (stage.lost, 0, "")

    def watches() -> int:
        return sum("supervise.sh" in words for words in task.pids().values())

    wait_for(lambda: watches() <= 1, "no watch but that of the deadline", 5)
    pid, started, _ = task.path("pid").read_text().split()
    task.path("pid").write_text(f"{pid} {started} 00000000-0000-4000-8000-000000000000\n")
    assert task.end().why == "rebooted"


@pytest.mark.parametrize("how", ["killed", "removed", "by itself"])
def test_an_observer_ends_with_its_task(stage: Stage, how: str) -> None:
    task = stage.begin("sleep 2" if how == "by itself" else ENDLESS)
    state = task.path("state")
    wait_for(lambda: task.phase == "running" and state.exists(), "the observer")
    wait_for(lambda: b"\nhost," in state.read_bytes(), "a moment of the node")
    mark = "DLPERF_OBSERVER="
    if how == "killed":
        task.kill_supervisor()
    elif how == "removed":
        assert task.pids(mark)
        task.remove()
        assert not task.pids(mark)
    wait_for(lambda: not task.pids(mark), "the end of the observer")
    assert state.read_bytes().startswith(b"node,1,")


def test_a_task_that_is_seldom_inspected_has_an_observer(stage: Stage) -> None:
    """On many nodes or a slow network, two looks are more than a second apart."""
    task = stage.begin(ENDLESS)
    for _ in range(2):
        time.sleep(1.2)
        assert task.phase == "running"
    wait_for(task.path("state").exists, "the observer")


def test_another_controller_finds_and_stops_the_task(stage: Stage) -> None:
    task = replace(stage.begin(ENDLESS), runtime=stage.make())
    assert (task.phase, task.phase) == ("running", "running")
    task.stop()
    task.wait("ended")


def test_files_of_an_attempt_are_the_users_alone(stage: Stage) -> None:
    stage.run("echo hello")
    (task,) = stage.tasks
    folder = task.path("log").parent
    assert folder.stat().st_mode & 0o777 == 0o700
    wait_for(lambda: not task.path("err").exists(), "the end of an empty r0.err")
    left = {path.name: path.stat() for path in folder.iterdir()}
    assert {"r0.log", "r0.exit", "r0.end", "r0.go", "r0.pid"} <= set(left)
    assert {name for name, stat in left.items() if stat.st_mode & 0o077} == set()
    assert {stat.st_uid for stat in left.values()} == {os.getuid()}
