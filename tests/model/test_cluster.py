"""The inventory: what holds for each node, and what cannot hold together."""

import json
from collections.abc import Mapping, Sequence

import pytest
from pydantic import ValidationError

from orchestrator.files import yaml_reader
from orchestrator.model.cluster import Cluster, inventory_conflicts
from orchestrator.model.node import Gpus
from tests import ROOT

SHIPPED = ROOT / "inventory"
A = {"name": "n1", "address": "10.0.0.1"}
B = {"name": "n2", "address": "10.0.0.2"}
ALONE = {"name": "n1", "address": "127.0.0.1"}
LOCAL = {"transport": "local", "runtime": "process"}
# From seed 003, "NODE1=10.11.0.2" and on, and `nvidia-smi` of DLPerf's README: 8 V100 a node.
SEED_ADDRESSES = ["10.11.0.2", "10.11.0.3", "10.11.0.4", "10.11.0.5"]


def test_log_limit_is_a_gibibyte_unless_said_otherwise() -> None:
    """In the words of shm_size; what has no letter is in bytes."""
    sizes = {None: 1 << 30, "512m": 512 << 20, "3k": 3072, "2t": 2 << 40, "77": 77}
    for said, expected in sizes.items():
        document = {"name": "lab", "nodes": [{"name": "n1", "address": "10.0.0.1"}]}
        limit = {} if said is None else {"max_log_size": said}
        found = Cluster.model_validate_json(json.dumps({**document, **limit}))
        assert found.log_bytes == expected


def cluster(nodes: Sequence[Mapping[str, object]] = (A, B), **others: object) -> Cluster:
    """An inventory that says these things."""
    return Cluster.model_validate_json(
        json.dumps({"name": "testers", "nodes": list(nodes), **others})
    )


def mistakes(found: Cluster) -> list[tuple[tuple[str | int, ...], str]]:
    """Path and text of every conflict, in order."""
    return [(conflict.path, conflict.text) for conflict in inventory_conflicts(found)]


def test_shipped_cluster_is_the_one_of_the_seed() -> None:
    """v100x4 has the seed's four addresses in rank order, 8 V100 and one EDR adapter each."""
    found = yaml_reader.validated(yaml_reader.read(SHIPPED / "v100x4.yaml"), Cluster)
    assert mistakes(found) == []
    assert [node.address for node in found.members] == SEED_ADDRESSES
    for node in found.members:
        assert (node.user, node.port, node.transport, node.runtime) == ("root", 22, "ssh", "docker")
        assert node.usable_gpus == tuple(range(8))
        assert [(hca.name, hca.rate_gbps, hca.link_layer) for hca in node.hcas] == [
            ("mlx5_0", 100, "InfiniBand")
        ]
        assert node.data["imagenet"] == "/data/image"
        assert node.interface == "ib0"


def test_shipped_local_cluster_is_two_processes_on_loopback() -> None:
    """Nodes of this machine may have loopback addresses, for they are the same machine."""
    found = yaml_reader.validated(yaml_reader.read(SHIPPED / "local.yaml"), Cluster)
    assert mistakes(found) == []
    assert [(node.transport, node.runtime) for node in found.members] == [("local", "process")] * 2
    assert [node.usable_gpus for node in found.members] == [(), ()]


def test_node_about_which_nothing_is_said_has_plain_defaults() -> None:
    """Without a word on them: ssh as root on port 22, docker, no GPUs, HCAs or data."""
    node = cluster([A]).members[0]
    assert (node.transport, node.user, node.port, node.runtime) == ("ssh", "root", 22, "docker")
    assert (node.gpus, node.hcas, dict(node.data), node.interface) == (None, (), {}, None)


