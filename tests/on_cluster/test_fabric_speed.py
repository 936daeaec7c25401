"""provision --measure where one node has a slow link: all-reduce between nodes, all of it real."""

import json
from collections.abc import Iterator

import pytest

from tests.people import Desk

pytestmark = [pytest.mark.cluster, pytest.mark.daemons, pytest.mark.long]
FABRIC = """\
workload: all_reduce
image: reference-rn50
device: cpu
method: {repeats: 1, iterations: 9, window: [2, 8], pack: disjoint, time_limit_s: 300}
grid: {placement: [2x1, 4x1], precision: [fp32], micro_batch_size: [1]}
params: {size_mib: 8}
"""


@pytest.fixture
def throttled(desk: Desk) -> Iterator[Desk]:
    """The desk; what vs003 sends passes a token bucket of 100 Mbit/s."""
    third = desk.cluster.node(2)
    device = third.must("ip -o -4 addr show | awk '/10\\.11\\.0\\./ {print $2}'").strip()
    third.must(f"tc qdisc add dev {device} root tbf rate 100mbit burst 64kb latency 400ms")
    yield desk
    third.must(f"tc qdisc del dev {device} root")


def test_a_node_with_a_slow_link_is_named_by_its_pairs(throttled: Desk) -> None:
    """All-reduce of PyTorch over gloo: each pair with vs003 is slow, and all four together are."""
    name = throttled.playbook("fabric", FABRIC)
    inventory = str(throttled.cluster.cpu_inventory)
    done = throttled.must("provision", inventory, "--measure", "--by", name, "--json", code=5)
    found = json.loads(done.stdout)["measured"][name]
    (pairs,) = found["nodes"]
    speeds = {speed["node"]: speed for speed in pairs["node_speeds"]}
    assert {node: speed["trials"] for node, speed in speeds.items()} == {
        "vs001": 6,
        "vs002": 6,
        "vs003": 6,
        "vs004": 6,
    }
    assert "SLOW-NODE: vs003 is" in done.stderr
    (group,) = found["groups"]
    assert len(group["nodes"]) == 4
    assert (
        group["busbw"] < 0.1 / 8 * 1.5 * 2
    )  # 100 Mbit/s each way, as all-reduce of four counts it
    assert not throttled.left()
