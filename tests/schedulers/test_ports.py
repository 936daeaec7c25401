"""Nodes of an inventory give lanes, and ports that are free by the kernel's own tables."""

import getpass
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator import errors
from orchestrator.fleet import Fleet
from orchestrator.model.attempt import Request
from orchestrator.model.cluster import Cluster
from orchestrator.schedulers.fanout import Fanout
from tests.sshd import Sshd

HERE = {
    "name": "here",
    "defaults": {"transport": "local", "runtime": "process"},
    "nodes": ({"name": "n1", "address": "127.0.0.1"},),
}


@pytest.mark.parametrize(
    ("family", "address"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")]
)
def test_a_port_that_somebody_listens_at_is_passed_over(
    tmp_path: Path, family: socket.AddressFamily, address: str
) -> None:
    """Of IPv4 and of IPv6; without another candidate, the error names the node and the port."""
    with (
        socket.create_server((address, 0), family=family) as listening,
        socket.create_server(("127.0.0.1", 0)) as closed,
        Fanout(Fleet.of(Cluster.model_validate(HERE)), tmp_path, lambda: False) as scheduler,
    ):
        busy, free = listening.getsockname()[1], closed.getsockname()[1]
        closed.close()
        request = Request("1n1g-toy_1", 1, 0, (), (busy, free), 60.0)
        given = scheduler.allocate(request)
        assert given is not None
        assert given.port == free
        scheduler.release(given)
        with pytest.raises(errors.UnfitError, match=f"taken, from {busy} to {busy}") as refused:
            scheduler.allocate(Request("1n1g-toy_1", 1, 0, (), (busy,), 60.0))
        assert (refused.value.code, refused.value.where["node"]) == ("PORT-BUSY", "n1")


@pytest.mark.parametrize(("transport", "lanes"), [("ssh", 3), ("local", 1)])
def test_each_machine_is_a_lane(tmp_path: Path, transport: str, lanes: int) -> None:
    """Nodes that are this machine share one: their trials would share what is measured."""
    nodes = tuple({"name": f"n{at}", "address": f"10.0.0.{at}"} for at in range(1, 4))
    defaults = {"transport": transport, "runtime": "process"}
    inventory = {"name": "three", "defaults": defaults, "nodes": nodes}
    with Fanout(Fleet.of(Cluster.model_validate(inventory)), tmp_path, lambda: False) as scheduler:
        assert scheduler.lanes == lanes


@pytest.fixture
def sshd(tmp_path: Path) -> Iterator[Sshd]:
    """Start a node that is reached by SSH."""
    server = Sshd(tmp_path / "sshd").start()
    yield server
    server.stop()


@pytest.mark.cluster
@pytest.mark.daemons
def test_a_connection_that_is_lost_while_ports_are_read_is_made_anew(
    tmp_path: Path, sshd: Sshd
) -> None:
    """A lost answer does not count as a free port; the taken port is still passed over."""
    node = {
        "name": "n1",
        "address": sshd.address,
        "port": sshd.port,
        "user": getpass.getuser(),
        "identity": str(sshd.identity),
        "known_hosts": str(sshd.known_hosts),
        "folder": str(tmp_path / "node"),
        "runtime": "process",
    }
    cluster = Cluster.model_validate({"name": "there", "nodes": (node,)})
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        socket.create_server(("127.0.0.1", 0)) as closed,
        Fanout(Fleet.of(cluster), tmp_path, lambda: False) as scheduler,
    ):
        busy, free = listening.getsockname()[1], closed.getsockname()[1]
        closed.close()
        request = Request("1n1g-toy_1", 1, 0, (), (busy, free), 60.0)
        before = scheduler.allocate(request)  # opens the connection that is lost now
        assert before is not None
        scheduler.release(before)
        assert sshd.sessions()
        sshd.kill_sessions()
        given = scheduler.allocate(request)
        assert given is not None
        assert (before.port, given.port) == (free, free)
