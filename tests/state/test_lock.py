"""Locks: one holder, who is named; asking who it is keeps nobody from taking it."""

import fcntl
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator import errors, processes
from orchestrator.model.process import Holder
from orchestrator.state.lock import AGAIN_S, Lock, MachineLock, own, refused
from tests import ROOT

ELSEWHERE = replace(processes.me(), host="elsewhere")


def test_a_lock_has_one_holder_who_is_named(tmp_path: Path) -> None:
    """The second is refused with the holder's pid and what ends it; after the first it is free."""
    lock, second = (Lock(tmp_path / "lock", "the thing", tmp_path) for _ in range(2))
    assert second.holder() is None
    with lock:
        assert (tmp_path / "lock").stat().st_mode & 0o777 == 0o600
        holder = second.holder()
        assert holder is not None
        assert (holder.process, holder.folder) == (processes.me(), str(tmp_path))
        words = f"the thing is in use by pid {os.getpid()} "
        with pytest.raises(errors.StoreError, match=words) as raised:
            second.__enter__()
        assert f"dlperf-orch stop --state {tmp_path}" in raised.value.fix
    assert second.holder() is None
    with second:
        pass


def test_a_user_without_a_name_is_shown_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container that was started with `--user`."""
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 4_000_000_123)  # an account that is not there
    assert processes.user() == "4000000123"


# Prints how often locks of files were touched by asking who holds one.
ASKS = """
import sys
from pathlib import Path
from orchestrator.state.lock import Lock

path, calls = Path(sys.argv[1]), []
sys.addaudithook(lambda event, _: calls.append(event) if event.startswith("fcntl.") else None)
Lock(path, "this", path.parent).holder()
print(calls)
"""


def test_asking_for_the_holder_takes_no_lock(tmp_path: Path) -> None:
    """`status` in a loop beside a sweep that starts takes not even a shared one."""

    def ask() -> str:
        words = (sys.executable, "-c", ASKS, str(tmp_path / "lock"))
        return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout

    with Lock(tmp_path / "lock", "this", tmp_path):
        held = ask()
    assert (held, ask()) == ("[]\n", "[]\n")


def _hold(path: Path, ready: "multiprocessing.synchronize.Event") -> None:
    with Lock(path, "the thing", path.parent):
        ready.set()
        signal.pause()


def test_a_lock_ends_with_a_killed_holder(tmp_path: Path) -> None:
    """SIGKILL leaves no stale lock behind, and nobody is said to hold it."""
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    holder = context.Process(target=_hold, args=(tmp_path / "lock", ready))
    holder.start()
    assert ready.wait(30)
    holder.kill()
    holder.join()
    assert Lock(tmp_path / "lock", "the thing", tmp_path).holder() is None
    with Lock(tmp_path / "lock", "the thing", tmp_path):
        pass


def test_a_holder_that_has_not_written_its_name_yet_is_waited_for(tmp_path: Path) -> None:
    """Between the two moments the file names the holder before, who is long gone."""
    path = tmp_path / "lock"
    gone = Holder(processes.me(), "root", "yesterday", str(tmp_path)).record()
    path.write_text(gone.replace(f'"started": "{processes.me().started}"', '"started": "1"'))
    with open(path, "r+") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        lock = Lock(path, "the thing", tmp_path)
        assert lock.holder() is None

        def write() -> None:
            time.sleep(0.2)
            other.write(own(tmp_path).record().ljust(len(gone) + 20))
            other.flush()

        writer = threading.Thread(target=write)
        writer.start()
        with pytest.raises(errors.StoreError, match=f"in use by pid {os.getpid()} of "):
            lock.__enter__()
        writer.join()


def test_a_name_of_another_machine_holds_nothing_by_itself(tmp_path: Path) -> None:
    """It stays in the file where that machine went down; flock alone decides who holds the lock.

    Another process may hold it for a moment, only to test it, and keeps nobody from taking it.
    """
    path = tmp_path / "lock"
    there = Holder(ELSEWHERE, "root", "today", str(tmp_path))
    path.write_text(f"{there.record()}\n")
    lock = Lock(path, "this", tmp_path)
    assert lock.held_by() is None
    with open(path, "r+") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        assert lock.held_by() == there
        done = threading.Timer(AGAIN_S / 2, fcntl.flock, (other, fcntl.LOCK_UN))
        done.start()
        with lock:
            holder = lock.held_by()
            assert holder is not None
            assert holder.process == processes.me()
        done.join()


def test_sigterm_reaches_that_process_and_no_other() -> None:
    """A process with its pid and another start time is left alone, one of another host too."""
    foreign = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    said = Path(f"/proc/{foreign.pid}/stat").read_text().rpartition(") ")[2].split()[19]
    identity = replace(processes.me(), pid=foreign.pid, started=said)
    processes.terminate(replace(identity, started="1"))
    processes.terminate(replace(identity, boot="another"))
    processes.terminate(replace(identity, host="elsewhere"))
    with pytest.raises(subprocess.TimeoutExpired):
        foreign.wait(0.5)
    processes.terminate(identity)
    assert foreign.wait(10) == -signal.SIGTERM


@pytest.mark.skipif(os.geteuid() != 0, reason="files of another user can only be made as root")
def test_another_users_file_locks_the_machine_too(tmp_path: Path) -> None:
    """In /var/tmp the kernel keeps even root from writing others' files in the usual way."""
    folder = tmp_path / "everybodys"
    folder.mkdir()
    folder.chmod(0o1777)
    path = folder / "dlperf.lock"
    path.touch()
    path.chmod(0o666)
    os.chown(path, 12345, 12345)
    with MachineLock(path, "this machine", tmp_path) as lock:
        assert lock.holder() is not None
        with pytest.raises(errors.StoreError, match="this machine is in use by pid"):
            MachineLock(path, "this machine", tmp_path).__enter__()
    (folder / "link").symlink_to(path)
    with pytest.raises(errors.LocalError):
        MachineLock(folder / "link", "this machine", tmp_path).__enter__()


@pytest.mark.parametrize(
    "changes",
    [
        *(
            {"folder": 7},
            {"since": "now\x1b[2J"},
            {"user": "a\nb"},
            {"folder": None},
            {"user": ["x"]},
        ),
        {"process": {"host": "here", "pid": "1; harm", "started": "1", "boot": "b"}},
    ],
    ids=["number", "escape", "line break", "null", "list", "pid"],
)
def test_a_malformed_record_names_no_holder(changes: dict[str, object]) -> None:
    """Anybody may write into the machine's lock file; a terminal obeys nothing of it."""
    fields = json.loads(own(Path("/state")).record())
    assert Holder.read(json.dumps(fields)) is not None
    assert Holder.read(json.dumps({**fields, **changes})) is None


def test_the_command_that_ends_a_holder_is_one_command(tmp_path: Path) -> None:
    """Its folder is one word, whatever somebody wrote there."""
    fields = json.loads(own(tmp_path).record())
    holder = Holder.read(json.dumps({**fields, "folder": "/x; rm -rf ~"}))
    assert "--state '/x; rm -rf ~'`" in refused("it", holder).fix
