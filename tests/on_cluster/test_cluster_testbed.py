"""The virtual cluster itself: runs are separate, and each leaves nothing."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import Cluster, Completed, Place, cluster, life, place, processes

pytestmark = [pytest.mark.cluster, pytest.mark.daemons]


@pytest.fixture(scope="module")
def two() -> Iterator[Cluster]:
    """Two nodes that the tests of this module share."""
    with cluster(2) as nodes:
        yield nodes


def ssh(nodes: Cluster, address: str, command: str) -> Completed:
    """A command on a node, by OpenSSH with what the run's document says."""
    said = nodes.document
    return nodes.run(
        *(
            "ssh",
            "-o",
            "BatchMode=yes",
            "-o",
            "StrictHostKeyChecking=yes",
            "-o",
            "ConnectTimeout=5",
        ),
        *("-i", str(said["identity"]), "-o", f"UserKnownHostsFile={said['known_hosts']}"),
        *(f"root@{address}", command),
    )


def left(of: Place) -> dict[str, object]:
    """Everything on this machine that is a run's."""
    return {
        "namespaces": of.spaces(),
        "processes": processes.marked(of.mark),
        "mounts": [line for line in Path("/proc/self/mountinfo").read_text().splitlines()
                   if str(of.folder) in line],
        "cgroups": [str(path) for path in Path("/sys/fs/cgroup").glob(f"*/{of.netns}")],
        "folders": [str(path) for path in (of.folder,) if path.exists()],
    }  # fmt: skip


def test_two_runs_stand_side_by_side_and_leave_nothing(two: Cluster) -> None:
    """The same addresses twice are different machines, and one run's end is not the other's."""
    with cluster(1) as other:
        key = ssh(other, "10.11.0.2", "cat /etc/ssh/host_key.pub").stdout
        assert key
        assert key != ssh(two, "10.11.0.2", "cat /etc/ssh/host_key.pub").stdout
        gone = other.place
    assert not any(left(gone).values()), left(gone)
    assert ssh(two, "10.11.0.3", "hostname && docker info -f '{{.ServerVersion}}'").returncode == 0
    life.down(gone)


def test_a_name_that_is_taken_is_refused(two: Cluster) -> None:
    """Bringing up a run twice is an error, and the run that is there stays."""
    with pytest.raises(place.TestbedError, match="is there already"):
        life.up(two.place, count=1)
    assert two.node(0).must("hostname") == "vs001\n"


def test_a_run_that_broke_off_is_removed() -> None:
    """What a killed `up` leaves behind is found and removed by its name alone."""
    broken = Place(f"tbroken{os.getpid()}")
    subprocess.run(["ip", "netns", "add", broken.netns], check=True)
    subprocess.run(["ip", "netns", "add", f"{broken.netns}-vs001"], check=True)
    broken.folder.mkdir(parents=True)
    argv = (*broken.inside("vs001"), "sleep", "1000")
    processes.start(broken, argv, log=broken.folder / "log")
    life.down(broken)
    assert not any(left(broken).values()), left(broken)
