"""Findings about nodes as a set: the node that differs, or that others do not reach, is named."""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest

from orchestrator.checks import network, nodes
from orchestrator.model.cluster import Cluster
from orchestrator.model.site import Finding, HostFacts, NodeFacts, Site, Topology
from orchestrator.probes.reach import Heard
from tests.checks.facts import FACTS, HOST, PORT, V100S, changed, cluster, hca, table
from tests.probes.answers import DEBIAN

ADAPTER = [hca()]


def three(*own: dict[str, object]) -> Cluster:
    """Return three nodes with an adapter, the first ones with settings of their own."""
    return cluster(*own, *[{}] * (3 - len(own)), hcas=ADAPTER)


def alike(
    odd: NodeFacts | None, here: Cluster | None = None, *, name: str = "n2"
) -> Iterator[Finding]:
    """Judge three nodes, one of them with other facts, or with none."""
    facts = {it: odd if it == name else FACTS for it in ("n1", "n2", "n3")}
    return nodes.alike(here or three(), {it: fact for it, fact in facts.items() if fact})


def gpu(**change: object) -> Iterator[Finding]:
    return alike(replace(FACTS, gpu=changed(V100S, **change)))


def host(**change: object) -> Iterator[Finding]:
    return alike(replace(FACTS, host=changed(HOST, **change)))


def fact(**change: object) -> Iterator[Finding]:
    return alike(changed(FACTS, **change))


BARE = NodeFacts(HOST)
T4 = replace(FACTS, gpu=replace(V100S, models=("T4", "T4"), power_limits_w=(70.0, 70.0)))
VBIOS = {
    name: replace(FACTS, gpu=replace(V100S, vbios=(bios, bios)))
    for name, bios in (("n1", "88.00.4F"), ("n2", "88.00.4F"), ("n3", "88.00.13"))
}


test_nodes_that_differ = table(
    alike=(alike(FACTS), ""),
    no_answer_at_all=(nodes.alike(three(), {}), ""),
    plain=(nodes.alike(cluster({}, {}), {"n1": BARE, "n2": BARE}), ""),
    driver=(gpu(driver="418.87.00"), "error HETEROGENEOUS n2"),
    models=(gpu(models=("V100", "T4")), "error HETEROGENEOUS n2"),
    no_gpu=(gpu(models=()), "error HETEROGENEOUS n2"),
    # A median over unlike nodes is hard to read, also where the inventory declares them
    declared=(
        alike(T4, three({}, {}, {"gpus": {"count": 2, "model": "T4"}}), name="n3"),
        "warning HETEROGENEOUS n3",
    ),
    power=(gpu(power_limits_w=(300.0, 250.0)), "warning GPU-POWER n2"),
    power_unknown=(gpu(power_limits_w=()), "warning GPU-POWER n2"),
    vbios=(nodes.alike(three(), VBIOS), "warning GPU-VBIOS n3"),
    kernel=(host(kernel="Linux 5.4.0"), "warning HETEROGENEOUS n2"),
    system=(host(system="Debian 12"), "warning HETEROGENEOUS n2"),
    cpus=(host(cpus=24), "warning HETEROGENEOUS n2"),
    docker=(fact(docker=replace(DEBIAN, server_version="19.03.5")), "warning HETEROGENEOUS n2"),
    # Firmware keeps a few percent for itself
    memory=(host(memory_mib=366_699), "warning HETEROGENEOUS n2"),
    memory_border=(host(memory_mib=366_701), ""),
    wiring=(fact(topology=Topology({}, "b" * 64)), "warning TOPO-DIFF n2"),
    wiring_unreadable=(fact(topology=Topology({}, None)), ""),
    firmware=(fact(infiniband=(replace(PORT, firmware="12.26.4012"),)), "warning IB-FIRMWARE n2"),
    # A gang over nodes with and without active adapters hangs for ever
    port_down=(fact(infiniband=(replace(PORT, state="Down"),)), "error IB-PARITY n2"),
    port_not_declared=(fact(infiniband=(PORT, replace(PORT, name="mlx5_1"))), ""),
    ports_unknown=(fact(infiniband=None), ""),
    adapter_on_some=(alike(FACTS, three({}, {}, {"hcas": []})), "error IB-PARITY n3"),
    adapter_without_answer=(alike(None, three({}, {"hcas": []})), ""),
)


