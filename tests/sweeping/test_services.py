"""Services of a gang: an sshd of its own for mpirun, ended when the ranks have ended."""

import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator import errors
from orchestrator.fleet import Fleet
from orchestrator.launchers import mpirun
from orchestrator.model.attempt import Attempt, GangEnd, Limits
from orchestrator.model.cluster import Cluster
from orchestrator.model.plan import Task
from orchestrator.runtimes.process import ProcessRuntime
from orchestrator.schedulers.addresses import seats
from orchestrator.schedulers.fanout import Fanout
from orchestrator.sweeping import attempts, closing
from orchestrator.transports.local import LocalTransport
from tests import processes
from tests.sshd import free_port
from tests.sweeping.elsewhere import close, sweep_in

pytestmark = [pytest.mark.cluster, pytest.mark.daemons]
LIMITS = Limits(time_s=60, stall_s=60, grace_s=1, create_s=30)
CLUSTER = Cluster.model_validate_json(
    '{"name": "pair", "defaults": {"transport": "local", "runtime": "process"}, "nodes":'
    ' [{"name": "n1", "address": "127.0.0.1"}, {"name": "n2", "address": "127.0.0.2"}]}'
)
SERVICE_FILES = tuple(f"r1.{name}" for name in mpirun.SERVICE_FILES)
SSHD = "sh ./r1.sshd.sh"
ASK = "ssh -F ssh_config 127.0.0.2 'echo said by $WHO in $PWD; exit 3'"


class Pair:
    """Two nodes that are this machine: a leader, and one with a service."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder, self._port = folder, port
        self.stop = False
        self.scheduler = Fanout(Fleet.of(CLUSTER), folder, lambda: self.stop)
        self.attempts: list[Attempt] = []

    def attempt(self, script: str, service: str = SSHD) -> Attempt:
        """Return an attempt whose leader runs a script in the attempt's folder."""
        folder = self.folder / f"a{len(self.attempts) + 1}"
        folder.mkdir()
        where = {"n1": str(folder), "n2": str(folder)}
        home = f"cd {folder} && "
        leader = Task("n1", 0, ("sh", "-c", home + script), {}, (), (), files=mpirun.LEADER_FILES)
        serving = ("sh", "-c", home + service)
        other = Task(
            *("n2", 1, serving, {"WHO": "n2's task"}, (), ()),
            service=True,
            files=SERVICE_FILES,
        )
        name = f"s{os.getpid()}"
        made = Attempt(
            *(name, self.folder.name, len(self.attempts) + 1, where, self._port, (leader, other)),
            seats=seats(CLUSTER, folder),
        )
        self.attempts.append(made)
        return made

    def run(self, attempt: Attempt, *, before: Callable[[], object] = lambda: None) -> GangEnd:
        """Run an attempt from its keys to its end."""
        attempts.write_service_files(self.scheduler, attempt)
        before()
        try:
            return self.wait(attempt)
        finally:
            self.scheduler.clear(attempt)

    def wait(self, attempt: Attempt) -> GangEnd:
        """Run a gang to its end; what is left of it is not cleared."""
        assert self.scheduler.launch(attempt, LIMITS)
        return self.scheduler.wait(attempt, LIMITS, lambda _: None)

    def log(self, attempt: Attempt) -> str:
        return Path(attempt.folder(attempt.tasks[0]), "r0.log").read_text()


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    """Make a pair whose processes are ended afterwards."""
    made = Pair(tmp_path, free_port())
    yield made
    for attempt in made.attempts:
        for task in attempt.tasks:
            ProcessRuntime(LocalTransport(task.node)).remove(attempt, task)


def test_the_leader_gets_in_and_its_end_ends_the_service(pair: Pair) -> None:
    """Its command runs in the attempt's folder with the environment of that node's task.

    Once the leader has ended, nobody needs the sshd: its end is no failure, and nothing stays.
    """
    attempt = pair.attempt(f"{ASK}; echo status $?")
    began = time.monotonic()
    end = pair.run(attempt)
    assert time.monotonic() - began < 10
    folder = attempt.folder(attempt.tasks[0])
    assert pair.log(attempt) == f"said by n2's task in {folder}\nstatus 3\n"
    assert (end.reason, end.first) == ("done", None)
    assert (end.ends[0].status, end.ends[1].why) == (0, "stopped")
    assert processes.carrying(f"={attempt.token(attempt.tasks[1])}\0".encode()) == []


