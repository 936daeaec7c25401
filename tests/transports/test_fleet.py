"""The connections to a cluster's nodes: by jump hosts, within the open files, closed at the end."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from orchestrator import errors
from orchestrator.fleet import Answer, Fleet, settled
from orchestrator.model.node import Node
from orchestrator.runtimes.engine import Engine
from orchestrator.transports.local import LocalTransport
from orchestrator.transports.ssh import find_jump_host
from tests import commands
from tests.conftest import PROGRAM, Place
from tests.model.test_cluster import cluster
from tests.sshd import Sshd

LIMITED = ("sh", "-c", 'ulimit -n "$0" && exec "$@"')


def fail_to_load() -> Mapping[str, Engine]:
    """Fail as where the package is not installed whole."""
    raise ImportError("no module docker")


def test_connections_are_closed_also_without_dockers_library() -> None:
    here = LocalTransport("here")
    node: dict[str, object] = {"name": "here", "address": "127.0.0.1", "transport": "local"}
    stream = here.open(("cat",))
    stream.sendall(b"x")
    assert stream.recv(1) == b"x"
    with pytest.raises(ImportError), Fleet(cluster([node]), {"here": here}, fail_to_load):
        pass
    with pytest.raises(OSError, match="Bad file descriptor"):
        stream.sendall(b"x")


def test_equal_errors_of_several_nodes_are_one_and_the_others_are_named() -> None:
    silent = [
        errors.NodeError("port 22: no answer", code="SSH-UNREACHABLE", node=f"vs00{at}", address=at)
        for at in ("2", "3")
    ]
    hung = errors.UnfitError("it does not answer", code="DOCKER-HUNG", node="vs004")
    answers = [Answer(it.where["node"], True, it, 0.0) for it in (silent[0], hung, silent[1])]
    with pytest.raises(errors.NodeError) as raised:
        settled([Answer("vs001", True, None, 0.0), *answers])
    assert str(raised.value) == (
        "ERROR SSH-UNREACHABLE node=vs[002-003] address=[2-3]: port 22: no answer"
        " (also failed: vs004)."
    )
    assert raised.value.others == ("vs002", "vs004", "vs003")


@pytest.mark.parametrize(
    ("jump", "gate"),
    [
        ("gate", ("gate", "gate", "root", 22)),
        ("u@gate:23", ("gate:23", "gate", "u", 23)),
        ("u@fd00::9", ("fd00::9", "fd00::9", "u", 22)),
        ("[fd00::9]:23", ("[fd00::9]:23", "fd00::9", "root", 23)),
    ],
)
def test_a_jump_host_is_a_target_of_its_own(jump: str, gate: tuple[str, str, str, int]) -> None:
    """With the node's user unless it has one; an IPv6 address is not cut at a colon."""
    found = find_jump_host(Node(name="n1", address="10.0.0.1", jump=jump, folder="/tmp"))
    assert found is not None
    assert (found.name, found.address, found.user, found.port) == gate


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Sshd]:
    """A server that answers on every address of loopback."""
    started = Sshd(tmp_path / "sshd", address="0.0.0.0").start()
    yield started
    started.stop()


@pytest.mark.cluster
@pytest.mark.daemons
@pytest.mark.parametrize("limit", [8, 43, 44])
def test_a_limit_of_open_files_too_low_for_the_nodes_is_named_first(
    place: Place, server: Sshd, limit: int
) -> None:
    """No node is asked then; with as many as are said to be needed, every node answers."""
    nodes = [
        f"  - {{name: n{number:02}, address: 127.0.0.{number}, host_key: {server.fingerprint()}}}\n"
        for number in range(1, 13)
    ]
    defaults = f"{{runtime: process, port: {server.port}, identity: {server.identity}}}"
    inventory = f"name: dozen\ndefaults: {defaults}\nnodes:\n{''.join(nodes)}"
    (place.folder / "inventory" / "dozen.yaml").write_text(inventory)
    words = [*LIMITED, str(limit), *PROGRAM, "provision", "dozen"]
    done = commands.run(words, cwd=place.folder, env=place.env(), timeout_s=60)
    if limit < 44:
        assert done.returncode == 6, done.stderr
        allowed = f"ERROR OPEN-FILES: this process may have {limit} files open (ulimit -n"
        assert allowed in done.stderr
        assert "12 nodes need 44. Fix: ulimit -n 44" in done.stderr
        assert "Accepted" not in server.log
    else:
        assert "SSH-" not in done.stderr + done.stdout
        assert "OPEN-FILES" not in done.stderr
        assert server.log.count("Accepted publickey") == 12
