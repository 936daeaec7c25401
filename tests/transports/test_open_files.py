"""Too few open files on this machine: said as that, by the command line and by transports."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import commands
from tests.conftest import PROGRAM, Place
from tests.sshd import Sshd

pytestmark = [pytest.mark.cluster, pytest.mark.daemons]
LIMITED = ("sh", "-c", 'ulimit -n "$0" && exec "$@"')
LATER = """
import os, resource, sys
from orchestrator import errors
from orchestrator.transports.local import LocalTransport
from orchestrator.transports.ssh import SshTarget, SshTransport
here, reached, fresh = LocalTransport("here"), SshTransport({target}), SshTransport({target})
reached.run(("true",), timeout_s=10)
fresh.close()
used = len(os.listdir("/proc/self/fd")) - 1
resource.setrlimit(resource.RLIMIT_NOFILE, (used, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
for ask in (here.run, reached.run, fresh.run, lambda argv, **_: here.open(argv)):
    try:
        ask(("true",), timeout_s=10)
    except errors.DlperfError as error:
        print(error.exit_code, error.code, f"all {{used}} files" in error.cause, flush=True)
os._exit(0)
"""


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


@pytest.mark.parametrize("limit", [8, 16, 28, 67])
def test_a_limit_too_low_for_the_nodes_is_named_first(
    place: Place, server: Sshd, limit: int
) -> None:
    """OPEN-FILES, exit 6, with what is allowed and what is needed; no node is asked."""
    done = provision(place, server, limit)
    assert done.returncode == 6, done.stderr
    assert f"ERROR OPEN-FILES: this process may have {limit} files open (ulimit -n" in done.stderr
    assert "12 nodes need 68. Fix: ulimit -n 68" in done.stderr
    assert "Accepted" not in server.log


def test_what_is_said_to_be_needed_is_enough(place: Place, server: Sshd) -> None:
    """With as many, every node answers."""
    done = provision(place, server, 68)
    assert "SSH-" not in done.stderr + done.stdout
    assert "OPEN-FILES" not in done.stderr
    assert server.log.count("Accepted publickey") == 12


def test_files_that_run_out_later_are_no_fault_of_a_node(server: Sshd, tmp_path: Path) -> None:
    """A command here, one on a connection, and a new connection all name the limit."""
    words = (
        sys.executable,
        "-c",
        LATER.format(
            target=repr(server.target(address="127.0.0.1", host_key=server.fingerprint()))
        ),
    )
    done = commands.run(words, cwd=tmp_path, timeout_s=60)
    assert done.stdout.splitlines() == ["6 OPEN-FILES True"] * 4, done.stderr