def test_node_overrides_the_defaults_and_the_others_keep_them() -> None:
    """What one node says holds for that node alone."""
    defaults = {"user": "bench", "port": 2222, "interface": "ib0", "data": {"imagenet": "/data/i"}}
    own = {**A, "port": 23, "interface": "eth1", "data": {"tfrecords": "/t"}}
    first, second = cluster([own, B], defaults=defaults).members
    assert (first.user, first.port, first.interface) == ("bench", 23, "eth1")
    assert dict(first.data) == {"tfrecords": "/t"}
    assert (second.user, second.port, second.interface) == ("bench", 2222, "ib0")
    assert dict(second.data) == {"imagenet": "/data/i"}


def test_gpus_are_merged_field_by_field() -> None:
    """A node that says only which GPUs to use keeps the count and model of the defaults."""
    defaults = {"gpus": {"count": 8, "model": "Tesla V100-SXM2-16GB"}}
    nodes = [{**A, "gpus": {"use": [5, 2]}}, {**B, "gpus": {"count": 4}}]
    first, second = cluster(nodes, defaults=defaults).members
    assert first.gpus == Gpus(count=8, model="Tesla V100-SXM2-16GB", use=(5, 2))
    assert first.usable_gpus == (5, 2)
    assert second.gpus == Gpus(count=4, model="Tesla V100-SXM2-16GB")
    assert second.usable_gpus == (0, 1, 2, 3)


def test_gpus_without_a_count_give_none_to_use() -> None:
    """A model alone does not say how many GPUs there are."""
    assert cluster([{**A, "gpus": {"model": "Tesla T4"}}]).members[0].usable_gpus == ()


@pytest.mark.parametrize(
    ("second", "field", "seen"),
    [
        ({"name": "n1", "address": "10.0.0.2"}, "name", "'n1'"),
        ({"name": "N1", "address": "10.0.0.2"}, "name", "'N1'"),
        ({"name": "n2", "address": "10.0.0.1"}, "address", "'10.0.0.1'"),
    ],
)
def test_name_or_address_twice_is_refused(second: dict[str, str], field: str, seen: str) -> None:
    """Two entries of one node would be two ranks that fight over its GPUs; case does not count."""
    needed = f"{seen} is also the {field} of nodes[0]; needed one {field} for each node"
    assert mistakes(cluster([A, second])) == [(("nodes", 1, field), needed)]


def test_one_ipv6_address_in_two_spellings_is_one_address() -> None:
    """fd00::1 and FD00:0:0:0:0:0:0:1 are the same node."""
    nodes = [{**A, "address": "fd00::1"}, {**B, "address": "FD00:0:0:0:0:0:0:1"}]
    needed = (
        "'FD00:0:0:0:0:0:0:1' is also the address of nodes[0]; needed one address for each node"
    )
    assert mistakes(cluster(nodes)) == [(("nodes", 1, "address"), needed)]


@pytest.mark.parametrize(
    ("address", "needed"),
    [
        ("gpu01.lab.", "needed an IP address or a host name"),
        ("b\u00fccher.example", "needed an IP address or a host name"),
        ("fe80::1", "means the same on every machine, which no link-local one does"),
        ("fe80::1%eth0", "means the same on every machine, which no link-local one does"),
        ("gpu_01", "in whose name is no '_'; give its IP address"),
        ("[fd00::1]", "needed an IP address or a host name"),
    ],
)
def test_an_address_is_written_as_it_is_used(address: str, needed: str) -> None:
    """Or what to write in its place is told."""
    with pytest.raises(ValidationError, match="got '") as refused:
        cluster([{**A, "address": address}])
    assert needed in str(refused.value)


@pytest.mark.parametrize("jump", ["u@b", "b:22", "fd00::9", "me@[fd00::9]:2222", "10.0.0.9:22"])
def test_jump_hosts_have_users_and_ports(jump: str) -> None:
    """Of one letter too, and at an IPv6 address."""
    assert cluster([{**A, "jump": jump}]).members[0].jump == jump


