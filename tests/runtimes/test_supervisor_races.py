"""Races of the supervisor with its own forked shells, which last milliseconds: many rounds."""

import signal
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests import proc
from tests.runtimes.test_supervisor_ends import go, supervised

pytestmark = [pytest.mark.cluster, pytest.mark.long]

ROUNDS = 150
SHELLS = pytest.mark.parametrize("shell", [("sh",), ("bash", "--posix")], ids=" ".join)


@SHELLS
def test_nothing_of_a_supervisor_outlives_it(shell: Sequence[str]) -> None:
    """A program that ends at once meets watches which only just begin: they too end before."""
    left = []
    for number in range(ROUNDS):
        with supervised("true", shell=shell) as (supervisor, folder):
            go(folder)
            assert supervisor.wait(20) == 0
            left += [(number, *found) for found in in_group(supervisor.pid)]
            assert (folder / "r0.exit").read_text() == "0 exited\n"
            assert (folder / "r0.end").read_text().startswith("0 ")
    assert left == []


@SHELLS
def test_a_stop_at_the_moment_of_the_gate_is_heard(shell: Sequence[str]) -> None:
    """From 0 to 4 ms behind it, while the supervisor forks its program: none waits for the end."""
    late = []
    for number in range(ROUNDS):
        with supervised("sleep", "8", shell=shell, grace_s=8) as (supervisor, folder):
            go(folder)
            time.sleep(number % 20 / 5000)
            supervisor.send_signal(signal.SIGTERM)
            began = time.monotonic()
            assert supervisor.wait(20) == 0
            took_s = time.monotonic() - began
            said = (folder / "r0.exit").read_text()
            if took_s > 4 or said != "143 stopped\n":
                late.append((number, took_s, said))
            assert (folder / "r0.end").exists()
    assert late == []


def in_group(group: int) -> list[tuple[int, str]]:
    """Processes of a process group: their pid, and what they are."""
    found = []
    for path in proc.files("stat"):
        text = content(path)
        pid, _, rest = text.partition(" (")
        fields = rest.rpartition(") ")[2].split()
        if fields and fields[0] != "Z" and int(fields[2]) == group:
            found.append((int(pid), content(path.with_name("cmdline"))))
    return found


def content(path: Path) -> str:
    """A file of a process; empty once that has ended."""
    try:
        return path.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
