"""Whoever closes an attempt ends all of it, keeps its files whole, and then lets its nodes go."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator import errors
from orchestrator.fleet import Fleet
from orchestrator.model.attempt import Attempt, GangEnd, Limits, TaskEnd
from orchestrator.model.cluster import Cluster
from orchestrator.model.experiment import Method
from orchestrator.model.plan import Plan, Seat, Task
from orchestrator.model.sweep import Ended, Intent
from orchestrator.runtimes.supervisor import SUPERVISE, TaskFiles, program
from orchestrator.schedulers.fanout import Fanout
from orchestrator.sweeping import closing
from orchestrator.sweeping.observed_sweep import Running
from orchestrator.transports.local import LocalTransport
from orchestrator.verbs import logs
from tests import processes
from tests.processes import wait_for
from tests.sweeping.elsewhere import (
    CLUSTER,
    LOG,
    TASK,
    attempt,
    close,
    done,
    elsewhere,
    sweep_in,
)

KEYS = ("id", "r0.host_key", "r0.known_hosts")
LIMITS = Limits(time_s=600, stall_s=600, grace_s=1, create_s=600)
TWO = Cluster.model_validate_json(
    '{"name": "far", "defaults": {"runtime": "process", "port": 9}, "nodes":'
    ' [{"name": "left", "address": "10.0.0.1"}, {"name": "right", "address": "127.0.0.1"}]}'
)
LEFT = Seat("left", "10.0.0.1", (), None, (), {})


def node(folder: Path) -> Path:
    """Make a node's folder of an attempt that has ended, with the files that mpirun needs."""
    there = folder / "node" / "s" / "attempts" / "t" / "a1"
    there.mkdir(parents=True)
    (there / "r0.log").write_bytes(LOG)
    (there / "r0.exit").write_bytes(b"0 exited\n")
    for name in KEYS:
        (there / name).write_text("key")
    return there


def with_keys(there: Path, folder: Path) -> Attempt:
    """Return the attempt on that node alone."""
    task = replace(TASK, files=KEYS)
    return replace(attempt(sweep_in(folder), there), tasks=(task,), seats=(LEFT,))


def kept_keys(there: Path) -> list[str]:
    return sorted(path.name for path in [*there.glob("*id"), *there.glob("*host_key")])


@pytest.mark.parametrize("gang", [done(LOG), done(LOG[:-1]), None], ids=["whole", "cut", "lost"])
def test_an_attempt_is_closed_without_its_keys(tmp_path: Path, gang: GangEnd | None) -> None:
    """A log that was not copied whole stays on its node: that is the only copy."""
    there, sweep = node(tmp_path), sweep_in(tmp_path / "state")
    one, nodes = with_keys(there, tmp_path), elsewhere()
    problems = closing.end_and_copy(sweep, nodes, one, gang)
    assert (kept_keys(there), (there / "r0.log").read_bytes()) == ([], LOG)
    is_cut = gang == done(LOG[:-1])
    assert [problem.code for problem in problems] == ["LOG-COPY"] * is_cut
    assert (sweep.attempt_folder("t", 1) / "r0.log").exists() != is_cut
    closing.forget_folders(sweep, nodes, one)
    assert (there / "r0.log").exists() == is_cut


@pytest.mark.parametrize(("gang", "codes"), [(None, []), (done(LOG), ["LOG-COPY"])])
def test_a_log_that_is_missing_is_a_problem_only_if_its_program_started(
    tmp_path: Path, gang: GangEnd | None, codes: list[str]
) -> None:
    there, sweep = node(tmp_path), sweep_in(tmp_path / "state")
    (there / "r0.log").unlink()
    problems = closing.end_and_copy(sweep, elsewhere(), attempt(sweep, there), gang)
    assert [problem.code for problem in problems] == codes
    assert not (sweep.attempt_folder("t", 1) / "r0.log").exists()


@pytest.mark.cluster
@pytest.mark.parametrize("other", ["left out", "silent"])
def test_a_node_that_cannot_be_reached_keeps_no_keys_on_the_others(
    tmp_path: Path, other: str
) -> None:
    """The attempt stays open, and the files of the other node stay until it closes."""
    there, sweep = node(tmp_path), sweep_in(tmp_path)
    one, name = with_keys(there, tmp_path), "right" if other == "silent" else "elsewhere"
    both = replace(
        one,
        tasks=(*one.tasks, replace(TASK, node=name, node_rank=1)),
        folders={**one.folders, name: "/nonexistent/a1"},
        seats=(LEFT, replace(LEFT, node=name, address="127.0.0.1")),
    )
    if other == "silent":
        reached = {**Fleet.of(TWO).transports, "left": LocalTransport("left")}
        nodes = Fanout(Fleet(TWO, reached), Path("state"), lambda: False)
        task = f"{both.token(both.tasks[1])} on right"
        with pytest.raises(errors.LeftoverError, match=task) as raised:
            closing.close_left(sweep, nodes, both)
        assert raised.value.where["node"] == "right"
    else:
        assert closing.close_left(sweep, elsewhere(), both).nodes == ("left",)
    assert (kept_keys(there), (there / "r0.log").read_bytes()) == ([], LOG)
    assert sweep.events() == ()


