"""The scripts of supervisor and observer, run by hand beside a process of this machine."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from orchestrator.runtimes.supervisor import OBSERVE, SUPERVISE, program
from orchestrator.telemetry.read import telemetry
from tests import processes
from tests.processes import wait_for

SHELLS = pytest.mark.parametrize("shell", [("sh",), ("bash", "--posix")], ids=" ".join)
# Root could read a log that is closed to its owner.
UNPRIVILEGED = 65534 if os.geteuid() == 0 else None
ROUNDS = 150


@contextlib.contextmanager
def supervised(
    *words: str,
    shell: Sequence[str] = ("sh",),
    observe: str = "",
    user: int | None = None,
    grace_s: int = 1,
    path: str = "",
) -> Iterator[tuple["subprocess.Popen[bytes]", Path]]:
    """Yield a supervisor at its gate, and its folder; it must end well."""
    folder = Path(tempfile.mkdtemp(prefix="dlperf-supervised-"))
    if user is not None:
        os.chown(folder, user, user)
    # As text: another user may not reach the file.
    script = (*shell, "-c", program(SUPERVISE).decode(), SUPERVISE)
    limits = ("60", str(grace_s), "1000000")
    argv = (*script, str(folder), "0", folder.name, *limits, observe, *words)
    (folder / "observe.sh").write_bytes(program(OBSERVE))
    env = {**os.environ, "PATH": f"{path}{os.environ['PATH']}"}
    with subprocess.Popen(argv, start_new_session=True, user=user, env=env) as made:
        try:
            wait_for((folder / "r0.gate").exists, "the supervisor at its gate")
            wait_for((folder / "r0.pid").exists, "the supervisor's pid")
            yield made, folder
            assert made.wait(20) == 0
        finally:
            made.kill()
            shutil.rmtree(folder)


def go(folder: Path) -> None:
    """Open the gate."""
    with (folder / "r0.gate").open("w") as gate:
        gate.write("go\n")


@SHELLS
def test_a_task_that_is_stopped_at_its_gate_leaves_its_end(shell: Sequence[str]) -> None:
    """In bash, a bare return in a trap returns the status from before."""
    with supervised("true", shell=shell) as (supervisor, folder):
        supervisor.send_signal(signal.SIGTERM)
        supervisor.wait(20)
        assert (folder / "r0.exit").read_text() == "143 stopped\n"
        assert (folder / "r0.end").read_text().startswith("0 ")


@pytest.mark.parametrize(
    ("program", "size"),
    [
        # A shared folder whose server is away: an unknown size is not too large.
        ("echo hello; chmod 000 r0.log; sleep 2; chmod 600 r0.log; echo done", "11 "),
        # Without its log the task is lost: nobody can vouch for its end.
        ("echo hello; chmod 000 r0.log", None),
    ],
    ids=["for a while", "at the end"],
)
def test_a_log_that_cannot_be_read_has_no_size(program: str, size: str | None) -> None:
    with supervised("sh", "-c", program, user=UNPRIVILEGED) as (supervisor, folder):
        go(folder)
        supervisor.wait(20)
        end = folder / "r0.end"
        assert end.exists() == (size is not None)
        if size:
            assert (folder / "r0.exit").read_text() == "0 exited\n"
            assert end.read_text().startswith(size)


# Implementations of `date -f -`: GNU's; uutils' from 0.7 on, which prints its start for all lines.
DATES = {
    "of each line": 'exec /bin/date "$@"',
    "of its start": 'at=$(/bin/date +%s.%N); while read -r _; do echo "$at"; done',
    "unknown": "exit 1",
}


@pytest.mark.parametrize("date", DATES)
def test_the_recorded_time_is_that_of_the_opening(date: str, tmp_path: Path) -> None:
    """Not that of the supervisor's arrival at its gate, whichever `date` its node has."""
    stub = tmp_path / "date"
    stub.write_text(f'#!/bin/sh\ncase $1 in -f) {DATES[date]};; esac\nexec /bin/date "$@"\n')
    stub.chmod(0o755)
    with supervised("true", path=f"{tmp_path}:") as (supervisor, folder):
        time.sleep(0.5)
        before = time.time()
        go(folder)
        assert supervisor.wait(20) == 0
        assert before - 0.1 < float((folder / "r0.go").read_text()) < time.time()
        left = {path.name for path in folder.iterdir()}
        assert left == {"r0.end", "r0.exit", "r0.go", "r0.log", "r0.pid", "observe.sh"}


