"""Steps of Slurm's, by a program named srun that runs them here."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from orchestrator import errors
from orchestrator.transports.steps import Steps, StepTransport
from tests import ROOT
from tests.waiting import wait_for

SRUN = """#!/bin/sh
while [ "$#" -gt 0 ]; do
    case $1 in sh | */sh | cat) break ;; esac
    shift
done
SLURMD_NODENAME=n1
export SLURMD_NODENAME
echo $$ >"$HERE/began"
[ ! -e "$HERE/slow" ] || sleep 2
exec "$@"
"""
PUTS = """
import signal
import sys
from orchestrator.transports.steps import Steps, StepTransport
signal.signal(signal.SIGINT, lambda *_: None)
StepTransport("n1", Steps("7")).put(b"content", sys.argv[1])
"""


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StepTransport:
    """A node of a job."""
    srun = tmp_path / "bin" / "srun"
    srun.parent.mkdir()
    srun.write_text(SRUN)
    srun.chmod(0o755)
    monkeypatch.setenv("PATH", f"{srun.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("HERE", str(tmp_path))
    return StepTransport("n1", Steps("7"))


def test_commands_files_and_streams_pass_through_steps(node: StepTransport, tmp_path: Path) -> None:
    """Words come as they are, scripts as well, and no script is a word of a process."""
    words = ("a b", "$HOME", "'", "\\n", "\n", "ä")
    done = node.run(("printf", "%s|", *words), timeout_s=10)
    assert (done.exit_code, done.stdout.decode()) == (0, "".join(f"{word}|" for word in words))
    script = 'cat; printf "%s-" "$@"; tr "\\0" " " </proc/$$/cmdline >&2; exit 3'
    done = node.run(("sh", "-c", script, "sh", "x y", "z"), timeout_s=10)
    assert (done.exit_code, done.stdout) == (3, b"x y-z-")
    assert b"printf" not in done.stderr
    node.put(b"content", str(tmp_path / "file"))
    assert node.get(str(tmp_path / "file"), 3, own=True) == b"tent"
    (tmp_path / "link").symlink_to(tmp_path / "file")
    assert node.get(str(tmp_path / "link"), own=True) is None
    stream = node.open(("sh", "-c", 'read -r line; echo "got $line"'))
    stream.sendall(b"it\n")
    stream.settimeout(10)
    assert stream.recv(100) == b"got it\n"
    stream.close()


def test_a_missing_srun_is_no_bug(
    node: StepTransport, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error of the node's, whatever was to be done."""
    monkeypatch.setenv("PATH", str(tmp_path))
    for doing in (
        lambda: node.put(b"x", str(tmp_path / "file")),
        lambda: node.run(("true",), timeout_s=5),
        lambda: node.open(("cat",)),
    ):
        with pytest.raises(errors.NodeError, match="srun"):
            doing()


def test_ctrl_c_does_not_reach_a_step_that_writes_a_file(
    node: StepTransport, tmp_path: Path
) -> None:
    """The file is whole all the same."""
    (tmp_path / "slow").touch()
    path = tmp_path / f"written-{node.node}"
    words = (sys.executable, "-c", PUTS, str(path))
    with subprocess.Popen(words, cwd=ROOT, process_group=0) as writer:
        wait_for((tmp_path / "began").exists, "the step")
        os.killpg(writer.pid, signal.SIGINT)
        deadline = time.monotonic() + 10
        while not path.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        writer.wait(20)
    assert path.read_bytes() == b"content"