def test_most_nodes_are_right_and_the_first_of_equals() -> None:
    two_of_three = nodes.deviants({"n1": "b", "n2": "a", "n3": "a"})
    assert list(two_of_three) == [("n1", "b", "a, as on n2 and 1 more")]
    assert list(nodes.deviants({"n1": "b", "n2": "a"})) == [("n2", "a", "b, as on n1")]
    assert list(nodes.deviants({})) == []


def skew(skew_s: float) -> Iterator[Finding]:
    """Judge a node whose clock differs so much when it answers; n1 gave no answer."""
    facts = {"n2": NodeFacts(replace(HOST, clock_s=1000.0 + skew_s))}
    return nodes.together(facts, {"n1": 990.0, "n2": 1000.0})


def since(before: NodeFacts, now: NodeFacts) -> Iterator[Finding]:
    """Judge n1 by an earlier provisioning, which lacked n2."""
    site = Site(2, "testers", "d", "testers.yaml", "2020-09-15T14:28:53Z", {"n1": before}, ())
    return nodes.since(site, {"n1": now, "n2": FACTS})


UNWIRED = replace(FACTS, topology=None, gpu=None)
REWIRED = replace(FACTS, topology=Topology({}, "b" * 64))
ONE_GPU = replace(FACTS, gpu=replace(V100S, bus_ids=("0:1", None)))


test_clocks_and_changes_since_the_last_provisioning = table(
    clock=(skew(0.0), ""),
    clock_ahead=(skew(1.0), ""),
    clock_behind=(skew(-1.0), ""),
    clock_too_far_ahead=(skew(1.25), "warning CLOCK-SKEW n2"),
    clock_too_far_behind=(skew(-1.25), "warning CLOCK-SKEW n2"),
    clock_half_a_minute=(skew(30.0), "warning CLOCK-SKEW n2"),
    clock_wrong_ahead=(skew(30.25), "error CLOCK-SKEW n2"),
    clock_wrong_behind=(skew(-30.25), "error CLOCK-SKEW n2"),
    unchanged=(since(FACTS, FACTS), ""),
    rewired=(since(REWIRED, FACTS), "warning TOPO-CHANGED"),
    gpu_gone=(since(FACTS, ONE_GPU), "warning GPU-GONE"),
    gpu_added=(since(ONE_GPU, FACTS), ""),
    unknown_now=(since(FACTS, UNWIRED), ""),
    unknown_before=(since(UNWIRED, FACTS), ""),
    unreadable=(since(FACTS, replace(FACTS, topology=Topology({}, None))), ""),
)


@pytest.mark.parametrize(
    ("boot_ids", "shared"),
    [(("b1", "b2"), False), (("b1", "b1"), True), (("b1", "b2", "b1"), True), (("b1",), False)],
)
def test_nodes_with_one_boot_are_one_machine(boot_ids: tuple[str, ...], *, shared: bool) -> None:
    """A speedup over them says nothing of scaling."""
    there = {
        f"n{at}": NodeFacts(replace(HOST, boot_id=boot_id), None)
        for at, boot_id in enumerate(boot_ids)
    }
    site = Site(2, "testers", "d", "testers.yaml", "2020-09-15T14:28:53Z", there, ())
    assert site.shared_machine == shared


def seen(here: Cluster, facts: HostFacts, at: int = 0) -> Iterator[Finding]:
    return network.interfaces(here, here.members[at], facts)


def on(addresses: Mapping[str, tuple[str, ...]] | None, **change: object) -> HostFacts:
    """Return the facts of a machine with these addresses by interface."""
    facts: HostFacts = changed(HOST, addresses=addresses, **change)
    return facts


IB0 = cluster({}, {}, interface="ib0")
PAIR = cluster({}, {})
LOCAL = cluster({}, {}, transport="local", runtime="process")
# Addresses for ssh and for ranks may differ on purpose; a name needs a resolver
OWN = cluster({"interface": "ib0"}, {"address": "vs002", "name": "n2"}, interface="ib0")
ETH0 = {"eth0": ("10.0.0.1",)}
BRIDGES = {**ETH0, "docker0": ("172.17.0.1",), "br-1f": ()}