def test_an_observer_follows_no_link_of_the_program(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("precious\n")
    program = f"ln -s {precious} r0.state; ln -s {precious} r0.gpus; sleep 1"
    with supervised("sh", "-c", program, observe="s 60 ") as (supervisor, folder):
        go(folder)
        supervisor.wait(20)
        assert (folder / "r0.observer").exists()
        assert precious.read_text() == "precious\n"


@contextlib.contextmanager
def running(*words: str, env: dict[str, str] | None = None) -> Iterator[int]:
    """Yield the pid of a program that runs within the block."""
    process = subprocess.Popen(words, env=env, stdin=subprocess.DEVNULL)
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


@pytest.mark.cluster
def test_an_observer_writes_numbers_with_a_point_on_a_german_node(tmp_path: Path) -> None:
    """The share of another process is not cut there: 1,5 would be two fields."""
    source, locale = Path("/usr/share/i18n/locales/de_DE"), tmp_path / "locales" / "de_DE.UTF-8"
    if not source.exists():
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"not on this machine: {source}")
    locale.parent.mkdir()
    subprocess.run(("localedef", "-i", source, "-f", "UTF-8", locale), check=True)
    env = {name: value for name, value in os.environ.items() if not name.startswith("LC_")}
    env |= {"LOCPATH": str(locale.parent), "LANG": locale.name}
    os.mkfifo(tmp_path / "r0.alive")
    held = os.open(tmp_path / "r0.alive", os.O_RDWR)  # as a supervisor does
    words = ("timeout", "60", "sh", "-c", program(OBSERVE).decode(), OBSERVE, str(tmp_path))
    state = tmp_path / "r0.state"
    with running("sh", "-c", "while :; do :; done") as busy, running("sleep", "60") as task:
        share = f",cpu,{busy},"
        with running(*words, "0", "s", "60", "", str(task), env=env):
            wait_for(lambda: state.exists() and share in state.read_text(), "its share")
            os.close(held)  # which ends it
    line = next(line for line in state.read_text().splitlines() if share in line)
    assert re.fullmatch(rf"process,\d+\.\d\d,\d+\.\d\d,cpu,{busy},\d\.\d\d,sh", line)
    node = telemetry("here", state.read_bytes(), b"")
    assert node is not None
    assert busy in [process.pid for process in node.processes]


# Races of the supervisor with its own forked shells last milliseconds: many rounds.


@pytest.mark.cluster
@pytest.mark.long
@SHELLS
def test_no_process_of_a_supervisor_outlives_it(shell: Sequence[str]) -> None:
    """A program that ends at once meets watches that only just begin: they too end before."""
    left = []
    for number in range(ROUNDS):
        with supervised("true", shell=shell) as (supervisor, folder):
            go(folder)
            assert supervisor.wait(20) == 0
            left += [(number, *found) for found in in_group(supervisor.pid)]
            assert (folder / "r0.exit").read_text() == "0 exited\n"
            assert (folder / "r0.end").read_text().startswith("0 ")
    assert left == []


@pytest.mark.cluster
@pytest.mark.long
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
    """Return the processes of a process group: their pids and command lines."""
    found = []
    for path in processes.files("stat"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            fields = path.read_text().rpartition(") ")[2].split()
            if fields[0] != "Z" and int(fields[2]) == group:
                found.append((int(path.parent.name), path.with_name("cmdline").read_text()))
    return found
