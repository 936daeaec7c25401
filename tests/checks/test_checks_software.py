"""Checks of Docker, containers, data sets and the network, and of a node as a whole."""

import itertools
from dataclasses import replace

import pytest

from orchestrator import checks
from orchestrator.checks import data as data_checks
from orchestrator.checks import machine as machine_checks
from orchestrator.checks import network as network_checks
from orchestrator.model.facts import ContainerFacts, NodeAnswer, Silent, VerbsFacts
from orchestrator.model.node import Container
from orchestrator.model.site import DataDigest, DataState
from orchestrator.probes import infiniband
from orchestrator.probes.reach import Heard
from tests import SAMPLES
from tests.checks.facts import HOST, V100, WIRES, cluster, codes, driver, node
from tests.probes.answers import DEBIAN

HCA = {"name": "mlx5_0", "rate_gbps": 100}
IBSTAT = infiniband.parse((SAMPLES / "ibstat/dlperf_seed_vs002_mt4115.txt").read_text())
NAKED = Container(gpu_access="none")
INSIDE = ContainerFacts(
    gpus=driver(*[V100] * 8),
    infiniband=IBSTAT,
    verbs=VerbsFacts(("mlx5_0",), ()),
    ofed="4.9-0.1.7.0",
    devices=("rdma_cm", "uverbs0"),
    memlock_kib=None,
    shm_mib=16384,
)

IMAGENET = DataDigest("/data/image", "ab" * 32, 1331167, 10, 1281167, 1000, False)


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("ABSENT", "DOCKER-MISSING"),
        ("HUNG", "DOCKER-HUNG"),
        ("DENIED", "DOCKER-PERM"),
        ("DOWN", "DOCKER-DOWN"),
        ("FOREIGN", "DOCKER-FOREIGN"),
        ("REFUSED", "DOCKER-API"),
    ],
)
def test_engine_that_gives_no_answer_is_told_apart(code: str, found: str) -> None:
    """The user who was refused is named, in what was seen and in what to do."""
    (finding,) = machine_checks.docker(node(user="ada"), Silent(code, "oh"), NAKED)
    assert (finding.severity, finding.code) == ("error", found)
    assert finding.seen == "oh (user ada)"
    assert "{" not in finding.fix
    (finding,) = machine_checks.docker(node(user="ada"), Silent("HUNG", ""), NAKED)
    assert finding.seen == "no answer in 10 s (user ada)"


def test_engine_as_it_should_be_is_fit() -> None:
    """With room; and one that was not asked."""
    assert list(machine_checks.docker(node(), DEBIAN, NAKED)) == []
    assert list(machine_checks.docker(node(), None, NAKED)) == []


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"free_mib": 1023}, "error DISK-FULL"),
        ({"free_mib": None}, "error DISK-FULL"),
        ({"proxies": ("HttpProxy",)}, "warning PROXY"),
    ],
)
def test_engine_beyond_a_border_is_found(change: dict[str, object], code: str) -> None:
    """One finding for one thing wrong."""
    facts = replace(DEBIAN, **change)  # type: ignore[arg-type] # one field of each type
    assert codes(machine_checks.docker(node(), facts, NAKED)) == [code]


def test_missing_sudo_is_not_taken_for_missing_docker() -> None:
    """The way to the engine is what lacks; installing Docker would not help."""
    silent = Silent("ABSENT", "sh: 1: sudo: not found")
    (found,) = machine_checks.docker(node(sudo=True), silent, NAKED)
    assert (found.code, found.fix) == (
        "DOCKER-MISSING",
        "install sudo on the node, or leave out `sudo: true`",
    )


@pytest.mark.parametrize(
    ("wanted", "change", "found"),
    [
        ("auto", {"gpu_hook": False}, ["error GPU-RUNTIME"]),
        ("auto", {}, []),
        ("gpus", {}, []),
        ("cdi", {}, ["error GPU-RUNTIME"]),
        ("cdi", {"cdi": True}, []),
        ("runtime", {}, ["error GPU-RUNTIME"]),
        ("runtime", {"runtimes": ("nvidia", "runc")}, []),
        ("none", {"gpu_hook": False}, ["warning GPU-RUNTIME"]),
    ],
)
def test_engine_must_have_the_way_to_gpus_that_is_wanted(
    wanted: str, change: dict[str, object], found: list[str]
) -> None:
    """Any of them, unless the inventory names one; what the engine has is shown."""
    facts = replace(DEBIAN, **change)  # type: ignore[arg-type] # one field of each type
    started = Container.model_validate({"gpu_access": wanted})
    assert codes(machine_checks.docker(node(gpus={"count": 8}), facts, started)) == found
    assert list(machine_checks.docker(node(), facts, started)) == []