def named(*own: str, here: Cluster = PAIR, **settings: object) -> Iterator[Finding]:
    """Judge a node whose own name means these addresses."""
    there = cluster({}, {}, **settings) if settings else here
    return seen(there, on(ETH0, own_addresses=own))


test_interfaces = table(
    address=(seen(IB0, on({"ib0": ("fe80::1", "10.0.0.1")})), ""),
    another_address=(seen(IB0, on({"ib0": ("10.0.0.11",), **ETH0})), "error NET-IFACE"),
    on_another=(seen(IB0, on(ETH0)), "error NET-IFACE"),
    addresses_unknown=(seen(IB0, on(None)), "warning NET-UNPROVEN"),
    no_such_interface=(seen(IB0, on(ETH0, interfaces=("lo",))), ""),
    any_will_do=(seen(OWN, on({"ib0": ("192.168.0.1",)})), ""),
    any_for_a_name=(seen(OWN, on({"ib0": ("192.168.0.1",)}), 1), ""),
    none_will_not_do=(seen(OWN, on({"ib0": ()})), "error NET-IFACE"),
    none_for_a_name=(seen(OWN, on({"ib0": ()}), 1), "error NET-IFACE n2"),
    loopback=(
        seen(cluster({"address": "127.0.0.2"}, interface="lo"), on({"lo": ("127.0.0.1",)})),
        "",
    ),
    plain=(seen(PAIR, on({**ETH0, "lo": ("127.0.0.1",)})), ""),
    virtual=(seen(PAIR, on(BRIDGES)), "warning NET-VIRTUAL"),
    virtual_itself=(seen(PAIR, on({"veth1": ("10.0.0.1",)})), ""),
    virtual_by_name=(seen(PAIR, on(None, interfaces=("virbr0", "eth0"))), "warning NET-VIRTUAL"),
    virtual_alone=(seen(cluster({}), on(BRIDGES)), ""),
    virtual_here=(seen(LOCAL, on(BRIDGES)), ""),
    # Gloo tells other ranks what the node's own name means, unless an interface is named
    name=(named("127.0.1.1"), "error NET-NAME"),
    name_6=(named("::1"), "error NET-NAME"),
    name_with_gpus=(named("127.0.1.1", "10.0.0.1", gpus={"count": 8}), "warning NET-NAME"),
    name_first=(named("10.0.0.1", "127.0.1.1"), ""),
    name_unknown=(named(), ""),
    name_not_used=(named("127.0.1.1", interface="eth0"), ""),
    name_nearby=(
        seen(
            cluster({"address": "127.0.0.1"}, {"address": "127.0.0.2"}),
            on(ETH0, own_addresses=("127.0.1.1",)),
        ),
        "",
    ),
)


OPEN, BLOCKED = Heard("open"), Heard("blocked", "no answer in 5 s")


def calls(*blocked: str, names: str = "123") -> Iterator[Finding]:
    """Judge calls among nodes; ``21`` is a call of n2 to n1 that is blocked."""
    heard = {
        (f"n{caller}", f"n{listener}"): BLOCKED if caller + listener in blocked else OPEN
        for caller, listener in itertools.permutations(names, 2)
    }
    return network.reachable(29501, {f"n{name}": OPEN for name in names}, heard)


test_calls_between_nodes = table(
    states=(
        network.reachable(
            29501,
            {"n1": OPEN, "n2": Heard("busy", "in use"), "n3": Heard("unproven", "no")},
            {("n1", "n2"): OPEN, ("n2", "n1"): BLOCKED, ("n3", "n1"): Heard("unproven", "none")},
        ),
        "error PORT-BUSY n2, warning NET-UNPROVEN n3, error NET-BLOCKED n2,"
        " warning NET-UNPROVEN n3",
    ),
    open=(calls(), ""),
    # `--nodes` must leave out the node that no other reaches; those that call it are well
    deaf=(calls("21", "31"), "error NET-BLOCKED, error NET-BLOCKED"),
    caller=(calls("12", "13"), "error NET-BLOCKED, error NET-BLOCKED"),
    one_call=(calls("21"), "error NET-BLOCKED n2"),
    # Which of two nodes has the firewall nobody else can tell
    two=(calls("21", names="12"), "error NET-BLOCKED n2"),
)
