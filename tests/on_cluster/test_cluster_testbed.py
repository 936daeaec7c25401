"""The virtual cluster itself: separate runs, nodes that are nodes, faults that are faults."""

import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.probes import gpu, infiniband, topology
from orchestrator.workloads import ngc_pytorch_rn50
from tests import TESTS
from tests.cluster import Cluster, Completed, Node, Place, cluster, life, place, processes

pytestmark = [pytest.mark.cluster, pytest.mark.daemons]
HERE = TESTS
OPTIONS = HERE / "samples/options/ngc_pytorch_rn50@5cc03ca.csv"
OLD = f"{place.REGISTRY}/nvidia/pytorch:20.03-py3"


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


def gang(nodes: Cluster, node_ranks: tuple[int, ...]) -> list[Completed]:
    """The stand-in benchmark with two processes on each node, each told its node_rank."""
    answers: dict[int, Completed] = {}

    def start(index: int, node: Node) -> None:
        code = node.folder / "tmp" / "rn50"
        shutil.copytree(HERE / "cluster" / "standin", code, dirs_exist_ok=True)
        shutil.copy(OPTIONS, code / "options.csv")
        answers[index] = node.sh(
            "docker run --rm --network host --device /dev/infiniband/uverbs0"
            " -v /tmp/rn50:/workspace/rn50 -v /data/image:/data/image:ro -e NCCL_DEBUG=INFO"
            f" -e NCCL_SOCKET_IFNAME=ib0 {OLD} python /workspace/rn50/multiproc.py --nnodes 2"
            f" --node_rank {node_ranks[index]} --nproc_per_node 2 --master_addr 10.11.0.2"
            " --master_port=22333 /workspace/rn50/main.py -j8 -p 1 -b 256 --epochs 1 --prof 31"
            " --training-only --no-checkpoints --amp --dynamic-loss-scale /data/image",
            timeout_s=120,
        )

    threads = [
        threading.Thread(target=start, args=(index, node)) for index, node in enumerate(nodes.nodes)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [answers[index] for index in range(len(nodes.nodes))]


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


def test_nodes_are_machines_of_their_own(two: Cluster) -> None:
    """Host name, interface, processes and data are each node's own; the data sets are equal."""
    first, second = two.nodes
    for node in two.nodes:
        assert ssh(two, node.address, "uname -n").stdout == f"{node.name}\n"
        assert node.must("ls /sys/class/net").split() == ["ib0", "lo"]
        assert node.must("cat /proc/1/comm") == "tini\n"
    digest = "cd /data && find . -type f -exec sha256sum {} + | sort | sha256sum"
    assert first.must(digest) == second.must(digest)
    first.must("touch /data/mark /var/tmp/mark /root/mark /etc/mark")
    assert second.sh("ls /data/mark /var/tmp/mark /root/mark /etc/mark").stdout == ""
    first.must("rm /data/mark /var/tmp/mark /root/mark /etc/mark")


def test_stubs_replay_what_our_parsers_read(two: Cluster) -> None:
    """Eight GPUs and one HCA a node, none of them twice; vs002's ibstat is the recording."""
    drivers = [gpu.parse(node.must("nvidia-smi -q -x")) for node in two.nodes]
    assert [driver.problems for driver in drivers] == [(), ()]
    assert {driver.driver for driver in drivers} == {"440.33.01"}
    assert len({facts.uuid for driver in drivers for facts in driver.gpus}) == 16
    assert topology.parse(two.node(0).must("nvidia-smi topo -m")).problems == ()
    recorded = HERE / "samples" / "ibstat" / "dlperf_seed_vs002_mt4115.txt"
    said = [node.must("ibstat") for node in two.nodes]
    assert said[1] == recorded.read_text().partition("\n")[2]
    ports = [port for text in said for port in infiniband.parse(text).ports]
    assert len({port.node_guid for port in ports}) == 2


def test_the_engine_dies_and_comes_back(two: Cluster) -> None:
    """A killed dockerd leaves its node up, and containerd lets it start again."""
    node = two.node(1)
    node.signal("dockerd", "KILL")
    assert node.sh("docker info").returncode != 0
    assert ssh(two, node.address, "true").returncode == 0
    node.revive("dockerd")
    node.must("docker info")


def test_a_node_goes_dark_and_comes_back(two: Cluster) -> None:
    """A cut node answers nobody; healed, it answers."""
    node = two.node(1)
    node.cut()
    try:
        assert ssh(two, node.address, "true").returncode == 255
    finally:
        node.heal()
    assert ssh(two, node.address, "true").returncode == 0


def test_a_node_reboots(two: Cluster) -> None:
    """After the power was off nothing runs there, and the boot id is another."""
    node = two.node(1)
    before = node.must("cat /proc/sys/kernel/random/boot_id")
    node.power_off()
    assert ssh(two, node.address, "true").returncode == 255
    node.power_on()
    assert node.must("cat /proc/sys/kernel/random/boot_id") != before
    assert ssh(two, node.address, "docker info").returncode == 0


def test_the_stand_in_is_a_gang_whose_log_we_read(two: Cluster) -> None:
    """Every rank meets the others, and the leader's log has each iteration with its real time."""
    leader, other = gang(two, (0, 1))
    assert (leader.returncode, other.returncode) == (0, 0), leader.stderr + other.stderr
    log = ngc_pytorch_rn50.WORKLOAD.read([leader.stdout.encode()], (5, 25))
    assert "DLL" not in other.stdout
    assert log.problems == ()


def test_a_node_rank_that_is_there_twice_stops_the_gang(two: Cluster) -> None:
    """Two nodes that both are node_rank 0 do not train."""
    two.switch(join_s=5)
    try:
        leader, other = gang(two, (0, 0))
    finally:
        two.switch()
    assert (leader.returncode, other.returncode) == (1, 1)
    assert "stand-in: ranks are [0, 1" in leader.stderr
    assert "Iteration" not in leader.stdout


def test_sockets_and_death_can_be_asked_for(two: Cluster) -> None:
    """The switch changes the next run: no InfiniBand in NCCL's lines, and a rank that dies."""
    two.switch(transport="sockets", die={"rank": 0, "iteration": 10})
    try:
        leader = two.node(0)
        start = "cd /tmp/rn50 && PYTHONPATH=/tmp/stub NCCL_DEBUG=INFO python3 multiproc.py"
        shutil.copytree(HERE / "cluster/standin/torch_stub", leader.folder / "tmp/stub/torch")
        done = leader.sh(f"{start} --nproc_per_node 2 main.py --prof 31 /data/image")
    finally:
        two.switch()
    assert done.returncode == 1
    assert "NET/Socket : Using [0]ib0:10.11.0.2<0>" in done.stdout
    assert "Iteration: 9 " in done.stdout
    assert "Iteration: 10 " not in done.stdout