def test_container_as_it_should_be_is_fit() -> None:
    """What the inventory asks for, in numbers that just suffice."""
    started = Container(shm_size="16g", ulimits={"memlock": -1})
    fit = node(gpus={"count": 8}, hcas=[HCA])
    assert list(machine_checks.container(fit, INSIDE, started, host_ofed="4.9-0.1.7.0")) == []
    assert list(machine_checks.container(node(), INSIDE, Container())) == []
    bounded = Container(ulimits={"memlock": 8388608})
    limited = replace(INSIDE, memlock_kib=8192, ofed=None, gpus=None)
    assert list(machine_checks.container(fit, limited, bounded, host_ofed="4.9-0.1.7.0")) == []


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"shm_mib": 64}, "error SHM-SMALL"),
        ({"gpus": driver(*[V100] * 7)}, "error GPU-COUNT"),
        ({"gpus": Silent("ABSENT", "not found")}, "error GPU-RUNTIME"),
        ({"gpus": Silent("HUNG", "")}, "error GPU-RUNTIME"),
        ({"memlock_kib": 64}, "error MEMLOCK"),
        ({"devices": ("rdma_cm",)}, "error IB-DEVICE"),
        ({"devices": ()}, "error IB-DEVICE"),
        ({"verbs": VerbsFacts((), ())}, "error IB-NO-DRIVER"),
        ({"verbs": Silent("ABSENT", "not found")}, "error IB-NO-DRIVER"),
        ({"infiniband": Silent("ABSENT", "not found")}, "error IB-TOOLS"),
        ({"ofed": "5.3-1.0.0.1"}, "warning OFED-SKEW"),
        ({"ofed": "4.7-1.0.0.1"}, "warning OFED-SKEW"),
    ],
)
def test_container_that_lacks_something_is_found(change: dict[str, object], code: str) -> None:
    """Here everything must be there: nothing else will bring it."""
    facts = replace(INSIDE, **change)  # type: ignore[arg-type] # one field of each type
    started = Container(shm_size="16g")
    fit = node(gpus={"count": 8}, hcas=[HCA], runtime="docker")
    assert codes(machine_checks.container(fit, facts, started, host_ofed="4.9-0.1.7.0")) == [code]


def test_another_ofed_in_the_container_is_named_with_the_nodes() -> None:
    """A newer one makes NCCL fall back to sockets in silence."""
    facts = replace(INSIDE, ofed="5.3-1.0.0.1")
    (found,) = machine_checks.container(node(hcas=[HCA]), facts, Container(), "4.9-0.1.7.0")
    assert found.seen == "OFED 5.3-1.0.0.1 in the container, 4.9-0.1.7.0 on the node"


def test_memory_to_lock_is_what_the_inventory_says() -> None:
    """Unlimited unless it names a number of bytes."""
    facts = replace(INSIDE, memlock_kib=8191)
    fit = node(hcas=[HCA])
    (found,) = machine_checks.container(fit, facts, Container(ulimits={"memlock": 8388608}))
    assert found.expected == "8192 KiB"
    (found,) = machine_checks.container(fit, facts, Container())
    assert found.expected == "unlimited"


@pytest.mark.parametrize(
    ("size", "mib"),
    [("16g", 16384), ("64m", 64), ("2t", 2097152), ("65536k", 64), ("67108864", 64)],
)
def test_sizes_are_read_as_docker_reads_them(size: str, mib: int) -> None:
    """Powers of 1024; a number alone is bytes."""
    started, facts = Container(shm_size=size), replace(INSIDE, shm_mib=mib)
    assert list(machine_checks.container(node(), facts, started)) == []
    (found,) = machine_checks.container(node(), replace(facts, shm_mib=mib - 1), started)
    assert found.code == "SHM-SMALL"


