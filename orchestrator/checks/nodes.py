"""Rules over all nodes: what must be the same on all, and the same as before."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from orchestrator import words
from orchestrator.model.cluster import Cluster
from orchestrator.model.findings import found
from orchestrator.model.site import Finding, HostFacts, NodeFacts, Severity, Site

MOST_SKEW_S, WORST_SKEW_S = 1.0, 30.0
LEAST_SHARE = 0.95  # two machines of one kind report memory that differs by less


@dataclass(frozen=True, slots=True)
class Odd:
    """A node whose value differs from most nodes' value."""

    node: str
    seen: str
    expected: str


def deviants(reported: Mapping[str, str]) -> Iterator[Odd]:
    """Nodes whose value is not the most frequent one; of a tie, the first node's value counts.

    Args:
        reported: values by node name, in rank order.
    """
    counted = Counter(reported.values())
    most = max(counted, key=counted.__getitem__, default="")
    holders = [node for node, word in reported.items() if word == most]
    others = f" and {len(holders) - 1} more" if len(holders) > 1 else ""
    for node, word in reported.items():
        if word != most:
            yield Odd(node, word, f"{most}, as on {holders[0]}{others}")


def together(
    cluster: Cluster, facts: Mapping[str, HostFacts], answered_s: Mapping[str, float]
) -> Iterator[Finding]:
    """Nodes whose clocks differ from this machine's.

    Args:
        facts: by node name; nodes that gave none are left out.
        answered_s: by node name, this machine's clock when the node answered.
    """
    for node in cluster.members:
        if node.name not in facts:
            continue
        skew = facts[node.name].clock_s - answered_s[node.name]
        if abs(skew) > MOST_SKEW_S:
            yield found(
                "CLOCK-SKEW",
                node.name,
                f"its clock is {skew:+.1f} s from this machine's",
                f"within {MOST_SKEW_S:g} s",
                severity="error" if abs(skew) > WORST_SKEW_S else "warning",
            )


def alike(cluster: Cluster, nodes: Mapping[str, NodeFacts]) -> Iterator[Finding]:
    """Differences in GPUs, machines, wiring and adapters between nodes.

    Args:
        nodes: those that answered, by name, in rank order.
    """
    yield from _gpus(cluster, nodes)
    yield from _machines(nodes)
    yield from _wiring(nodes)
    yield from _adapters(cluster, nodes)


def since(before: Site, now: Mapping[str, NodeFacts]) -> Iterator[Finding]:
    """Changes of wiring, and lost GPUs, since the provisioning ``before``."""
    for name, facts in now.items():
        old = before.nodes.get(name)
        if old is None:
            continue
        wiring = {_wiring_of(old), _wiring_of(facts)}
        if None not in wiring and len(wiring) > 1:
            yield found(
                "TOPO-CHANGED",
                name,
                "GPUs and adapters are connected in another way",
                f"as on {before.observed_at}",
            )
        gone = set(_bus_ids(old)) - set(_bus_ids(facts)) if facts.gpu else set()
        for bus_id in sorted(gone):
            yield found("GPU-GONE", name, f"no GPU at {bus_id}", f"one, as on {before.observed_at}")


def _wiring_of(facts: NodeFacts) -> str | None:
    return facts.topology.digest if facts.topology else None


def _bus_ids(facts: NodeFacts) -> list[str]:
    return [bus_id for bus_id in (facts.gpu.bus_ids if facts.gpu else ()) if bus_id]


