"""The supervisor's own script, run by hand: how its task ended is told whatever met it."""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path

import pytest

from tests.waiting import wait_for

PROGRAMS = resources.files("orchestrator.runtimes")
SUPERVISE = PROGRAMS.joinpath("supervise.sh").read_text()
OBSERVE = PROGRAMS.joinpath("observe.sh").read_text()
NOBODY = 65534


@contextlib.contextmanager
def supervised(
    *program: str,
    shell: Sequence[str] = ("sh",),
    observe: str = "",
    user: int | None = None,
    grace_s: int = 1,
) -> Iterator[tuple["subprocess.Popen[bytes]", Path]]:
    """A supervisor at its gate, and its folder."""
    folder = Path(tempfile.mkdtemp(prefix="dlperf-supervised-"))
    if user is not None:
        os.chown(folder, user, user)
    # As text: another user may not reach the file.
    script = (*shell, "-c", SUPERVISE, "supervise.sh")
    words = (*script, str(folder), "0", folder.name, "60", str(grace_s), "1000000")
    (folder / "observe.sh").write_text(OBSERVE)
    with subprocess.Popen((*words, observe, *program), start_new_session=True, user=user) as made:
        try:
            wait_for((folder / "r0.gate").exists, "the supervisor at its gate", 20)
            wait_for((folder / "r0.pid").exists, "the supervisor's pid", 20)
            yield made, folder
            assert made.wait(20) == 0
        finally:
            made.kill()
            shutil.rmtree(folder)


def go(folder: Path) -> None:
    """Open the gate."""
    with (folder / "r0.gate").open("w") as gate:
        gate.write("go\n")


@pytest.mark.parametrize("shell", [("sh",), ("bash", "--posix")], ids=" ".join)
def test_a_task_that_is_stopped_at_its_gate_says_so(shell: Sequence[str]) -> None:
    """Whatever shell sh is: in bash, a bare return in a trap returns the status from before."""
    with supervised("true", shell=shell) as (supervisor, folder):
        supervisor.send_signal(signal.SIGTERM)
        supervisor.wait(20)
        assert (folder / "r0.exit").read_text() == "143 stopped\n"
        assert (folder / "r0.end").read_text().startswith("0 ")


def test_a_log_that_cannot_be_read_for_a_while_costs_nothing() -> None:
    """As on a shared folder whose server is away: its size is not known, so it is not too large."""
    program = "echo hello; chmod 000 r0.log; sleep 2; chmod 600 r0.log; echo done"
    user = NOBODY if os.geteuid() == 0 else None  # root could read it all the same
    with supervised("sh", "-c", program, user=user) as (supervisor, folder):
        go(folder)
        supervisor.wait(20)
        assert (folder / "r0.exit").read_text() == "0 exited\n"
        assert (folder / "r0.end").read_text().startswith("11 ")


def test_a_log_that_cannot_be_read_at_the_end_has_no_end() -> None:
    """Nobody can vouch for it then: the task is lost, not one whose files nobody understands."""
    user = NOBODY if os.geteuid() == 0 else None  # root could read it all the same
    with supervised("sh", "-c", "echo hello; chmod 000 r0.log", user=user) as (supervisor, folder):
        go(folder)
        supervisor.wait(20)
        assert not (folder / "r0.end").exists()


def test_an_observer_follows_no_link_of_the_program(tmp_path: Path) -> None:
    """Another file of the user's stays as it is."""
    precious = tmp_path / "precious"
    precious.write_text("precious\n")
    program = f"ln -s {precious} r0.state; ln -s {precious} r0.gpus; sleep 1"
    with supervised("sh", "-c", program, observe="s 60 ") as (supervisor, folder):
        go(folder)
        supervisor.wait(20)
        assert (folder / "r0.observer").exists()
        assert precious.read_text() == "precious\n"
