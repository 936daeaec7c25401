"""The contract of a runtime, run against every implementation."""

import hashlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from orchestrator.model.attempt import Attempt, Limits, TaskEnd
from orchestrator.model.node import Container
from orchestrator.model.plan import Task
from orchestrator.runtimes import Runtime
from orchestrator.runtimes.docker import DockerRuntime
from orchestrator.runtimes.process import ProcessRuntime
from orchestrator.transports.local import LocalTransport
from tests.dockerd import IMAGE, Dockerd
from tests.waiting import wait_for

pytestmark = [pytest.mark.cluster, pytest.mark.daemons]
LIMITS = Limits(time_s=60, stall_s=60, grace_s=1, create_s=30)
ENDLESS = "while :; do sleep 0.1; done"


@dataclass
class Stage:
    """A runtime with the means to see, and to hurt, what it runs."""

    make: Callable[[], Runtime]
    folder: Path
    lost: str
    """What becomes of a task whose supervisor is killed, in one word."""

    def __post_init__(self) -> None:
        self.runtime = self.make()
        self.attempts: list[Attempt] = []

    def attempt(self, *argv: str, **env: str) -> Attempt:
        """An attempt of one task that runs ``argv``."""
        task = Task("here", 0, argv, env, (), ())
        number = len(self.attempts) + 1
        folder = {"here": str(self.folder / f"a{number}")}
        # Names are those of all engines' containers and of all processes of this machine.
        made = Attempt(f"s{os.getpid()}", self.folder.name, number, folder, 29500, (task,))
        self.attempts.append(made)
        return made

    def phase(self, attempt: Attempt) -> str:
        """What the runtime says of the task now."""
        return self.runtime.inspect(attempt, attempt.tasks[0]).phase

    def begin(self, attempt: Attempt, limits: Limits = LIMITS) -> Task:
        """Bring the task through its gate."""
        task = attempt.tasks[0]
        self.runtime.create(attempt, task, limits)
        wait_for(lambda: self.phase(attempt) == "waiting", "the task at its gate")
        assert self.runtime.start(attempt, task)
        return task

    def end(self, attempt: Attempt) -> TaskEnd:
        """How the task ended, once it has."""
        task = attempt.tasks[0]
        wait_for(lambda: self.runtime.inspect(attempt, task).end, "the task's end", 30)
        end = self.runtime.inspect(attempt, task).end
        assert end is not None
        return end

    def run(self, script: str, limits: Limits = LIMITS) -> tuple[TaskEnd, bytes]:
        """How a script ended, and everything it printed."""
        attempt = self.attempt("sh", "-c", script)
        task = self.begin(attempt, limits)
        end = self.end(attempt)
        return end, self.runtime.output(attempt, task, 0)

    def pids(self, attempt: Attempt) -> dict[int, str]:
        """Processes of the attempt's task on this machine, and their command lines."""
        token = attempt.token(attempt.tasks[0])
        found = {}
        for path in Path("/proc").glob("[0-9]*"):
            try:
                words = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                if f"={token}\0" in (path / "environ").read_text() or f" {token} " in words:
                    found[int(path.name)] = words
            except (OSError, UnicodeDecodeError):
                continue
        return found

    def supervisor(self, attempt: Attempt) -> int:
        """The supervisor's own process, the oldest of those that are it."""
        return min(pid for pid, words in self.pids(attempt).items() if "supervise.sh" in words)


@pytest.fixture(params=["process", "docker"])
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stage]:
    """Each implementation on this machine; what a test leaves running is removed."""
    transport = LocalTransport("here")
    if request.param == "process":
        made = Stage(lambda: ProcessRuntime(transport), tmp_path, "lost")
        yield made
    else:
        dockerd: Dockerd = request.getfixturevalue("dockerd")
        engine = dockerd.engine()

        def make() -> Runtime:
            return DockerRuntime(transport, engine, Container(), image=IMAGE)

        made = Stage(make, tmp_path, "killed")
        yield made
        engine.close()
    for attempt in made.attempts:
        made.make().remove(attempt, attempt.tasks[0])
    transport.close()