def _gpus(cluster: Cluster, nodes: Mapping[str, NodeFacts]) -> Iterator[Finding]:
    members = {node.name: node for node in cluster.members}
    gpus = {name: facts.gpu for name, facts in nodes.items() if facts.gpu}
    drivers = {name: f"driver {gpu.driver}" for name, gpu in gpus.items()}
    yield from _differing("error", "HETEROGENEOUS", drivers, "install one driver everywhere")
    models = {name: _counted(gpu.models) for name, gpu in gpus.items()}
    for odd in deviants(models):
        # An inventory that names this node's model wants it to be another.
        declared = members[odd.node].gpus
        meant = declared is not None and declared.model is not None
        yield found(
            "HETEROGENEOUS",
            odd.node,
            odd.seen,
            odd.expected,
            "measure like with like, or declare each node's model in the inventory",
            severity="warning" if meant else "error",
        )
    limits = {name: _watts(gpu.power_limits_w) for name, gpu in gpus.items()}
    same_models = len(set(models.values())) < 2
    fix = "set one power limit everywhere (nvidia-smi -pl)"
    yield from _differing("warning", "GPU-POWER", limits if same_models else {}, fix)
    bios = {name: f"VBIOS {_once(gpu.vbios)}" for name, gpu in gpus.items() if any(gpu.vbios)}
    fix = "bring all GPUs to one VBIOS, or mention it with the result"
    yield from _differing("warning", "GPU-VBIOS", bios if same_models else {}, fix)


def _counted(models: tuple[str, ...]) -> str:
    return ", ".join(f"{count} x {model}" for model, count in Counter(models).items()) or "no GPU"


def _once(values: tuple[str | None, ...]) -> str:
    return ", ".join(sorted({value for value in values if value}))


def _watts(limits: tuple[float | None, ...]) -> str:
    return f"power limits {', '.join(str(limit) for limit in limits) or 'unknown'} W"


def _machines(nodes: Mapping[str, NodeFacts]) -> Iterator[Finding]:
    facts_alike = {
        "system": {name: facts.host.system for name, facts in nodes.items()},
        "kernel": {name: facts.host.kernel for name, facts in nodes.items()},
        "CPU": {name: f"{f.host.cpus} x {f.host.cpu_model}" for name, f in nodes.items()},
        "Docker": {name: f.docker.server_version for name, f in nodes.items() if f.docker},
    }
    for fact, by_node in facts_alike.items():
        named = {name: f"{fact} {word}" for name, word in by_node.items()}
        fix = "bring the nodes to one state, or mention it with the result"
        yield from _differing("warning", "HETEROGENEOUS", named, fix)
    most_mib = max((facts.host.memory_mib for facts in nodes.values()), default=0)
    for name, facts in nodes.items():
        if facts.host.memory_mib < most_mib * LEAST_SHARE:
            yield found(
                "HETEROGENEOUS",
                name,
                f"{words.size(facts.host.memory_mib << 20)} of memory",
                f"{words.size(most_mib << 20)}, as on the node with most",
                "look for a memory module that has failed",
                severity="warning",
            )


def _wiring(nodes: Mapping[str, NodeFacts]) -> Iterator[Finding]:
    wirings = {name: _wiring_of(facts) for name, facts in nodes.items()}
    digests = {name: f"wiring {digest[:16]}" for name, digest in wirings.items() if digest}
    fix = "compare `nvidia-smi topo -m` of both; a link may be down or a card in another slot"
    yield from _differing("warning", "TOPO-DIFF", digests, fix)


def _adapters(cluster: Cluster, nodes: Mapping[str, NodeFacts]) -> Iterator[Finding]:
    active: dict[str, str] = {}
    firmware: dict[str, str] = {}
    for node in cluster.members:
        if node.name not in nodes or (node.hcas and nodes[node.name].infiniband is None):
            continue  # unknown is not down: a node without ibstat says nothing of its ports
        declared = {hca.name for hca in node.hcas}
        ports = [p for p in nodes[node.name].infiniband or () if p.name in declared]
        up = sorted({port.name for port in ports if port.state == "Active"})
        active[node.name] = f"active adapters: {', '.join(up) or 'none'}"
        if ports:
            named = sorted({f"{port.name} {port.type} {port.firmware}" for port in ports})
            firmware[node.name] = f"firmware of {', '.join(named)}"
    fix = "repair or leave out the node: a gang hangs if only some nodes have InfiniBand"
    yield from _differing("error", "IB-PARITY", active, fix)
    fix = "bring all adapters to one firmware"
    yield from _differing("warning", "IB-FIRMWARE", firmware, fix)


def _differing(
    severity: Severity, code: str, reported: Mapping[str, str], fix: str
) -> Iterator[Finding]:
    for odd in deviants(reported):
        yield found(code, odd.node, odd.seen, odd.expected, fix, severity=severity)
