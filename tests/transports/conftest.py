"""Servers and transports that tests of ssh share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.model.node import Node
from orchestrator.transports.ssh import SshTransport
from tests.sshd import Sshd
from tests.transports.ssh_nodes import Reach, Serve


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Starts servers with the options given; all of them end with the test."""
    started: list[Sshd] = []

    def serve(**changes: object) -> Sshd:
        server = Sshd(tmp_path / f"sshd{len(started)}", **changes)  # type: ignore[arg-type]  # each test names real fields
        started.append(server)
        return server.start()

    yield serve
    for server in started:
        server.stop()


@pytest.fixture
def reach() -> Iterator[Reach]:
    """Makes transports; all of them are closed with the test."""
    made: list[SshTransport] = []

    def reach(target: Node) -> SshTransport:
        made.append(SshTransport(target))
        return made[-1]

    yield reach
    for transport in made:
        transport.close()