@pytest.mark.parametrize(
    ("state", "code"),
    [
        ("present", []),
        ("missing", ["error DATA-MISSING"]),
        ("empty", ["error DATA-MISSING"]),
        ("unreadable", ["error DATA-MISSING"]),
        ("hung", ["error MOUNT-HUNG"]),
    ],
)
def test_data_set_that_cannot_be_read_is_found(state: DataState, code: list[str]) -> None:
    """With its path on that node."""
    found = list(data_checks.states(node(data={"imagenet": "/data/image"}), {"imagenet": state}))
    assert codes(found) == code
    assert all(finding.seen.startswith("/data/image: ") for finding in found)


def test_data_set_is_judged_as_a_container_sees_it() -> None:
    """With where it was looked at, for which user, and how to find what is not readable."""
    fit = node(data={"imagenet": "/data/image"}, runtime="docker")
    facts = replace(INSIDE, data={"imagenet": "unreadable"})
    (found,) = machine_checks.container(fit, facts, Container())
    assert (found.code, found.seen) == ("DATA-MISSING", "in a container: /data/image: unreadable")
    assert found.expected.endswith("for user root without special rights, as in a container")
    assert "chmod -R o+rX /data/image" in found.fix


def test_data_set_that_differs_on_one_node_is_found_there() -> None:
    """Count, size and names; most nodes are right."""
    other = replace(IMAGENET, digest="cd" * 32)
    found = data_checks.digests("set", {"n1": IMAGENET, "n2": other, "n3": IMAGENET})
    (odd,) = found
    assert (odd.severity, odd.code, odd.node) == ("error", "DATA-DIFF", "n2")
    assert odd.seen == "/data/image: 1331167 files, 10 bytes, digest cdcdcdcdcdcdcdcd"
    assert odd.expected == "1331167 files, 10 bytes, digest abababababababab, as on n1 and 1 more"


@pytest.mark.parametrize(
    ("name", "counted", "found"),
    [
        ("imagenet", (1281167, 1000), []),
        ("imagenet", (None, None), []),
        ("ImageNet_2012", (886372, 698), ["warning DATA-INCOMPLETE"]),
        ("imagenet", (1281167, 999), ["warning DATA-INCOMPLETE"]),
        ("toys", (886372, 698), []),
    ],
)
def test_part_of_imagenet_is_said_to_be_one(
    name: str, counted: tuple[int | None, int | None], found: list[str]
) -> None:
    """As it was in a published run: 886372 files from 698 directories."""
    files, folders = counted
    part = replace(IMAGENET, train_files=files, train_folders=folders)
    assert codes(data_checks.digests(name, {"n1": part})) == found


@pytest.mark.parametrize(
    ("addresses", "found"),
    [
        ({"ib0": ("10.0.0.1",)}, []),
        ({"ib0": ("fe80::1", "10.0.0.1")}, []),
        ({"ib0": ("10.0.0.11",), "eth0": ("10.0.0.1",)}, ["error NET-IFACE"]),
        ({"eth0": ("10.0.0.1",)}, ["error NET-IFACE"]),
        (None, ["warning NET-UNPROVEN"]),
    ],
)
def test_interface_must_carry_the_address_of_its_node(
    addresses: dict[str, tuple[str, ...]] | None, found: list[str]
) -> None:
    """Else ranks meet over another network, or not at all."""
    here = cluster({}, {}, interface="ib0")
    facts = replace(HOST, addresses=addresses)
    assert codes(network_checks.interfaces(here, here.members[0], facts)) == found
    absent = replace(facts, interfaces=("lo",))
    assert list(network_checks.interfaces(here, here.members[0], absent)) == []


def test_interface_named_on_the_node_itself_needs_any_address() -> None:
    """Addresses for ssh and for ranks may differ on purpose; a name needs a resolver."""
    here = cluster({"interface": "ib0"}, {"address": "vs002", "name": "n2"}, interface="ib0")
    other = replace(HOST, addresses={"ib0": ("192.168.0.1",)})
    assert list(network_checks.interfaces(here, here.members[0], other)) == []
    assert list(network_checks.interfaces(here, here.members[1], other)) == []
    bare = replace(HOST, addresses={"ib0": ()})
    (found,) = network_checks.interfaces(here, here.members[0], bare)
    assert (found.seen, found.expected) == ("ib0 has no address", "an address")
    assert codes(network_checks.interfaces(here, here.members[1], bare)) == ["error NET-IFACE"]


