"""A standard output that cannot be written is an error of this machine, of every command."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests import ROOT, commands

PROGRAM = [sys.executable, "-m", "orchestrator"]
ENV = commands.environment(PYTHONPATH=str(ROOT))
COMMANDS = (
    "list workloads",
    "list playbooks --json",
    "list sweeps",
    "check smoke local",
    "schema playbook",
    "published",
    "sweep smoke --dry-run",
    "--help",
    "collect --help",
    "--version",
)


@pytest.mark.parametrize("command", [*COMMANDS, "sweep smok --json"])
def test_a_full_disk_is_a_local_error(tmp_path: Path, command: str) -> None:
    """Exit code 6 and one line; no bug, and nothing of Python."""
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*PROGRAM, *command.split()],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env=ENV,
        )
    said = "ERROR STDOUT: standard output cannot be written: No space left on device."
    assert said in done.stderr
    assert (done.returncode, "Traceback" in done.stderr) == (6, False)
    assert not [*Path(tmp_path).rglob("traceback*")]


def test_a_closed_standard_output_is_one_too(tmp_path: Path) -> None:
    """As by ``>&-`` of a shell."""
    shell = 'exec "$@" >&-'
    words = ["sh", "-c", shell, "sh", *PROGRAM, "list", "workloads"]
    done = commands.run(words, cwd=tmp_path, env=ENV)
    assert done.returncode == 6
    assert "ERROR STDOUT: standard output cannot be written: it is closed." in done.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_a_reader_that_has_gone_hears_nothing(tmp_path: Path, command: str) -> None:
    """As with ``| head -1``: no message, and no exit code of a bug."""
    shell = '{ "$@"; echo $? >code; } 2>err | :'
    words = ["sh", "-c", shell, "sh", *PROGRAM, *command.split()]
    commands.run(words, cwd=tmp_path, env=ENV)
    assert "ERROR" not in (tmp_path / "err").read_text()
    assert (tmp_path / "code").read_text().strip() in ("0", "1", "141")  # 1: click's own, of --help


@pytest.mark.parametrize("command", ["sweep smok --json", "status --json"])
def test_a_closed_standard_error_changes_no_exit_code(tmp_path: Path, command: str) -> None:
    """A cron job may close it by ``2>&-``: the document still says what is wrong."""
    words = ["sh", "-c", 'exec "$@" 2>&-', "sh", *PROGRAM, *command.split()]
    done = commands.run(words, cwd=tmp_path, env=ENV)
    assert (done.returncode, json.loads(done.stdout)["exit_code"]) == (2, 2)
