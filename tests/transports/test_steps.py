"""Steps of Slurm's, by a program named srun that runs them here."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator import errors
from orchestrator.transports.steps import Steps, StepTransport
from tests import ROOT
from tests.processes import wait_for
from tests.transports.ssh_nodes import put_srun

PUTS = """
import signal
import sys
from orchestrator.transports.steps import Steps, StepTransport
signal.signal(signal.SIGINT, lambda *_: None)
StepTransport("here", Steps("7")).put(b"content", sys.argv[1])
"""


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StepTransport:
    """A node of a job."""
    put_srun(tmp_path, monkeypatch)
    return StepTransport("here", Steps("7"))


def test_no_script_is_a_word_of_a_process(node: StepTransport) -> None:
    script = 'tr "\\0" " " </proc/$$/cmdline; : canary'
    assert b"canary" not in node.run(("sh", "-c", script), timeout_s=10).stdout


def test_a_missing_srun_is_an_error_of_the_node(
    node: StepTransport, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for call in (
        lambda: node.put(b"x", str(tmp_path / "file")),
        lambda: node.run(("true",), timeout_s=5),
        lambda: node.open(("cat",)),
    ):
        with pytest.raises(errors.NodeError, match="srun"):
            call()


def test_a_file_in_a_shared_folder_needs_no_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_srun(tmp_path, monkeypatch)
    (tmp_path / "bin" / "srun").write_text("#!/bin/sh\necho no step >&2\nexit 1\n")
    shared = tmp_path / "shared"
    node = StepTransport("here", Steps("7"), shared)
    node.put(b"x", str(shared / "file"))
    assert node.get(str(shared / "file")) == b"x"
    for path in (tmp_path / "file", shared / "../file"):
        with pytest.raises(errors.DlperfError, match="no step"):
            node.put(b"x", str(path))
        with pytest.raises(errors.DlperfError, match="no step"):
            node.get(str(path))


@pytest.mark.usefixtures("node")
def test_ctrl_c_does_not_reach_a_step_that_writes_a_file(tmp_path: Path) -> None:
    (tmp_path / "slow").touch()
    path = tmp_path / "written"
    words = (sys.executable, "-c", PUTS, str(path))
    with subprocess.Popen(words, cwd=ROOT, process_group=0) as writer:
        wait_for((tmp_path / "began").exists, "the step")
        os.killpg(writer.pid, signal.SIGINT)
        wait_for(path.exists, "the file")
        writer.wait(20)
    assert path.read_bytes() == b"content"