def test_a_task_waits_at_its_gate_and_runs_when_it_opens(stage: Stage) -> None:
    """Nothing of the program runs before; then it does, and its end is told with its log."""
    attempt = stage.attempt("sh", "-c", "echo seen; exit 7")
    task = attempt.tasks[0]
    assert stage.phase(attempt) == "absent"
    assert not stage.runtime.start(attempt, task)
    stage.runtime.create(attempt, task, LIMITS)
    wait_for(lambda: stage.phase(attempt) == "waiting", "the task at its gate")
    time.sleep(0.2)
    assert stage.phase(attempt) == "waiting"
    assert stage.runtime.output(attempt, task, 0) == b""
    before = time.time()
    assert stage.runtime.start(attempt, task)
    end = stage.end(attempt)
    assert (end.node, end.node_rank, end.status, end.why) == ("here", 0, 7, "exited")
    assert (end.size_bytes, end.sha256) == (5, hashlib.sha256(b"seen\n").hexdigest())
    assert end.went_at is not None
    assert before - 0.1 < end.went_at < time.time()
    assert stage.phase(attempt) == "ended"
    wait_for(lambda: not stage.pids(attempt), "the end of its processes", 10)


def test_a_task_that_can_make_no_gate_does_not_run(stage: Stage) -> None:
    """As on file systems without FIFOs: it would begin before the other tasks of its gang."""
    attempt = stage.attempt("echo", "ran")
    folder = Path(attempt.folder(attempt.tasks[0]))
    folder.mkdir()
    (folder / "r0.gate").touch()
    stage.runtime.create(attempt, attempt.tasks[0], LIMITS)
    said = folder / "r0.err"
    wait_for(lambda: said.exists() and b"r0.gate" in said.read_bytes(), "the supervisor's reason")
    wait_for(
        lambda: not any("supervise.sh" in words for words in stage.pids(attempt).values()),
        "the supervisor's end",
    )
    assert not (folder / "r0.log").exists()


def test_bytes_of_the_log_are_those_that_were_written(stage: Stage) -> None:
    """No byte is turned into another, both streams come, and any offset gives the rest."""
    end, log = stage.run("printf 'a\\351\\000b'; echo c >&2; printf 'no newline'")
    assert log == b"a\xe9\0bc\nno newline"
    assert end.size_bytes == len(log)
    (attempt,) = stage.attempts
    assert stage.runtime.output(attempt, attempt.tasks[0], 5) == log[5:]
    assert stage.runtime.output(attempt, attempt.tasks[0], len(log)) == b""


def test_words_and_environment_arrive_as_they_are(stage: Stage) -> None:
    """No shell on the way takes a word for syntax; the plan's environment is there."""
    words = ("a b", "$HOME", "`id`", "; exit 3", "*", "'", '"', "\\", "\n", "-n", "")
    shown = 'printf "%s|" "$@" "$GREETING"'
    attempt = stage.attempt("sh", "-c", shown, "sh", *words, GREETING="good day; $x")
    task = stage.begin(attempt)
    assert stage.end(attempt).status == 0
    said = stage.runtime.output(attempt, task, 0).decode().split("|")[:-1]
    assert said == [*words, "good day; $x"]


def test_a_program_that_is_not_there_is_status_127(stage: Stage) -> None:
    """Its end is one like any other, and the log has the reason."""
    attempt = stage.attempt("no-such-program-here")
    task = stage.begin(attempt)
    end = stage.end(attempt)
    assert (end.status, end.why) == (127, "exited")
    assert b"no-such-program-here" in stage.runtime.output(attempt, task, 0)


def test_a_signal_is_told_as_128_more(stage: Stage) -> None:
    """A program that dies of SIGKILL has status 137, and it ended by itself."""
    end, _ = stage.run("kill -KILL $$")
    assert (end.status, end.why) == (137, "exited")


def test_the_deadline_is_kept_without_us(stage: Stage) -> None:
    """A program that ignores SIGTERM and runs too long ends after time and grace."""
    began = time.monotonic()
    limits = Limits(time_s=1, stall_s=60, grace_s=1, create_s=30)
    end, _ = stage.run("trap '' TERM; " + ENDLESS, limits)
    assert (end.status, end.why) == (137, "deadline")
    assert 1 <= time.monotonic() - began < 15


SMALL = Limits(time_s=60, stall_s=60, grace_s=1, create_s=30, log_bytes=1 << 20)
FLOOD = "tr '\\0' y </dev/zero"
FULL = b"y" * (1 << 20)


@pytest.mark.parametrize("script", [FLOOD, f"trap '' TERM; {FLOOD}", f"{FLOOD} | head -c 3000000"])
def test_log_ends_where_it_is_too_large(stage: Stage, script: str) -> None:
    """A program that would fill the disk is ended, soon; one that has ended was too talkative."""
    end, log = stage.run(script, SMALL)
    assert (end.why, end.size_bytes) == ("log-too-large", len(FULL))
    assert log == FULL
    assert end.sha256 == hashlib.sha256(FULL).hexdigest()
    wait_for(lambda: not stage.pids(stage.attempts[-1]), "the end of all its processes")