@pytest.mark.cluster
def test_a_supervisor_that_was_killed_at_its_gate_leaves_no_gate(tmp_path: Path) -> None:
    """On this machine the folder stays, as evidence; nobody reads these FIFOs any more."""
    there, sweep = tmp_path / "a1", sweep_in(tmp_path)
    there.mkdir()
    one, nodes = replace(attempt(sweep, there), seats=(LEFT,)), elsewhere()
    nodes._runtime("left").create(one, one.tasks[0], LIMITS)
    files = TaskFiles(LocalTransport("left"), one, one.tasks[0])
    wait_for(lambda: files.supervisor() is not None, "it waits at its gate")
    supervisor = files.supervisor()
    assert supervisor is not None
    os.kill(supervisor.pid, signal.SIGKILL)
    closing.end_attempt(nodes, one)
    assert not [path.name for path in there.iterdir() if path.is_fifo() or path.suffix == ".new"]
    assert processes.carrying(f"={one.token(one.tasks[0])}".encode()) == []


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """Mount a file system with room for 512 KiB."""
    if os.geteuid() != 0:
        pytest.skip("a small file system can only be mounted as root")
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(folder)]
    subprocess.run(mount, check=True)
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_disk_that_fills_while_logs_are_fetched_is_an_error_and_the_node_keeps_its_copy(
    small: Path, tmp_path: Path
) -> None:
    """STORE-FULL, exit 6; nothing half-written takes the room that is left.

    With room again, the same log is copied whole, and then the node's folder is removed.
    """
    there, sweep = node(tmp_path), sweep_in(small)
    one, nodes = attempt(sweep, there), elsewhere()
    with pytest.raises(errors.StoreError) as raised:
        close(sweep, nodes, one, done(LOG))
    assert (raised.value.code, raised.value.exit_code) == ("STORE-FULL", 6)
    assert "node" not in raised.value.where
    assert (there / "r0.log").read_bytes() == LOG
    assert list(small.rglob("*.new")) == []
    subprocess.run(["mount", "-o", "remount,size=4m", str(small)], check=True)
    assert close(sweep, nodes, one, done(LOG)) == ()
    assert (sweep.attempt_folder("t", 1) / "r0.log").read_bytes() == LOG
    assert not there.exists()


BRING = """
import sys
from pathlib import Path
from orchestrator.state.sweep import Sweep
from tests.sweeping.elsewhere import LOG, attempt, close, done, elsewhere, sweep_in
there, sweep = Path(sys.argv[1]), sweep_in(Path(sys.argv[2]))
one, nodes = attempt(sweep, there), elsewhere()
assert close(sweep, nodes, one, done(LOG)) == ()
"""
CALL = re.compile(
    r"(?:(fsync)\(\d+<([^>]+)>|(rename)\(\".+\", \"(.+)\""
    r"|(mkdir)\(\"(.+)\", 0700|(execve)\(\"(.+?)\")"
)


