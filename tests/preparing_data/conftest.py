"""Nodes that tests of data sets share."""

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import processes
from tests.conftest import Place
from tests.preparing_data.nodes import Nodes
from tests.sshd import Sshd


@pytest.fixture
def nodes(place: Place, tmp_path: Path) -> Iterator[Nodes]:
    """Both, with the work that a test leaves there ended."""
    made = Nodes(place, tmp_path / "nodes")
    made.folder.mkdir()
    yield made
    for pid in made.pids():
        os.kill(pid, signal.SIGKILL)
    # The shell that watched a killed supervisor goes on, and would hold up every sweep here.
    for path in processes.files("environ"):
        with contextlib.suppress(OSError):
            content = path.read_bytes()
            if b"=dlp-data-" in content and f"{place.folder}/".encode() in content:
                os.kill(int(path.parent.name), signal.SIGKILL)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Sshd]:
    """A node behind a real sshd."""
    made = Sshd(tmp_path / "sshd").start()
    yield made
    made.stop()