def test_log_that_is_large_enough_is_left_alone(stage: Stage) -> None:
    """Byte for byte up to the last one that is allowed, standard error in its place."""
    end, log = stage.run(f"{FLOOD} | head -c 1048574; printf x >&2", SMALL)
    assert (end.status, end.why) == (0, "exited")
    assert log == FULL[:-2] + b"x"


@pytest.mark.parametrize(
    "instead", ["ln -s /etc/shadow r0.log", "mkdir r0.log", "mkfifo r0.log", ":"]
)
def test_what_lies_in_the_place_of_a_log_is_not_read(stage: Stage, instead: str) -> None:
    """Neither while the program runs nor afterwards; the node's own files are out of its reach."""
    attempt = stage.attempt("sh", "-c", f"rm r0.log; {instead}; touch done; sleep 2")
    task = stage.begin(attempt)
    wait_for((Path(attempt.folder(task)) / "done").exists, "what it puts there")
    assert stage.runtime.output(attempt, task, 0) == b""
    end = stage.end(attempt)
    assert (end.status, end.why, end.size_bytes) == (0, "log-replaced", 0)
    assert stage.runtime.output(attempt, task, 0) == b""


def test_files_of_an_attempt_that_are_links_say_nothing(stage: Stage) -> None:
    """An end marker that leads elsewhere is none; the supervisor writes its own over it."""
    other = stage.folder / "other"
    other.write_text("7 other")
    names = "exit end"
    end, log = stage.run(f"for each in {names}; do ln -s {other} r0.$each; done; sleep 2")
    assert (end.status, end.why, log) == (0, "exited", b"")
    assert other.read_text() == "7 other"


def test_stop_lets_a_program_end_itself(stage: Stage) -> None:
    """It gets SIGTERM, its last words are in the log, and its own status is told."""
    attempt = stage.attempt("sh", "-c", "trap 'echo last; exit 3' TERM; echo up; " + ENDLESS)
    task = stage.begin(attempt)
    wait_for(lambda: stage.runtime.output(attempt, task, 0), "the program's first word")
    stage.runtime.stop(attempt, task)
    end = stage.end(attempt)
    assert (end.status, end.why) == (3, "stopped")
    assert stage.runtime.output(attempt, task, 0).endswith(b"last\n")


def test_stop_at_the_gate_ends_a_task_that_never_ran(stage: Stage) -> None:
    """It ended as stopped, and its gate never opened."""
    attempt = stage.attempt("sh", "-c", "echo never")
    task = attempt.tasks[0]
    stage.runtime.create(attempt, task, LIMITS)
    wait_for(lambda: stage.phase(attempt) == "waiting", "the task at its gate")
    stage.runtime.stop(attempt, task)
    end = stage.end(attempt)
    assert (end.why, end.went_at, end.size_bytes) == ("stopped", None, 0)
    assert not stage.runtime.start(attempt, task)


def test_children_that_left_the_session_end_with_the_task(stage: Stage) -> None:
    """torchrun's workers are such: when the program is gone, so are they."""
    end, log = stage.run("setsid sleep 300 & setsid sleep 301 & sleep 0.3; echo done; exit 0")
    assert (end.status, log) == (0, b"done\n")
    wait_for(lambda: not stage.pids(stage.attempts[0]), "the end of every child", 10)


def test_remove_leaves_nothing_and_may_be_said_again(stage: Stage) -> None:
    """Every process is gone when it returns, whatever it ignores; twice is no error."""
    attempt = stage.attempt("sh", "-c", "trap '' TERM; setsid sleep 300 & " + ENDLESS)
    task = stage.begin(attempt)
    wait_for(lambda: len(stage.pids(attempt)) > 3, "the program")
    stage.runtime.remove(attempt, task)
    assert not stage.pids(attempt)
    stage.runtime.remove(attempt, task)
    assert stage.phase(attempt) in ("lost", "ended")


def test_a_killed_supervisor_is_no_end_of_the_program(stage: Stage) -> None:
    """The task is lost, not failed: nobody knows how the program would have ended."""
    attempt = stage.attempt("sh", "-c", ENDLESS)
    stage.begin(attempt)
    wait_for(lambda: stage.phase(attempt) == "running", "the program")
    os.kill(stage.supervisor(attempt), signal.SIGKILL)
    end = stage.end(attempt)
    assert stage.phase(attempt) == "lost"
    assert end.why == stage.lost
    assert (end.size_bytes, end.sha256) == (0, "")


