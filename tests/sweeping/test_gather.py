"""What comes from a node: whole, kept so that a power cut cannot take it, and only then let go."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator import errors
from orchestrator.model.attempt import GangEnd, TaskEnd
from orchestrator.runtimes.supervisor import SUPERVISE, program
from orchestrator.sweeping import closing
from tests.sweeping.elsewhere import LOG, attempt, close, done, elsewhere, sweep_in
from tests.waiting import wait_for


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system with room for 512 KiB."""
    if os.geteuid() != 0:
        pytest.skip("a small file system can only be mounted as root")
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(folder)]
    subprocess.run(mount, check=True)
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def node(folder: Path) -> Path:
    """A node's folder of an attempt that has ended."""
    there = folder / "node" / "s" / "attempts" / "t" / "a1"
    there.mkdir(parents=True)
    (there / "r0.log").write_bytes(LOG)
    (there / "r0.exit").write_bytes(b"0 exited\n")
    return there


def test_a_disk_that_fills_while_logs_are_fetched_is_told_and_the_node_keeps_its_copy(
    small: Path, tmp_path: Path
) -> None:
    """STORE-FULL, exit 6, not a copy that failed; nothing half-written takes the room that is left.

    With room again, the same comes whole, and then the node's folder goes.
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


def test_a_log_that_comes_otherwise_is_not_kept_and_stays_on_its_node(tmp_path: Path) -> None:
    """LOG-COPY names the node; the only copy there is outlives the attempt's end."""
    there, sweep = node(tmp_path), sweep_in(tmp_path / "state")
    one, nodes = attempt(sweep, there), elsewhere()
    (problem,) = close(sweep, nodes, one, done(LOG[:-1]))
    assert problem.code == "LOG-COPY"
    assert not (sweep.attempt_folder("t", 1) / "r0.log").exists()
    assert (there / "r0.log").read_bytes() == LOG


@pytest.mark.parametrize("kind", ["folder", "link"])
def test_what_is_no_log_keeps_no_folder_on_a_node(tmp_path: Path, kind: str) -> None:
    """A folder or a link in a log's place is nothing to keep: the attempt's folder goes."""
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
    """Seen from the kernel: file, then name, then folder, up to the sweep's; only then `rm`."""
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


def test_a_supervisor_on_a_full_disk_leaves_nothing_half_written(small: Path) -> None:
    """How it ended cannot be told there; the log that took the room stays."""
    path = small / "supervise.sh"
    path.write_bytes(program(SUPERVISE))
    words = ("sh", str(path), str(small), "0", "dlp-full-disk", "60", "1", str(1 << 30), "")
    fill = ("sh", "-c", "exec yes")
    process = subprocess.Popen((*words, *fill), stdin=subprocess.DEVNULL, start_new_session=True)
    wait_for((small / "r0.pid").exists, "the supervisor is at its gate")
    (small / "r0.gate").write_text("go\n")
    assert process.wait(60) == 0
    assert sorted(path.name for path in small.glob("r0.*")) == ["r0.go", "r0.log", "r0.pid"]


@pytest.mark.parametrize("bytes_there", [999, 1000, 1001, 5000])
def test_what_was_observed_is_cut_at_its_limit(
    bytes_there: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file beyond it has an end too."""
    monkeypatch.setattr(closing, "MOST_OBSERVED_BYTES", 1000)
    there, sweep = node(tmp_path), sweep_in(tmp_path)
    (there / "r0.state").write_bytes(b"s" * bytes_there)
    assert closing.end_and_copy(sweep, elsewhere(), attempt(sweep, there), done(LOG)) == ()
    copied = sweep.attempt_folder("t", 1) / "r0.state"
    assert copied.stat().st_size == min(bytes_there, 1000)
