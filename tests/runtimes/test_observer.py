"""The observer's own script, run by hand beside a process of this machine."""

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from orchestrator.runtimes.supervisor import OBSERVE, program
from orchestrator.telemetry.read import telemetry
from tests.waiting import wait_for

pytestmark = pytest.mark.cluster
SOURCES = Path("/usr/share/i18n/locales/de_DE")


@pytest.fixture
def german(tmp_path: Path) -> dict[str, str]:
    """The environment of a node that writes 1,5."""
    if not SOURCES.exists():
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"not on this machine: {SOURCES}")
    made = tmp_path / "locales" / "de_DE.UTF-8"
    made.parent.mkdir()
    subprocess.run(("localedef", "-i", SOURCES, "-f", "UTF-8", made), check=True)
    env = {**os.environ, "LOCPATH": str(made.parent), "LANG": "de_DE.UTF-8"}
    return {name: value for name, value in env.items() if not name.startswith("LC_")}


@contextmanager
def running(*words: str, env: dict[str, str] | None = None) -> Iterator[int]:
    """The pid of a program that runs within the block."""
    process = subprocess.Popen(words, env=env, stdin=subprocess.DEVNULL)
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


def test_numbers_have_a_point_on_a_german_node(german: dict[str, str], tmp_path: Path) -> None:
    """The share of another's process is not cut there, and its line has a place for each number."""
    os.mkfifo(tmp_path / "r0.alive")
    held = os.open(tmp_path / "r0.alive", os.O_RDWR)  # as a supervisor does
    words = ("timeout", "60", "sh", "-c", program(OBSERVE).decode(), OBSERVE, str(tmp_path))
    state = tmp_path / "r0.state"
    with running("sh", "-c", "while :; do :; done") as busy, running("sleep", "60") as task:
        share = f",cpu,{busy},"
        with running(*words, "0", "s", "60", "", str(task), env=german):
            wait_for(lambda: state.exists() and share in state.read_text(), "its share", 30)
            os.close(held)  # which ends it
    line = next(line for line in state.read_text().splitlines() if share in line)
    assert re.fullmatch(rf"process,\d+\.\d\d,\d+\.\d\d,cpu,{busy},\d\.\d\d,sh", line)
    node = telemetry("here", state.read_bytes(), b"")
    assert node is not None
    assert busy in [process.pid for process in node.processes]