@pytest.mark.parametrize("jump", ["a,b", "b:0", "[fd00::9", "u@", "fd00::9:x", "1.2.3", "b:99999"])
def test_what_is_no_jump_host_is_refused(jump: str) -> None:
    """By its form, or because no host can be called so."""
    with pytest.raises(ValidationError, match="; needed "):
        cluster([{**A, "jump": jump}])


def test_host_names_in_two_cases_are_one_address() -> None:
    """DNS does not tell Gpu1.lab from gpu1.lab."""
    nodes = [{**A, "address": "gpu1.lab"}, {**B, "address": "Gpu1.lab"}]
    assert [path for path, _ in mistakes(cluster(nodes))] == [("nodes", 1, "address")]


@pytest.mark.parametrize("address", ["127.0.0.1", "127.1.2.3", "::1", "localhost", "LocalHost"])
def test_loopback_among_remote_nodes_is_refused(address: str) -> None:
    """An address that means another machine on every node cannot be where ranks meet."""
    needed = (
        f"{address} is this machine for every node; needed an address that the other nodes"
        " can reach, or transport: local for all of them"
    )
    found = mistakes(cluster([{**A, "address": address}, B]))
    assert (("nodes", 0, "address"), needed) in found


def test_local_leader_on_loopback_is_refused_beside_a_remote_node() -> None:
    """The remote node would look for the leader on itself, and wait until the deadline."""
    nodes = [{**ALONE, "transport": "local"}, B]
    assert [path for path, _ in mistakes(cluster(nodes))] == [("nodes", 0, "address")]


def test_loopback_is_fine_for_one_node_and_for_local_ones() -> None:
    """A single node is reached by ssh to itself, and local nodes share the machine."""
    assert mistakes(cluster([ALONE])) == []
    local = [ALONE, {"name": "n2", "address": "127.0.0.2"}]
    assert mistakes(cluster(local, defaults=LOCAL)) == []


def test_privileged_containers_need_a_reason() -> None:
    """Least privilege unless a reason is given; with one, nothing is said."""
    with pytest.raises(ValidationError, match="needed `reason:` beside `privileged:`"):
        cluster(container={"privileged": True})
    assert mistakes(cluster(container={"privileged": True, "reason": "old driver"})) == []


def test_one_cluster_has_one_runtime() -> None:
    """A gang is one program: in containers everywhere, or as plain processes everywhere."""
    assert mistakes(cluster([A, {**B, "runtime": "process"}])) == [
        (
            ("nodes", 1),
            "node n2 has runtime process, node n1 docker; needed one runtime on all nodes",
        )
    ]


def test_plain_processes_are_reached_in_one_way() -> None:
    """What runs from a folder must lie at the same path on every node."""
    process = {"runtime": "process"}
    assert mistakes(cluster([A, {**B, "transport": "local"}], defaults=process)) == [
        (
            ("nodes", 1),
            "node n2 has transport local, node n1 ssh; needed one transport on all nodes",
        )
    ]


def test_a_nodes_folder_begins_at_the_root() -> None:
    """It is mounted into containers, where no home is the same."""
    with pytest.raises(ValidationError, match="got '~/dlperf'; needed an absolute path"):
        cluster([{**A, "folder": "~/dlperf"}])


@pytest.mark.parametrize(
    ("use", "needed"),
    [
        ([], "at least 1 item"),
        ([1, 1], r"got \[1, 1\]; needed each index once"),
        ([-1, 0], "greater than or equal to 0"),
        ([0, 64], "less than or equal to 63"),
    ],
)
def test_gpus_to_use_are_indices(use: list[int], needed: str) -> None:
    """Indices that no node can have are refused before anything is started."""
    with pytest.raises(ValidationError, match=needed):
        cluster([{**A, "gpus": {"count": 8, "use": use}}])


def test_gpus_to_use_must_be_there() -> None:
    """By the number that the inventory gives."""
    found = mistakes(cluster([{**A, "gpus": {"count": 8, "use": [7, 8]}}]))
    assert found == [(("nodes", 0, "gpus"), "gpus.use has [8]; needed indices from 0 to 7")]


