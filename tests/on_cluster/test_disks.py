"""Disks of the virtual cluster that are full, from the middle of a trial on."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.cluster import Node
from tests.commands import told
from tests.people import Desk
from tests.processes import wait_for

pytestmark = pytest.mark.cluster

FOLDER = "/var/tmp/dlperf-root"


@dataclass(frozen=True, slots=True)
class Disk:
    """A file system of memory on a node, with room enough when a sweep begins."""

    node: Node
    folder: str

    def fill(self) -> None:
        """Take all of its bytes: another program writes until there is no more room."""
        self.node.must(f"mount -o remount,size=32m {self.folder}")
        self.node.sh(f"dd if=/dev/zero of={self.folder}/of-somebody-else bs=4k")

    def use_up_names(self) -> None:
        """Take all of its inodes: its bytes stay free."""
        count = self.node.must(f"df -Pi {self.folder} | tail -n 1").split()[2]
        self.node.must(f"mount -o remount,nr_inodes={count} {self.folder}")

    def empty(self) -> None:
        """Give everything back."""
        self.node.must(f"rm -rf {self.folder}/of-somebody-else")
        self.node.must(f"mount -o remount,size=2g,nr_inodes=100000 {self.folder}")


@contextlib.contextmanager
def disk(node: Node, folder: str) -> Iterator[Disk]:
    """Put a file system of its own at the folder of a node, within the block."""
    node.must(f"mkdir -p {folder} && mount -t tmpfs -o size=2g,mode=1777 own {folder}")
    try:
        yield Disk(node, folder)
    finally:
        node.must(f"umount -l {folder}")


@contextlib.contextmanager
def docker_on_a_disk_of_its_own(node: Node, folder: str) -> Iterator[None]:
    """Give Docker of a node an empty folder in memory, within the block."""

    def restart(command: str) -> None:
        pid = node.must("cat /run/testbed/dockerd.pid").strip()
        node.signal("dockerd", "TERM")
        wait_for(lambda: node.sh(f"kill -0 {pid}").returncode, "Docker has ended", 30)
        node.must(command)
        node.revive("dockerd")

    restart(f"mount -t tmpfs -o size=3g own {folder}")
    try:
        yield
    finally:
        restart(f"umount -l {folder}")


@pytest.mark.parametrize(
    ("used_up", "said"),
    [
        ("bytes", f"{FOLDER} cannot take 4 MiB in 16 files: No space left on device"),
        pytest.param(
            "inodes", "No space left on device; 2 GiB and", marks=pytest.mark.long, id="inodes"
        ),
    ],
)
def test_a_disk_that_fills_ends_the_sweep_before_a_retry(
    desk: Desk, used_up: str, said: str
) -> None:
    """One attempt, DISK-FULL with the folder and what is free; the same command goes on later."""
    with disk(desk.cluster.node(1), FOLDER) as full:
        process = desk.begun()
        with desk.held():
            full.fill() if used_up == "bytes" else full.use_up_names()
        heard = told(process, 5)
        assert "ERROR DISK-FULL node=vs002" in heard
        assert said in heard
        assert f"`du -xah {FOLDER} | sort -h | tail`" in heard
        assert "`dlperf-orch clean`" in heard
        assert desk.states() == [("infra-lost", "DISK-FULL")]
        full.empty()
        desk.again()
        assert desk.states()[-1] == ("valid", "")
    assert not desk.left()


def test_a_full_shared_memory_of_a_node_keeps_no_answer_back(desk: Desk) -> None:
    """Questions to the node pass it over; a container has shared memory of its own."""
    node = desk.cluster.node(1)
    node.must("mount -o remount,size=4m /dev/shm")
    try:
        node.sh("dd if=/dev/zero of=/dev/shm/of-somebody-else bs=4k")
        desk.must("provision", str(desk.cluster.inventory), "--lock")
        desk.again()
        assert desk.states() == [("valid", "")]
    finally:
        node.must("rm -f /dev/shm/of-somebody-else; mount -o remount,size=50% /dev/shm")


@pytest.mark.long
def test_a_container_that_finds_no_room_to_start_ends_the_sweep(desk: Desk) -> None:
    """Docker's own folder fills during the first trial: the second is DISK-FULL, not tried thrice.

    Somebody else takes every byte that comes free.
    """
    node, folder = desk.cluster.node(1), "/var/lib/docker"
    with docker_on_a_disk_of_its_own(node, folder):
        desk.must("provision", str(desk.cluster.inventory), "--lock")
        process = desk.begun("--repeats", "2")
        with desk.held():
            node.must(
                f"used=$(df -Pk {folder} | tail -n 1 | awk '{{ print $3 }}');"
                f" mount -o remount,size=$((used + 30000))k {folder}"
            )
            node.must(
                f"touch {folder}/on; dd if=/dev/zero of={folder}/filler bs=4k 2>/dev/null;"
                f" (i=0; while [ -e {folder}/on ]; do echo x >{folder}/f.$i && i=$((i + 1)) ||"
                " sleep 0.01; done) >/dev/null 2>&1 &"
            )
        said = told(process, 5)
        assert "ERROR DISK-FULL node=vs002" in said
        assert "free space where the engine keeps images" in said
        assert desk.states() == [("valid", ""), ("infra-lost", "DISK-FULL")]
        assert not desk.left()
        node.must(f"rm -f {folder}/on; sleep 0.2; rm -f {folder}/f*")
        node.must(f"mount -o remount,size=3g {folder}")
        desk.must("sweep", "quick", "--repeats", "2", *desk.on())
        assert desk.states()[-1] == ("valid", "")
