"""The inventory: what holds for each node of it."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from orchestrator.files import yaml_reader
from orchestrator.model.cluster import Cluster, inventory_conflicts
from orchestrator.model.node import Gpus
from tests import ROOT

A = {"name": "n1", "address": "10.0.0.1"}
B = {"name": "n2", "address": "10.0.0.2"}
ALONE = {"name": "n1", "address": "127.0.0.1"}
LOCAL = {"transport": "local", "runtime": "process"}
ETHERNET = {"name": "mlx5_0", "rate_gbps": 400, "link_layer": "Ethernet"}
# From seed 003, "NODE1=10.11.0.2" and on, and `nvidia-smi` of DLPerf's README: 8 V100 a node.
SEED_ADDRESSES = ["10.11.0.2", "10.11.0.3", "10.11.0.4", "10.11.0.5"]


def cluster(nodes: Sequence[Mapping[str, object]] = (A, B), **others: object) -> Cluster:
    """Return an inventory with these keys."""
    return Cluster.model_validate_json(
        json.dumps({"name": "testers", "nodes": list(nodes), **others})
    )


def test_the_shipped_cluster_is_that_of_the_seed() -> None:
    """v100x4 has the seed's four addresses in rank order, 8 V100 and one EDR adapter each."""
    found = yaml_reader.validated(yaml_reader.read(ROOT / "inventory/v100x4.yaml"), Cluster)
    assert list(inventory_conflicts(found)) == []
    assert [node.address for node in found.members] == SEED_ADDRESSES
    for node in found.members:
        assert (node.user, node.port, node.transport, node.runtime) == ("root", 22, "ssh", "docker")
        assert node.usable_gpus == tuple(range(8))
        assert [(hca.name, hca.rate_gbps, hca.link_layer) for hca in node.hcas] == [
            ("mlx5_0", 100, "InfiniBand")
        ]
        assert node.data["imagenet"] == "/data/image"
        assert node.interface == "ib0"


def test_the_shipped_local_cluster_is_two_processes_on_loopback() -> None:
    found = yaml_reader.validated(yaml_reader.read(ROOT / "inventory/local.yaml"), Cluster)
    assert list(inventory_conflicts(found)) == []
    assert [(node.transport, node.runtime) for node in found.members] == [("local", "process")] * 2
    assert [node.usable_gpus for node in found.members] == [(), ()]


def test_settings_come_from_the_node_then_from_the_defaults_then_from_the_program() -> None:
    """GPUs are merged key by key, other settings as a whole."""
    bare = cluster([A]).members[0]
    assert (bare.transport, bare.user, bare.port, bare.runtime) == ("ssh", "root", 22, "docker")
    assert (bare.gpus, bare.hcas, dict(bare.data), bare.interface) == (None, (), {}, None)
    defaults = {"user": "bench", "port": 2222, "interface": "ib0", "data": {"imagenet": "/data/i"}}
    own = {**A, "port": 23, "interface": "eth1", "data": {"tfrecords": "/t"}}
    first, second = cluster([own, B], defaults=defaults).members
    assert (first.user, first.port, first.interface) == ("bench", 23, "eth1")
    assert dict(first.data) == {"tfrecords": "/t"}
    assert (second.user, second.port, second.interface) == ("bench", 2222, "ib0")
    assert dict(second.data) == {"imagenet": "/data/i"}


@pytest.mark.parametrize(
    ("own", "merged", "usable"),
    [
        ({"use": [5, 2]}, {"count": 8, "use": (5, 2)}, (5, 2)),
        ({"count": 4}, {"count": 4}, (0, 1, 2, 3)),
        ({"use": [0, 7]}, {"count": 8, "use": (0, 7)}, (0, 7)),
    ],
)
def test_gpus_of_a_node_are_merged_into_those_of_the_defaults(
    own: dict[str, object], merged: dict[str, Any], usable: tuple[int, ...]
) -> None:
    whole = cluster([{**A, "gpus": own}], defaults={"gpus": {"count": 8, "model": "T4"}})
    assert list(inventory_conflicts(whole)) == []
    assert whole.members[0].gpus == Gpus(model="T4", **merged)
    assert whole.members[0].usable_gpus == usable


def test_gpus_without_a_count_give_none_to_use() -> None:
    """A model alone does not say how many GPUs there are; indices alone do."""
    assert cluster([{**A, "gpus": {"model": "Tesla T4"}}]).members[0].usable_gpus == ()
    assert cluster([{**A, "gpus": {"use": [63]}}]).members[0].usable_gpus == (63,)


@pytest.mark.parametrize("jump", ["u@b", "b:22", "fd00::9", "me@[fd00::9]:2222", "10.0.0.9:22"])
def test_a_jump_host_has_a_user_and_a_port(jump: str) -> None:
    assert cluster([{**A, "jump": jump}]).members[0].jump == jump


@pytest.mark.parametrize(
    ("nodes", "others"),
    [
        ([ALONE], {}),
        ([ALONE, {"name": "n2", "address": "127.0.0.2"}], {"defaults": LOCAL}),
        ([A, B], {"container": {"privileged": True, "reason": "old driver"}}),
        ([A, B], {"defaults": {"hcas": [ETHERNET], "roce": {"traffic_class": 106}}}),
        ([A, {"name": "n2", "address": "gpu4.lab"}], {}),
    ],
    ids=["one-on-loopback", "local-ones", "privileged", "roce", "host-name"],
)
def test_an_inventory_that_holds_together_has_no_conflict(
    nodes: Sequence[Mapping[str, object]], others: dict[str, object]
) -> None:
    assert list(inventory_conflicts(cluster(nodes, **others))) == []


def test_a_cluster_has_at_most_4096_nodes() -> None:
    with pytest.raises(ValueError, match="at most 4096 items"):
        cluster([A] * 4097)


@pytest.mark.parametrize(
    ("size", "limit"),
    [(None, 1 << 30), ("512m", 512 << 20), ("3k", 3072), ("2t", 2 << 40), ("77", 77)],
)
def test_the_log_limit_is_a_gibibyte_by_default(size: str | None, limit: int) -> None:
    said = {"max_log_size": size} if size else {}
    assert cluster([A], **said).log_bytes == limit


@pytest.mark.parametrize(
    ("defaults", "privileged", "in_containers", "is_here", "confines"),
    [
        ({}, False, True, False, True),
        ({}, True, True, False, False),
        ({"runtime": "process"}, False, False, False, False),
        (LOCAL, False, False, True, False),
    ],
)
def test_a_cluster_knows_where_its_tasks_run(
    defaults: dict[str, str], privileged: bool, in_containers: bool, is_here: bool, confines: bool
) -> None:
    """Root in a container without privileges needs permission to read a data set."""
    container = {"container": {"privileged": True, "reason": "old"}} if privileged else {}
    found = cluster([A], defaults=defaults, **container)
    assert (found.in_containers, found.members[0].is_here) == (in_containers, is_here)
    assert found.confines(found.members[0]) is confines


def test_a_copy_with_other_nodes_has_members_of_its_own() -> None:
    """The members are cached, also those of the first cluster."""
    whole = cluster()
    assert [node.name for node in whole.members] == ["n1", "n2"]
    narrow = whole.model_copy(update={"nodes": whole.nodes[1:]})
    assert [node.name for node in narrow.members] == ["n2"]
    assert whole == whole.model_copy()