def test_nobody_watches_a_log_whose_supervisor_was_killed(stage: Stage) -> None:
    """Not for ever, and it ends no other process that has the supervisor's pid by then."""
    attempt = stage.attempt("sh", "-c", ENDLESS)
    stage.begin(attempt)
    wait_for(lambda: stage.phase(attempt) == "running", "the program")
    os.kill(stage.supervisor(attempt), signal.SIGKILL)

    def watches() -> int:
        return sum("supervise.sh" in words for words in stage.pids(attempt).values())

    wait_for(lambda: watches() <= 1, "no watch but that of the deadline", 5)


@pytest.mark.parametrize("how", ["killed", "removed", "by itself"])
def test_an_observer_ends_with_its_task_whatever_ends_that(stage: Stage, how: str) -> None:
    """It sees the node beside the task; then no process of it is left, and its file stays."""
    attempt = stage.attempt("sh", "-c", "sleep 2" if how == "by itself" else ENDLESS)
    task = stage.begin(attempt)
    state = Path(attempt.folder(task)) / "r0.state"
    wait_for(lambda: stage.phase(attempt) == "running" and state.exists(), "the observer")
    wait_for(lambda: b"\nhost," in state.read_bytes(), "a moment of the node")
    mark = f"DLPERF_OBSERVER={attempt.token(task)}\0"

    def observers() -> list[int]:
        return [pid for pid in stage.pids(attempt) if mark in environment(pid)]

    if how == "killed":
        os.kill(stage.supervisor(attempt), signal.SIGKILL)
    elif how == "removed":
        assert observers()
        stage.runtime.remove(attempt, task)
        assert not observers()
    wait_for(lambda: not observers(), "the end of the observer")
    assert state.read_bytes().startswith(b"node,1,")


def test_a_task_that_is_seldom_looked_at_has_an_observer(stage: Stage) -> None:
    """As where looks at many nodes, or over a slow network, are more than a second apart."""
    attempt = stage.attempt("sh", "-c", ENDLESS)
    state = Path(attempt.folder(stage.begin(attempt))) / "r0.state"
    wait_for(lambda: stage.phase(attempt) == "running", "the program")
    for _ in range(2):
        time.sleep(1.2)
        assert stage.phase(attempt) == "running"
    wait_for(state.exists, "the observer", 20)


def environment(pid: int) -> str:
    """Of a process; empty if it has ended."""
    try:
        return Path(f"/proc/{pid}/environ").read_text()
    except OSError:
        return ""


def test_another_controller_finds_the_task(stage: Stage) -> None:
    """A runtime made anew sees it run, then end, and can stop it."""
    attempt = stage.attempt("sh", "-c", ENDLESS)
    task = stage.begin(attempt)
    wait_for(lambda: stage.phase(attempt) == "running", "the program")
    later = stage.make()
    assert later.inspect(attempt, task).phase == "running"
    assert later.inspect(attempt, task).phase == "running"
    later.stop(attempt, task)
    wait_for(lambda: later.inspect(attempt, task).phase == "ended", "its end")


def test_a_reboot_is_told_from_a_kill(stage: Stage) -> None:
    """A supervisor of another boot is gone with the machine, whoever has its pid now."""
    attempt = stage.attempt("sh", "-c", ENDLESS)
    task = stage.begin(attempt)
    wait_for(lambda: stage.phase(attempt) == "running", "the program")
    os.kill(stage.supervisor(attempt), signal.SIGKILL)
    wait_for(lambda: stage.phase(attempt) == "lost", "the loss")
    path = Path(attempt.folder(task)) / "r0.pid"
    pid, started, _ = path.read_text().split()
    path.write_text(f"{pid} {started} 00000000-0000-4000-8000-000000000000\n")
    assert stage.end(attempt).why == "rebooted"


def test_files_of_an_attempt_are_the_users_alone(stage: Stage) -> None:
    """The folder has mode 0700, everything in it 0600, and it all belongs to us."""
    stage.run("echo hello")
    folder = Path(stage.attempts[0].folder(stage.attempts[0].tasks[0]))
    assert folder.stat().st_mode & 0o777 == 0o700
    wait_for(lambda: not (folder / "r0.err").exists(), "the supervisor has had nothing to say")
    left = {path.name: path.stat() for path in folder.iterdir()}
    assert {"r0.log", "r0.exit", "r0.end", "r0.go", "r0.pid"} <= set(left)
    assert {name for name, stat in left.items() if stat.st_mode & 0o077} == set()
    assert {stat.st_uid for stat in left.values()} == {os.getuid()}