def test_loopback_carries_every_address_of_its_kind() -> None:
    """127.0.0.2 answers although no interface shows it."""
    here = cluster({"address": "127.0.0.2"}, interface="lo")
    facts = replace(HOST, addresses={"lo": ("127.0.0.1",)})
    assert list(network_checks.interfaces(here, here.members[0], facts)) == []


@pytest.mark.parametrize(
    ("addresses", "found"),
    [
        ({"eth0": ("10.0.0.1",), "lo": ("127.0.0.1",)}, None),
        ({"eth0": ("10.0.0.1",), "docker0": ("172.17.0.1",), "br-1f": ()}, "br-1f, docker0"),
        ({"veth1": ("10.0.0.1",)}, None),
    ],
)
def test_virtual_interfaces_are_named_where_none_is_chosen(
    addresses: dict[str, tuple[str, ...]], found: str | None
) -> None:
    """Those that carry the node's own address are the network itself."""
    here = cluster({}, {})
    said = list(
        network_checks.interfaces(here, here.members[0], replace(HOST, addresses=addresses))
    )
    assert codes(said) == (["warning NET-VIRTUAL"] if found else [])
    if found:
        assert said[0].seen == f"virtual interfaces {found}, which NCCL and gloo may pick"


def test_virtual_interfaces_matter_between_machines_only() -> None:
    """One node meets nobody; local nodes meet on this machine; names are enough to warn."""
    facts = replace(HOST, addresses=None, interfaces=("virbr0", "eth0"))
    alone = cluster({})
    assert list(network_checks.interfaces(alone, alone.members[0], facts)) == []
    local = cluster({}, {}, transport="local", runtime="process")
    assert list(network_checks.interfaces(local, local.members[0], facts)) == []
    both = cluster({}, {})
    assert codes(network_checks.interfaces(both, both.members[0], facts)) == ["warning NET-VIRTUAL"]


@pytest.mark.parametrize(
    ("own", "settings", "found"),
    [
        (("127.0.1.1",), {}, ["error NET-NAME"]),
        (("127.0.1.1", "10.0.0.1"), {"gpus": {"count": 8}}, ["warning NET-NAME"]),
        (("::1",), {}, ["error NET-NAME"]),
        (("10.0.0.1", "127.0.1.1"), {}, []),
        ((), {}, []),
        (("127.0.1.1",), {"interface": "eth0"}, []),
    ],
)
def test_a_node_whose_own_name_means_loopback_is_told_where_that_matters(
    own: tuple[str, ...], settings: dict[str, object], found: list[str]
) -> None:
    """Gloo tells other ranks what the node's name means, unless an interface is named."""
    facts = replace(HOST, addresses={"eth0": ("10.0.0.1",)}, own_addresses=own)
    here = cluster({}, {}, **settings)
    assert codes(network_checks.interfaces(here, here.members[0], facts)) == found
    near = cluster({"address": "127.0.0.1"}, {"address": "127.0.0.2"}, **settings)
    assert "NET-NAME" not in "".join(codes(network_checks.interfaces(near, near.members[0], facts)))


def test_nodes_that_cannot_meet_are_named_as_a_pair() -> None:
    """In the direction that was tried, on the port that was tried."""
    listeners = {"n1": Heard("open"), "n2": Heard("busy", "in use"), "n3": Heard("unproven", "no")}
    calls = {
        ("n1", "n2"): Heard("open"),
        ("n2", "n1"): Heard("blocked", "no answer in 5 s"),
        ("n3", "n1"): Heard("unproven", "none"),
    }
    found = list(network_checks.reachable(29501, listeners, calls))
    assert [f"{finding.severity} {finding.code} {finding.node}" for finding in found] == [
        "error PORT-BUSY n2",
        "warning NET-UNPROVEN n3",
        "error NET-BLOCKED n2",
        "warning NET-UNPROVEN n3",
    ]
    assert found[2].seen == "n2->n1:29501: no answer in 5 s"


