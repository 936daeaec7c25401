"""Too few open files on this machine: said as that by the command line."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import commands
from tests.conftest import PROGRAM, Place
from tests.sshd import Sshd

pytestmark = [pytest.mark.cluster, pytest.mark.daemons]
LIMITED = ("sh", "-c", 'ulimit -n "$0" && exec "$@"')


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Sshd]:
    """A server that answers on every address of loopback."""
    started = Sshd(tmp_path / "sshd", address="0.0.0.0").start()
    yield started
    started.stop()


def provision(place: Place, server: Sshd, limit: int) -> "subprocess.CompletedProcess[str]":
    """The command, of twelve nodes, with so many open files allowed."""
    nodes = [
        f"  - {{name: n{number:02}, address: 127.0.0.{number}, host_key: {server.fingerprint()}}}\n"
        for number in range(1, 13)
    ]
    defaults = f"{{runtime: process, port: {server.port}, identity: {server.identity}}}"
    inventory = f"name: dozen\ndefaults: {defaults}\nnodes:\n" + "".join(nodes)
    (place.folder / "inventory" / "dozen.yaml").write_text(inventory)
    return commands.run(
        [*LIMITED, str(limit), *PROGRAM, "provision", "dozen"],
        cwd=place.folder,
        env=place.env(),
        timeout_s=60,
    )


@pytest.mark.parametrize("limit", [8, 16, 28, 43])
def test_a_limit_too_low_for_the_nodes_is_named_first(
    place: Place, server: Sshd, limit: int
) -> None:
    """OPEN-FILES, exit 6, with what is allowed and what is needed; no node is asked."""
    done = provision(place, server, limit)
    assert done.returncode == 6, done.stderr
    assert f"ERROR OPEN-FILES: this process may have {limit} files open (ulimit -n" in done.stderr
    assert "12 nodes need 44. Fix: ulimit -n 44" in done.stderr
    assert "Accepted" not in server.log


def test_what_is_said_to_be_needed_is_enough(place: Place, server: Sshd) -> None:
    """With as many, every node answers."""
    done = provision(place, server, 44)
    assert "SSH-" not in done.stderr + done.stdout
    assert "OPEN-FILES" not in done.stderr
    assert server.log.count("Accepted publickey") == 12
