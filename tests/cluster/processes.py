"""Processes of a run: known by their environment, ended by their ids."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests import commands, processes
from tests.cluster.place import STANDARD_PATH, Place, TestbedError

PATIENCE_S = 60.0


def call(*argv: str, stdin: str = "") -> str:
    """Run a command of this machine to its end; its standard output.

    Raises:
        TestbedError: it failed; says what it wrote.
    """
    done = subprocess.run(argv, input=stdin, capture_output=True, text=True, check=False)
    if done.returncode:
        raise TestbedError(f"{' '.join(argv)}: exit {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def start(place: Place, argv: Sequence[str], *, log: Path, **marks: str) -> None:
    """Start a process that outlives us, in a session of its own, marked as the run's."""
    env = {"PATH": STANDARD_PATH, "HOME": "/root", "LANG": "C.UTF-8", **place.mark, **marks}
    with log.open("ab") as output:
        # setsid --fork leaves no child of ours behind that someone would have to wait for.
        subprocess.run(
            ["setsid", "--fork", *argv],
            env=env,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            check=True,
        )


def marked(marks: Mapping[str, str]) -> tuple[int, ...]:
    """Pids of all processes whose environment has every one of ``marks``, not ours."""
    wanted = {f"{key}={value}".encode() for key, value in marks.items()}
    return tuple(
        pid
        for pid, env in _environments()
        if wanted <= set(env.split(b"\0")) and pid != os.getpid()
    )


def init(place: Place, node: str) -> int | None:
    """Pid, as seen here, of a node's first process; None when the node is down."""
    for pid in marked({**place.mark, "VIRTUAL_NODE": node}):
        try:
            status = Path(f"/proc/{pid}/status").read_text()
        except OSError:
            continue
        inner = next((line for line in status.splitlines() if line.startswith("NSpid:")), "")
        if inner.split()[1:] == [str(pid), "1"]:
            return pid
    return None


def end(place: Place, **marks: str) -> None:
    """Kill every process of the run, or of one node of it, and wait until none is left.

    Raises:
        TestbedError: something cannot be killed; says which pids.
    """
    deadline = time.monotonic() + PATIENCE_S
    while left := (*marked({**place.mark, **marks}), *_tenants(place, **marks)):
        if time.monotonic() > deadline:
            raise TestbedError(f"run {place.run}: processes {left} do not end")
        for pid in left:
            _kill(pid)
        time.sleep(0.02)


def _tenants(place: Place, **marks: str) -> tuple[int, ...]:
    """Pids in network namespaces of nodes: all there is the node's, marked or not."""
    node = marks.get("VIRTUAL_NODE")
    spaces = [f"{place.netns}-{node}"] if node else place.spaces()
    found: list[int] = []
    for space in spaces:
        if space != place.netns and Path("/run/netns", space).exists():
            listed = commands.run(["ip", "netns", "pids", space])
            found += [int(pid) for pid in listed.stdout.split()]
    return tuple(found)


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _environments() -> Iterator[tuple[int, bytes]]:
    for path in processes.files("environ"):
        try:
            yield int(path.parent.name), path.read_bytes()
        except OSError:
            continue