@pytest.mark.parametrize(
    ("blocked", "blamed"),
    [
        ({("n2", "n1"), ("n3", "n1")}, ["n1", "n1"]),
        ({("n1", "n2"), ("n1", "n3")}, ["n1", "n1"]),
        ({("n2", "n1")}, ["n2"]),
    ],
)
def test_a_node_that_no_other_reaches_is_blamed_itself(
    blocked: set[tuple[str, str]], blamed: list[str]
) -> None:
    """It is what `--nodes` must leave out; those that called it are well."""
    names = ("n1", "n2", "n3")
    calls = {
        (caller, listener): Heard("blocked" if (caller, listener) in blocked else "open")
        for caller, listener in itertools.permutations(names, 2)
    }
    found = list(network_checks.reachable(29501, dict.fromkeys(names, Heard("open")), calls))
    assert [finding.node for finding in found] == blamed


def test_of_two_nodes_the_one_that_calls_is_named() -> None:
    """Nobody else could tell which of both has the firewall."""
    listeners = {"n1": Heard("open"), "n2": Heard("open")}
    calls = {("n1", "n2"): Heard("open"), ("n2", "n1"): Heard("blocked", "refused")}
    assert [finding.node for finding in network_checks.reachable(1, listeners, calls)] == ["n2"]


@pytest.mark.parametrize(
    ("defaults", "change", "found"),
    [
        ({"runtime": "process", "hcas": [HCA]}, {"memlock_kib": 64}, ["error MEMLOCK"]),
        ({"runtime": "process", "hcas": [HCA]}, {"memlock_kib": None}, []),
        ({"runtime": "process"}, {"memlock_kib": 64}, []),
        ({"runtime": "docker", "hcas": [HCA]}, {"memlock_kib": 64}, []),
        ({"runtime": "process", "gpus": {}}, {"shm_mib": 64}, ["error SHM-SMALL"]),
        ({"runtime": "process", "gpus": {}}, {"shm_mib": 65}, []),
        ({"runtime": "process"}, {"shm_mib": 0}, []),
        ({"runtime": "docker"}, {"proxies": ("http_proxy",)}, ["warning PROXY"]),
        ({"runtime": "process"}, {"proxies": ("http_proxy",)}, []),
    ],
)
def test_limits_of_the_machine_count_where_tasks_run_on_it(
    defaults: dict[str, object], change: dict[str, object], found: list[str]
) -> None:
    """A container has its own; a proxy disturbs pulls only."""
    facts = replace(HOST, **change)  # type: ignore[arg-type] # one field of each type
    assert codes(machine_checks.host(node(**defaults), facts, machine_checks.Demands())) == found


def test_node_is_judged_by_every_answer_at_once() -> None:
    """One of each kind; the topology is not held against a driver that gives no answer."""
    here = cluster({}, gpus={"count": 1, "use": [0]}, hcas=[HCA], data={"set": "/data/set"})
    answer = NodeAnswer(
        host=replace(HOST, free_disk_mib=0, proxies=("http_proxy",)),
        gpu=driver(replace(V100, ecc_volatile_uncorrected=1)),
        topology=replace(WIRES, links={"GPU0": {"mlx5_0": "SYS"}}),
        infiniband=Silent("HUNG", ""),
        verbs=VerbsFacts((), ()),
        ofed=None,
        docker=Silent("DOWN", "oh"),
        data={"set": "missing"},
    )
    demands = machine_checks.Demands(driver="450.80.02")
    assert codes(checks.alone(here, here.members[0], answer, demands)) == [
        "error DISK-FULL",
        "warning PROXY",
        "error GPU-DRIVER-OLD",
        "error GPU-ECC",
        "error IB-QUERY-HUNG",
        "warning IB-NO-DRIVER",
        "warning HCA-FAR",
        "error DOCKER-DOWN",
        "error DATA-MISSING",
    ]
    silent = replace(answer, gpu=Silent("HUNG", ""), topology=Silent("HUNG", ""))
    found = codes(checks.alone(here, here.members[0], silent, demands))
    assert "error GPU-QUERY-HUNG" in found
    assert "warning TOPO-UNREADABLE" not in found
