"""An image that passes from node to node, on nodes whose network, disks and programs fail."""

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.cluster import Node
from tests.commands import ended, told
from tests.virtual import Desk, holds, rule
from tests.waiting import wait_for

pytestmark = pytest.mark.cluster

PORT = 22333
CALLED = f"-p tcp --dport {PORT}"
# Where an image that is being loaded takes room, by the engine's driver.
ARRIVES = {
    "overlay2": "/var/lib/docker/tmp",
    "overlayfs": "/var/lib/containerd/io.containerd.content.v1.content/ingest",
}
# Programs of ours on a node, and what they listen at; this script's own shell is left out.
RUNNING = f"""
ps -eo pid=,args= | grep -E 'docker (load|save) |python3 -IS' | grep -v grep
ss -Htln 'sport = :{PORT}'
"""


@pytest.fixture
def image(desk: Desk) -> Iterator[Any]:
    """The image, as the site has it, that the first node alone has; at last all have it."""
    site = json.loads((desk.state / "sites/virtual.json").read_text())
    record = site["images"]["ngc-pytorch-20.03"]
    for node in desk.cluster.nodes[1:]:
        node.must(f"docker rmi {record['tag']}")
    yield record
    if holders(desk, record) != ["vs001", "vs002", "vs003", "vs004"]:
        desk.json("provision", str(desk.cluster.inventory))


def holders(desk: Desk, record: Any) -> list[str]:
    """The nodes that have this image."""
    return [node.name for node in desk.cluster.nodes if holds(node, record)]


def left(desk: Desk) -> str:
    """What runs or listens on any node for a carry."""
    return "".join(node.sh(RUNNING).stdout for node in desk.cluster.nodes)


def sent(node: Node) -> int:
    """Bytes that have left a node."""
    return int(node.must("cat /sys/class/net/ib0/statistics/tx_bytes"))


@contextmanager
def over(node: Node, path: str, how: str) -> Iterator[None]:
    """Something else is mounted at a path of a node within the block."""
    node.must(f"mount {how} {path}")
    try:
        yield
    finally:
        node.must(f"umount -l {path}")


def test_every_node_is_given_the_image_by_the_one_before_it(desk: Desk, image: Any) -> None:
    """So none sends more than the image once, not even the one that had it; and nothing is left."""
    first, *_, last = desk.cluster.nodes
    size = int(first.must(f"docker save {image['tag']} | wc -c"))
    before = [sent(node) for node in desk.cluster.nodes]
    done = desk.must("provision", str(desk.cluster.inventory))
    assert f"{image['tag']}: from vs001 to vs[002-004], node to node\n" in done.stderr
    assert "through this machine" not in done.stderr
    went = [sent(node) - past for node, past in zip(desk.cluster.nodes, before, strict=True)]
    assert [size <= count < 1.1 * size for count in went[:-1]] == [True] * 3, (size, went)
    assert went[-1] < 0.1 * size, last.name
    assert len(holders(desk, image)) == 4
    assert not left(desk)


def test_a_node_whose_disk_is_full_costs_no_other_the_image(desk: Desk, image: Any) -> None:
    """In the middle of the chain; it is named, in Docker's words, and those behind it have it."""
    third = desk.cluster.node(2)
    driver = third.must("docker info --format '{{.Driver}}'").strip()
    with over(third, ARRIVES[driver], "-t tmpfs -o size=1m small"):
        done = desk.run("provision", str(desk.cluster.inventory))
    assert done.returncode == 5, done.stderr
    assert "ERROR DISK-FULL node=vs003" in done.stderr
    assert "through this machine to vs003: it did not arrive there\n" in done.stderr
    assert holders(desk, image) == ["vs001", "vs002", "vs004"]
    assert not left(desk)


def test_a_node_that_nobody_reaches_is_passed_by(desk: Desk, image: Any) -> None:
    """The one before it calls the next but one; this machine brings it there."""
    with rule(desk.cluster.node(2), f"INPUT {CALLED} -j DROP"):
        done = desk.run("provision", str(desk.cluster.inventory))
    assert f"{image['tag']}: from vs001 to vs[002,004], node to node\n" in done.stderr
    words = f"through this machine to vs003: no other node reaches it on port {PORT}\n"
    assert words in done.stderr
    assert len(holders(desk, image)) == 4
    assert "NET-BLOCKED" in done.stdout


def test_nodes_that_do_not_reach_each_other_are_served_by_this_machine(
    desk: Desk, image: Any
) -> None:
    """All of them, and all at once."""
    with rule(desk.cluster.node(0), f"OUTPUT {CALLED} -j REJECT"):
        done = desk.run("provision", str(desk.cluster.inventory))
    words = f"to vs[002-004]: no other node reaches it on port {PORT}\n"
    assert f"{image['tag']}: from vs001 through this machine {words}" in done.stderr
    assert "node to node" not in done.stderr
    assert len(holders(desk, image)) == 4
    assert not left(desk)


def test_a_node_without_python_is_served_by_this_machine(desk: Desk, image: Any) -> None:
    """The others pass it on among themselves."""
    with over(desk.cluster.node(1), "/usr/bin/python3", "--bind /dev/null"):
        done = desk.run("provision", str(desk.cluster.inventory))
    assert done.returncode == 0, done.stderr
    assert "from vs001 to vs[003-004], node to node\n" in done.stderr
    assert "through this machine to vs002: it has no python3 of 3.6 or later\n" in done.stderr
    assert len(holders(desk, image)) == 4


@contextmanager
def under_way(desk: Desk) -> Iterator["subprocess.Popen[str]"]:
    """A command that provisions, once some bytes of the image have come to the nodes.

    Within the block the first node sends slowly.
    """
    first = desk.cluster.node(0)
    first.must("tc qdisc add dev ib0 root tbf rate 16mbit burst 64k latency 400ms")
    try:
        process = desk.start("provision", str(desk.cluster.inventory))
        before = sent(first)
        wait_for(lambda: "docker load" in left(desk), "an image that is under way")
        wait_for(lambda: sent(first) > before + (8 << 20), "some of its bytes")
        assert process.poll() is None
        yield process
    finally:
        first.must("tc qdisc del dev ib0 root")


def test_nodes_behind_one_that_is_lost_are_served_by_a_second_chain(desk: Desk, image: Any) -> None:
    """And so is that one, if it can take part again."""
    with under_way(desk) as process:
        desk.cluster.node(2).must("kill -KILL $(pgrep -f '^python3 -IS')")
    said = told(process)
    chains = [line.partition(": ")[2] for line in said.splitlines() if "node to node" in line]
    assert chains == [
        f"from vs001 to vs[{nodes}], node to node" for nodes in ("002-004", "003-004")
    ]
    assert "through this machine" not in said
    assert len(holders(desk, image)) == 4
    assert not left(desk)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_controller_that_is_ended_leaves_nothing_that_runs_or_listens(
    desk: Desk, image: Any, number: signal.Signals
) -> None:
    """Killed amid the bytes, or interrupted; the next run finds nothing in its way."""
    with under_way(desk) as process:
        process.send_signal(number)
        wait_for(lambda: not left(desk), "nothing is left on any node", 30)
        ended(process)
    assert holders(desk, image) == ["vs001"]
    desk.must("provision", str(desk.cluster.inventory))
    assert len(holders(desk, image)) == 4