@pytest.mark.parametrize("gpus", [{"count": 8, "use": [0, 7]}, {"use": [63]}])
def test_gpus_to_use_up_to_the_last_are_fine(gpus: dict[str, object]) -> None:
    """The borders themselves are allowed."""
    assert mistakes(cluster([{**A, "gpus": gpus}])) == []


def test_wrong_gpus_of_the_defaults_are_complained_about_at_each_node() -> None:
    """A node without a word of its own on GPUs is named as a whole."""
    found = mistakes(cluster(defaults={"gpus": {"count": 1, "use": [1]}}))
    assert found == [
        (("nodes", index), "gpus.use has [1]; needed indices from 0 to 0") for index in (0, 1)
    ]


def test_ipv4_beside_ipv6_is_refused_once() -> None:
    """Ranks of two address families cannot meet; host names are left to the resolver."""
    nodes = [A, {**B, "address": "fd00::2"}, {"name": "n3", "address": "fd00::3"}]
    named = {"name": "n4", "address": "gpu4.lab"}
    assert mistakes(cluster([*nodes, named])) == [
        (
            ("nodes", 1, "address"),
            "IPv6 beside IPv4; needed one address family, or ranks cannot meet",
        )
    ]


def test_everything_wrong_with_an_inventory_is_said_at_once() -> None:
    """One reading of the mistakes is enough to mend the file."""
    nodes: list[dict[str, object]] = [
        {**A, "gpus": {"count": 2, "use": [0, 5]}},
        {"name": "N1", "address": "10.0.0.1"},
        {"name": "n3", "address": "::1", "transport": "local"},
    ]
    paths = [path for path, _ in mistakes(cluster(nodes))]
    assert paths == [
        ("nodes", 1, "name"),
        ("nodes", 1, "address"),
        ("nodes", 2, "address"),  # loopback
        ("nodes", 0, "gpus"),  # no GPU 5
    ]


@pytest.mark.parametrize(
    ("said", "needed"),
    [
        ({"name": "x"}, "got 'x'; needed 2 to 63 letters"),
        ({"name": "n" * 64}, "needed 2 to 63 letters"),
        ({"name": "n1\n"}, r"got 'n1\\n'; needed 2 to 63 letters"),
        ({"name": "../etc"}, "needed 2 to 63 letters"),
        ({"name": "a;reboot"}, "needed 2 to 63 letters"),
        ({"name": "nоde"}, "needed 2 to 63 letters"),  # noqa: RUF001 - a Cyrillic letter that looks like an o
        ({"address": "-oProxyCommand=x"}, "needed an IP address or a host name"),
        ({"address": "10.0.0.256"}, "got '10.0.0.256'; needed an IP address or a host name"),
        ({"address": "10.0.1"}, "needed an IP address or a host name"),
        ({"address": "a b"}, "needed an IP address or a host name"),
        ({"address": ""}, "needed an IP address or a host name"),
        (
            {"identity": "/keys/../id"},
            "got '/keys/../id'; needed a path that begins with '/' or '~/', without '..'",
        ),
        ({"identity": "/keys/$(id)"}, "needed a path that begins with '/' or '~/'"),
        ({"data": {"imagenet": "/etc/ssl"}}, "needed a folder that holds data, not the system"),
        ({"data": {"imagenet": "/"}}, "needed a folder that holds data, not the system"),
        ({"data": {"imagenet": "data/image; rm"}}, "needed a path that begins with '/' or '~/'"),
        ({"host_key": "SHA256:short"}, "needed SHA256: and the 43 characters of a host key"),
        ({"port": 65536}, "less than or equal to 65535"),
        ({"port": "22"}, "should be a valid integer"),
        ({"port": True}, "should be a valid integer"),
        ({"transport": "telnet"}, "should be 'ssh' or 'local'"),
        ({"gpus": {"count": 0}}, "greater than or equal to 1"),
        ({"gpus": {"count": 65}}, "less than or equal to 64"),
        ({"gpu": {"count": 8}}, "Extra inputs are not permitted"),
    ],
)
def test_value_that_no_node_can_have_is_refused(said: dict[str, object], needed: str) -> None:
    """Text that could leave its place in a command line, a path or a host name does not enter."""
    with pytest.raises(ValidationError, match=needed):
        cluster([{**A, **said}])