@pytest.mark.parametrize(
    ("leader", "service", "first"),
    [("sleep 60", "echo no sshd here; exit 0", ("n2", 0)), ("exit 9", SSHD, ("n1", 9))],
    ids=["service", "leader"],
)
def test_the_first_task_to_end_badly_ends_the_gang(
    pair: Pair, leader: str, service: str, first: tuple[str, int]
) -> None:
    """An sshd that cannot start would leave mpirun waiting for its time limit."""
    end = pair.run(pair.attempt(leader, service=service))
    assert end.reason == "failed"
    assert end.first is not None
    assert (end.first.node, end.first.status) == first


def test_another_host_key_is_not_believed(pair: Pair) -> None:
    """A listener without the attempt's own key gets no rank."""
    attempt = pair.attempt(ASK)
    folder = Path(attempt.folder(attempt.tasks[0]))

    def swap() -> None:
        known = (folder / "known_hosts").read_text()
        other = (folder / "r1.authorized_keys").read_text().removeprefix("restrict ")
        (folder / "known_hosts").write_text(f"{known.split()[0]} {other}")

    end = pair.run(attempt, before=swap)
    assert end.reason == "failed"
    assert "Host key verification failed" in pair.log(attempt)


def test_keys_are_new_for_each_attempt_and_gone_afterwards(pair: Pair) -> None:
    """Mode 0600 while it runs; removed afterwards."""
    kept = []
    for _ in range(2):
        attempt = pair.attempt("true")
        attempts.write_service_files(pair.scheduler, attempt)
        folder = Path(attempt.folder(attempt.tasks[0]))
        names = {*mpirun.LEADER_FILES, *SERVICE_FILES}
        assert {path.name for path in folder.iterdir()} == names
        assert {oct(path.stat().st_mode)[-3:] for path in folder.iterdir()} == {"600"}
        kept.append((folder / "id").read_text())
        closing.end_attempt(pair.scheduler, attempt)
        assert not (folder / "id").exists()
        assert not (folder / "r1.host_key").exists()
    assert kept[0] != kept[1]


def test_different_folders_are_refused(pair: Pair) -> None:
    """mpirun's ranks have one working folder on all nodes."""
    attempt = pair.attempt("true")
    moved = replace(attempt, folders={**attempt.folders, "n2": "/elsewhere"})
    with pytest.raises(errors.UnfitError, match="/elsewhere") as raised:
        attempts.write_service_files(pair.scheduler, moved)
    assert raised.value.code == "FOLDERS"


# On SIGTERM it kills its supervisor, which then records no end, and goes on.
WRITES_ON = """
go_on() { kill -KILL $PPID; while :; do echo still here; sleep 0.02; done; }
trap go_on TERM
while :; do sleep 0.1; done
"""
LAST_WORDS = "trap 'seq 100000; exit' TERM; while :; do sleep 0.1; done"


@pytest.mark.parametrize(
    ("service", "why", "last"),
    [(WRITES_ON, "lost", b"still here\n"), (LAST_WORDS, "stopped", b"\n100000\n")],
    ids=["writes on", "last words"],
)
def test_a_service_is_ended_before_its_log_is_copied(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, service: str, why: str, last: bytes
) -> None:
    """The gang is done, but a copy too early would be too short; its node is slow meanwhile."""
    attempt, sweep = pair.attempt("true", service=service), sweep_in(pair.folder / "state")
    gang = pair.wait(attempt)
    assert (gang.reason, [end.why for end in gang.ends]) == ("done", ["exited", why])
    slow = pair.folder / "bin" / "grep"
    slow.parent.mkdir()
    slow.write_text(f'#!/bin/sh\nsleep 0.3\nexec {shutil.which("grep")} "$@"\n')
    slow.chmod(0o700)
    monkeypatch.setenv("PATH", f"{slow.parent}:{os.environ['PATH']}")
    assert close(sweep, pair.scheduler, attempt, gang) == ()
    copy = (sweep.attempt_folder(attempt.trial, attempt.number) / "r1.log").read_bytes()
    assert copy == Path(attempt.folder(attempt.tasks[1]), "r1.log").read_bytes()
    assert copy.endswith(last)