def test_what_was_fetched_is_synced_before_the_node_lets_go(tmp_path: Path) -> None:
    """As strace shows it: file, then name, then folder, up to the sweep's; only then `rm`."""
    there, state = node(tmp_path), tmp_path / "state"
    trace = tmp_path / "trace"
    calls = "trace=fsync,rename,mkdir,execve"
    strace = ["strace", "-f", "-qq", "-y", "-s", "4096", "-e", calls, "-o", str(trace)]
    words = [sys.executable, "-c", BRING, str(there), str(state)]
    done = subprocess.run([*strace, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    seen: list[tuple[str, str]] = []
    for line in trace.read_text().splitlines():
        found = CALL.search(line)
        if found and not line.endswith("ENOENT (No such file or directory)"):
            kind, path = [word for word in found.groups() if word]
            seen.append((kind, re.sub(r"(\.[0-9]+){2}\.new$", ".new", path)))
    target = sweep_in(state).attempt_folder("t", 1)
    for name in ("r0.exit", "r0.log"):
        written = seen.index(("fsync", f"{target / name}.new"))
        named = seen.index(("rename", str(target / name)))
        settled = seen.index(("fsync", str(target)), named)
        assert written < named < settled
    gone = next(
        at for at, (kind, path) in enumerate(seen) if kind == "execve" and path.endswith("/rm")
    )
    assert settled < gone
    for folder in (target, target.parent, target.parent.parent):
        assert seen.index(("mkdir", str(folder))) < seen.index(("fsync", str(folder.parent))) < gone


@pytest.mark.parametrize("kind", ["folder", "link"])
def test_a_folder_or_a_link_in_the_place_of_a_log_keeps_nothing_on_its_node(
    tmp_path: Path, kind: str
) -> None:
    there, sweep = node(tmp_path), sweep_in(tmp_path / "state")
    (there / "r0.log").unlink()
    if kind == "folder":
        (there / "r0.log" / "inside").mkdir(parents=True)
    else:
        (there / "r0.log").symlink_to("/dev/null/nowhere")
    one, nodes = attempt(sweep, there), elsewhere()
    lost = TaskEnd("left", 0, None, "lost", 0, "", None)
    close(sweep, nodes, one, GangEnd("lost", (lost,)))
    assert not there.exists()
    assert not there.parent.exists()


def test_a_supervisor_on_a_full_disk_leaves_nothing_half_written(small: Path) -> None:
    """Its end cannot be recorded there; the log that took the room stays."""
    path = small / "supervise.sh"
    path.write_bytes(program(SUPERVISE))
    words = ("sh", str(path), str(small), "0", "dlp-full-disk", "60", "1", str(1 << 30), "")
    fill = ("sh", "-c", "exec yes")
    process = subprocess.Popen((*words, *fill), stdin=subprocess.DEVNULL, start_new_session=True)
    wait_for((small / "r0.pid").exists, "the supervisor is at its gate")
    (small / "r0.gate").write_text("go\n")
    assert process.wait(60) == 0
    names = {path.name for path in small.glob("r0.*")}
    # The log may have filled the disk before the supervisor could note when it opened the gate.
    assert {"r0.log", "r0.pid"} <= names <= {"r0.go", "r0.log", "r0.pid"}


@pytest.mark.parametrize("bytes_there", [1000, 1001])
def test_what_was_observed_is_cut_at_its_limit(
    bytes_there: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(closing, "MOST_OBSERVED_BYTES", 1000)
    there, sweep = node(tmp_path), sweep_in(tmp_path)
    (there / "r0.state").write_bytes(b"s" * bytes_there)
    assert closing.end_and_copy(sweep, elsewhere(), attempt(sweep, there), done(LOG)) == ()
    copied = sweep.attempt_folder("t", 1) / "r0.state"
    assert copied.stat().st_size == min(bytes_there, 1000)


METHOD = Method(repeats=1, iterations=3, window=(1, 2))
AT = "2026-01-05T09:00:00.000+00:00"


class _EndsMeanwhile(Fanout):
    """Let the second look come after the attempt has ended and its files are here."""

    looks = 0

    def read(self, attempt: Attempt, task: Task, name: str, offset: int = 0) -> bytes | None:
        self.looks += 1
        if self.looks == 1:
            return super().read(attempt, task, name, offset)
        sweep = sweep_in(Path(attempt.folder(task)).parents[1])
        folder = sweep.attempt_folder("t", 1)
        Path(attempt.folder(task), name).rename(folder / name)
        sweep.append(Ended(at=AT, trial="t", attempt=1, state="valid"))
        return None


@pytest.mark.parametrize("follow", [False, True])
def test_a_log_whose_attempt_ends_while_it_is_printed_is_whole(
    follow: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first piece is read from the node, the others from the copy here."""
    there = tmp_path / "node" / "a1"
    there.mkdir(parents=True)
    sweep = sweep_in(tmp_path)
    one = attempt(sweep, there)
    sweep.keep_attempt(one, {})
    sweep.append(Intent(at=AT, trial="t", attempt=1, port=20_000, log="t.log"))
    whole = LOG * 20  # more than a transport returns at once
    (there / "r0.log").write_bytes(whole)
    running = Running(sweep, CLUSTER, Plan("x", "toy", "", "", "far", METHOD, ()))
    plain = elsewhere()
    ending = _EndsMeanwhile(plain._fleet, tmp_path, lambda: False)
    monkeypatch.setattr(Running, "scheduler", lambda _: ending)
    assert b"".join(logs._read_pieces(running, one, TASK.node_rank, follow)) == whole