def test_long_value_is_shown_cut() -> None:
    """A mistake stays one line of a terminal, whatever was pasted into the file."""
    with pytest.raises(ValidationError, match=r"got 'n{56}\.\.\.; needed"):
        cluster([{**A, "name": "n" * 200}])


@pytest.mark.parametrize("nodes", [[], [A] * 4097])
def test_cluster_has_one_to_4096_nodes(nodes: list[dict[str, str]]) -> None:
    """Neither nothing nor a number that only a mistake can give."""
    with pytest.raises(ValidationError, match=r"at least 1 item|at most 4096 items"):
        cluster(nodes)


@pytest.mark.parametrize(
    ("defaults", "in_containers", "is_here"),
    [
        ({}, True, False),
        ({"runtime": "process"}, False, False),
        ({"transport": "local", "runtime": "process"}, False, True),
    ],
)
def test_a_cluster_says_where_its_tasks_run(
    defaults: dict[str, str], in_containers: bool, is_here: bool
) -> None:
    """In containers or as plain processes, on this machine or elsewhere."""
    said = {"name": "lab", "defaults": defaults, "nodes": [{"name": "n1", "address": "10.0.0.1"}]}
    cluster = Cluster.model_validate_json(json.dumps(said))
    assert (cluster.in_containers, cluster.members[0].is_here) == (in_containers, is_here)


def test_a_copy_with_other_nodes_has_members_of_its_own() -> None:
    """Also where those of the first were looked at before: they are kept for speed."""
    nodes = tuple({"name": name, "address": f"10.0.0.{at}"} for at, name in enumerate(("aa", "bb")))
    whole = Cluster.model_validate({"name": "two", "nodes": nodes})
    assert [node.name for node in whole.members] == ["aa", "bb"]
    narrow = whole.model_copy(update={"nodes": whole.nodes[1:]})
    assert [node.name for node in narrow.members] == ["bb"]
    assert whole == whole.model_copy()


def test_roce_needs_an_adapter_on_ethernet() -> None:
    """Said of each node; with such an adapter it holds."""
    infiniband = [{"name": "mlx5_0", "rate_gbps": 400}]
    ethernet = [{**infiniband[0], "link_layer": "Ethernet"}]
    needed = "which has no adapter with link_layer: Ethernet; needed one among its hcas"
    common = cluster(defaults={"hcas": infiniband, "roce": {"gid_index": 3}})
    assert mistakes(common) == [
        (("nodes", index), f"roce for node n{index + 1}, {needed}") for index in (0, 1)
    ]
    own = cluster([A, {**B, "roce": {"gid_index": 3}}], defaults={"hcas": infiniband})
    assert mistakes(own) == [(("nodes", 1, "roce"), f"roce for node n2, {needed}")]
    assert mistakes(cluster(defaults={"hcas": ethernet, "roce": {"traffic_class": 106}})) == []


@pytest.mark.parametrize(
    ("runtime", "privileged", "confines"),
    [("docker", False, True), ("docker", True, False), ("process", False, False)],
)
def test_a_container_without_privileges_confines_its_root(
    runtime: str, privileged: bool, confines: bool
) -> None:
    """So data sets must be readable by their permissions, not by root's rights."""
    document = {"name": "lab", "defaults": {"runtime": runtime}, "nodes": [A]}
    container = {"container": {"privileged": True, "reason": "old"}} if privileged else {}
    found = Cluster.model_validate_json(json.dumps({**document, **container}))
    assert found.confines(found.members[0]) is confines
