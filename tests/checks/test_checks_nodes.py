"""Checks of nodes as a set: what differs is found on the node that differs."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace

import pytest

from orchestrator.checks import nodes as nodes_checks
from orchestrator.checks import nodes as rules
from orchestrator.model.cluster import Cluster
from orchestrator.model.site import (
    Finding,
    NodeFacts,
    Site,
    Topology,
)
from tests.checks.facts import FACTS, HOST, PORT, V100S
from tests.probes.answers import DEBIAN


def cluster(**own: dict[str, object]) -> Cluster:
    """Three nodes with an adapter, of some of which more is said."""
    nodes = [
        {"name": f"n{n}", "address": f"10.0.0.{n}", **own.get(f"n{n}", {})} for n in range(1, 4)
    ]
    defaults = {"hcas": [{"name": "mlx5_0", "rate_gbps": 100}]}
    said = {"name": "testers", "defaults": defaults, "nodes": nodes}
    return Cluster.model_validate_json(json.dumps(said))


def codes(findings: Iterable[Finding]) -> list[str]:
    """Severity, code and node of each."""
    return [f"{finding.severity} {finding.code} {finding.node}" for finding in findings]


def three(**changes: NodeFacts) -> Mapping[str, NodeFacts]:
    """Facts of three nodes, equal but for those given."""
    return {name: changes.get(name, FACTS) for name in ("n1", "n2", "n3")}


def test_equal_nodes_are_alike() -> None:
    """Also when nothing was asked of them, or none has answered."""
    assert list(nodes_checks.alike(cluster(), three())) == []
    bare = NodeFacts(HOST)
    plain = cluster(n1={"hcas": []}, n2={"hcas": []}, n3={"hcas": []})
    assert list(nodes_checks.alike(plain, three(n1=bare, n2=bare, n3=bare))) == []
    assert list(nodes_checks.alike(cluster(), {})) == []


@pytest.mark.parametrize(
    ("change", "code", "seen"),
    [
        (
            {"gpu": replace(V100S, driver="418.87.00")},
            "error HETEROGENEOUS n2",
            "driver 418.87.00",
        ),
        (
            {"gpu": replace(V100S, models=("V100", "T4"))},
            "error HETEROGENEOUS n2",
            "1 x V100, 1 x T4",
        ),
        ({"gpu": replace(V100S, models=())}, "error HETEROGENEOUS n2", "no GPU"),
        (
            {"gpu": replace(V100S, power_limits_w=(300.0, 250.0))},
            "warning GPU-POWER n2",
            "power limits 300.0, 250.0 W",
        ),
        (
            {"gpu": replace(V100S, power_limits_w=())},
            "warning GPU-POWER n2",
            "power limits unknown W",
        ),
        (
            {"host": replace(HOST, kernel="Linux 5.4.0")},
            "warning HETEROGENEOUS n2",
            "kernel Linux 5.4.0",
        ),
        (
            {"host": replace(HOST, system="Debian 12")},
            "warning HETEROGENEOUS n2",
            "system Debian 12",
        ),
        (
            {"host": replace(HOST, cpus=24)},
            "warning HETEROGENEOUS n2",
            f"CPU 24 x {HOST.cpu_model}",
        ),
        (
            {"docker": replace(DEBIAN, server_version="19.03.5")},
            "warning HETEROGENEOUS n2",
            "Docker 19.03.5",
        ),
        (
            {"host": replace(HOST, memory_mib=366_699)},
            "warning HETEROGENEOUS n2",
            "358 GiB of memory",
        ),
        (
            {"topology": Topology({}, "b" * 64)},
            "warning TOPO-DIFF n2",
            f"wiring {'b' * 16}",
        ),
        (
            {"infiniband": (replace(PORT, firmware="12.26.4012"),)},
            "warning IB-FIRMWARE n2",
            "firmware of mlx5_0 MT4115 12.26.4012",
        ),
        (
            {"infiniband": (replace(PORT, state="Down"),)},
            "error IB-PARITY n2",
            "active adapters: none",
        ),
    ],
)
def test_node_that_differs_is_found(change: dict[str, object], code: str, seen: str) -> None:
    """Beside what most nodes say, and which."""
    odd = replace(FACTS, **change)  # type: ignore[arg-type] # one field of each type
    found = list(nodes_checks.alike(cluster(), three(n2=odd)))
    assert codes(found) == [code]
    assert found[0].seen == seen


def test_memory_that_differs_by_a_few_percent_is_the_same() -> None:
    """Firmware keeps some for itself."""
    less = replace(FACTS, host=replace(HOST, memory_mib=366_701))
    assert list(nodes_checks.alike(cluster(), three(n2=less))) == []


def test_unreadable_wiring_is_not_compared() -> None:
    """It is said elsewhere that it could not be read."""
    unread = replace(FACTS, topology=Topology({}, None))
    assert list(nodes_checks.alike(cluster(), three(n2=unread))) == []


def test_models_that_the_inventory_wants_to_differ_may() -> None:
    """A warning stays: a median over unlike nodes is hard to read. Power then differs too."""
    other = replace(V100S, models=("T4", "T4"), power_limits_w=(70.0, 70.0))
    wanted = cluster(n3={"gpus": {"count": 2, "model": "T4"}})
    found = nodes_checks.alike(wanted, three(n3=replace(FACTS, gpu=other)))
    assert codes(found) == ["warning HETEROGENEOUS n3"]


def test_adapters_on_some_nodes_only_are_found() -> None:
    """Such a gang hangs for ever; a node that gave no answer is left out."""
    without = cluster(n3={"hcas": []})
    assert codes(nodes_checks.alike(without, three())) == ["error IB-PARITY n3"]
    facts = {name: node_facts for name, node_facts in three().items() if name != "n3"}
    assert list(nodes_checks.alike(without, facts)) == []
    unknown = three(n2=replace(FACTS, infiniband=None))
    assert list(nodes_checks.alike(cluster(), unknown)) == []


def test_adapters_that_are_not_declared_do_not_count() -> None:
    """NCCL will not use them."""
    more = replace(FACTS, infiniband=(PORT, replace(PORT, name="mlx5_1")))
    assert list(nodes_checks.alike(cluster(), three(n2=more))) == []


def test_most_nodes_are_right_and_the_first_of_equals() -> None:
    """The word of the majority is expected; a tie goes to rank order."""
    two_of_three = rules.deviants({"n1": "b", "n2": "a", "n3": "a"})
    assert list(two_of_three) == [("n1", "b", "a, as on n2 and 1 more")]
    assert list(rules.deviants({"n1": "b", "n2": "a"})) == [("n2", "a", "b, as on n1")]
    assert list(rules.deviants({})) == []


def site(**facts: NodeFacts) -> Site:
    """What an earlier provisioning found."""
    return Site(1, "testers", "d", "testers.yaml", "2020-09-15T14:28:53Z", facts, ())


def test_change_since_the_last_provisioning_is_found() -> None:
    """Another wiring, a GPU that fell off the bus."""
    assert list(nodes_checks.since(site(n1=FACTS), {"n1": FACTS, "n2": FACTS})) == []
    wiring = replace(FACTS, topology=Topology({}, "b" * 64))
    (found,) = nodes_checks.since(site(n1=wiring), {"n1": FACTS})
    assert (found.severity, found.code, found.node) == ("warning", "TOPO-CHANGED", "n1")
    assert found.expected == "as on 2020-09-15T14:28:53Z"
    less = replace(FACTS, gpu=replace(V100S, bus_ids=("0:1", None)))
    (found,) = nodes_checks.since(site(n1=FACTS), {"n1": less})
    assert (found.code, found.seen) == ("GPU-GONE", "no GPU at 0:2")


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (FACTS, replace(FACTS, topology=None, gpu=None)),
        (replace(FACTS, topology=None, gpu=None), FACTS),
        (FACTS, replace(FACTS, topology=Topology({}, None))),
        (replace(FACTS, gpu=replace(V100S, bus_ids=("0:1",))), FACTS),
    ],
)
def test_what_was_not_known_has_not_changed(before: NodeFacts, now: NodeFacts) -> None:
    """Nor is a GPU that was added one that is gone."""
    assert list(nodes_checks.since(site(n1=before), {"n1": now})) == []
