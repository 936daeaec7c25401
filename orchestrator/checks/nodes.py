"""Rules over all nodes: what must be the same on all, and the same as before."""

from collections import Counter
from collections.abc import Iterator, Mapping

from orchestrator import words
from orchestrator.model.cluster import Cluster
from orchestrator.model.findings import found
from orchestrator.model.site import Finding, NodeFacts, Severity, Site

MOST_SKEW_S, WORST_SKEW_S = 1.0, 30.0
LEAST_SHARE = 0.95  # two machines of one kind report memory that differs by less


def deviants(reported: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield node, value and expected value where it is not the most frequent one.

    Of a tie, the first node's value is expected: values are by node name in rank order.
    """
    counted = Counter(reported.values())
    most = max(counted, key=counted.__getitem__, default="")
    holders = [node for node, word in reported.items() if word == most]
    others = f" and {len(holders) - 1} more" if len(holders) > 1 else ""
    for node, word in reported.items():
        if word != most:
            yield node, word, f"{most}, as on {holders[0]}{others}"


def together(nodes: Mapping[str, NodeFacts], answered_s: Mapping[str, float]) -> Iterator[Finding]:
    """Find nodes whose clocks differ from this machine's when they answered."""
    for name, facts in nodes.items():
        skew = facts.host.clock_s - answered_s[name]
        if abs(skew) > MOST_SKEW_S:
            seen = f"its clock is {skew:+.1f} s from this machine's"
            severity: Severity = "error" if abs(skew) > WORST_SKEW_S else "warning"
            yield found("CLOCK-SKEW", name, seen, f"within {MOST_SKEW_S:g} s", severity=severity)


def alike(cluster: Cluster, nodes: Mapping[str, NodeFacts]) -> Iterator[Finding]:
    """Find differences in GPUs, machines, wiring and adapters between nodes in rank order."""
    yield from _gpus(cluster, nodes)
    for fact, by_node in {
        "system": {name: facts.host.system for name, facts in nodes.items()},
        "kernel": {name: facts.host.kernel for name, facts in nodes.items()},
        "CPU": {name: f"{f.host.cpus} x {f.host.cpu_model}" for name, f in nodes.items()},
        "Docker": {name: f.docker.server_version for name, f in nodes.items() if f.docker},
    }.items():
        named = {name: f"{fact} {word}" for name, word in by_node.items()}
        yield from _differing("HETEROGENEOUS", named, "warning")
    most_mib = max((facts.host.memory_mib for facts in nodes.values()), default=0)
    most = f"{words.size(most_mib << 20)}, as on the node with most"
    for name, facts in nodes.items():
        if facts.host.memory_mib < most_mib * LEAST_SHARE:
            seen = f"{words.size(facts.host.memory_mib << 20)} of memory"
            yield found("HETEROGENEOUS", name, seen, most, severity="warning")
    wirings = {name: _wiring(facts) for name, facts in nodes.items()}
    known = {name: f"wiring {digest[:16]}" for name, digest in wirings.items() if digest}
    yield from _differing("TOPO-DIFF", known)
    yield from _adapters(cluster, nodes)


def since(before: Site, now: Mapping[str, NodeFacts]) -> Iterator[Finding]:
    """Find changes of wiring, and lost GPUs, since the provisioning ``before``."""
    for name, new in now.items():
        if (old := before.nodes.get(name)) is None:
            continue
        wiring = {_wiring(old), _wiring(new)}
        if None not in wiring and len(wiring) > 1:
            seen = "GPUs and adapters are connected in another way"
            yield found("TOPO-CHANGED", name, seen, f"as on {before.observed_at}")
        if old.gpu and new.gpu:
            for bus_id in sorted({*filter(None, old.gpu.bus_ids)} - {*new.gpu.bus_ids}):
                seen, needed = f"no GPU at {bus_id}", f"one, as on {before.observed_at}"
                yield found("GPU-GONE", name, seen, needed)


def _wiring(facts: NodeFacts) -> str | None:
    return facts.topology.digest if facts.topology else None


def _gpus(cluster: Cluster, nodes: Mapping[str, NodeFacts]) -> Iterator[Finding]:
    gpus = {name: facts.gpu for name, facts in nodes.items() if facts.gpu}
    drivers = {name: f"driver {gpu.driver}" for name, gpu in gpus.items()}
    yield from _differing("HETEROGENEOUS", drivers, "error")
    models = {
        name: ", ".join(f"{n} x {model}" for model, n in Counter(gpu.models).items()) or "no GPU"
        for name, gpu in gpus.items()
    }
    # An inventory that names a node's model wants it to be another.
    wanted = {node.name for node in cluster.members if node.gpus and node.gpus.model is not None}
    for name, seen, expected in deviants(models):
        severity: Severity = "warning" if name in wanted else "error"
        yield found("HETEROGENEOUS", name, seen, expected, severity=severity)
    if len({*models.values()}) < 2:
        limits = {
            name: f"power limits {', '.join(map(str, gpu.power_limits_w)) or 'unknown'} W"
            for name, gpu in gpus.items()
        }
        yield from _differing("GPU-POWER", limits)
        bios = {name: sorted({*filter(None, gpu.vbios)}) for name, gpu in gpus.items()}
        known = {name: f"VBIOS {', '.join(words)}" for name, words in bios.items() if words}
        yield from _differing("GPU-VBIOS", known)


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
    yield from _differing("IB-PARITY", active)
    yield from _differing("IB-FIRMWARE", firmware)


def _differing(
    code: str, reported: Mapping[str, str], severity: Severity | None = None
) -> Iterator[Finding]:
    for node, seen, expected in deviants(reported):
        yield found(code, node, seen, expected, severity=severity)
