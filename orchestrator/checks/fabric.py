"""Rules about RDMA: adapters, ports, drivers, addresses on Ethernet, and distance to the GPUs."""

from collections.abc import Iterator

from orchestrator import nodeset
from orchestrator.model.facts import Gid, InfinibandFacts, Silent, VerbsFacts
from orchestrator.model.findings import found
from orchestrator.model.node import Hca, Node
from orchestrator.model.site import Finding, HcaPort, Severity, Topology

_FAR = frozenset({"SYS", "SOC"})  # SOC is what drivers before 384 call SYS


def adapters(node: Node, facts: InfinibandFacts | Silent | None) -> Iterator[Finding]:
    """Find what is wrong with the adapters that the inventory declares."""
    if facts is None:
        return
    if isinstance(facts, Silent):
        code = {"ABSENT": "IB-TOOLS", "HUNG": "IB-QUERY-HUNG"}.get(facts.code, "IB-PORT")
        severity = _severity(node) if code == "IB-TOOLS" else "error"
        seen = facts.message or "no answer in 10 s"
        yield found(code, node.name, seen, "an answer of ibstat", severity=severity)
        return
    for problem in facts.problems:
        needed, fix = "an answer that can be read", "see `dlperf-orch inspect ibstat`"
        yield found(problem.code, node.name, problem.message, needed, fix, severity="warning")
    there: dict[str, list[HcaPort]] = {}
    for port in facts.ports:
        there.setdefault(port.name, []).append(port)
    if lacking := [hca.name for hca in node.hcas if hca.name not in there]:
        needed = f"{nodeset.fold(lacking)} among them"
        yield found("IB-PORT", node.name, f"adapters {', '.join(there)}", needed)
    for declared in node.hcas:
        if declared.name in there:
            yield from _ports(node, declared, there[declared.name])


def openable(node: Node, facts: VerbsFacts | Silent | None) -> Iterator[Finding]:
    """Find declared adapters that no program opens; warn where an image may have the driver."""
    if isinstance(facts, Silent):
        if facts.code != "ABSENT" or not node.in_container:
            seen = facts.message or f"ibv_devinfo: {facts.code}"
            needed = "ibv_devinfo lists the adapters"
            yield found("IB-NO-DRIVER", node.name, seen, needed, severity=_severity(node))
    elif facts is not None:
        lacking = [hca.name for hca in node.hcas if hca.name not in facts.hcas]
        if lacking:
            why = f" ({facts.warnings[0]})" if facts.warnings else ""
            seen = f"ibv_devinfo lists {', '.join(facts.hcas) or 'none'}{why}"
            needed = f"{', '.join(lacking)} among them"
            yield found("IB-NO-DRIVER", node.name, seen, needed, severity=_severity(node))


def distances(node: Node, facts: Topology | Silent | None) -> Iterator[Finding]:
    """Find adapters that are far from every GPU in use, and problems of the topology table."""
    if isinstance(facts, Silent):
        yield found("TOPO-UNREADABLE", node.name, facts.message or facts.code)
    elif facts is not None:
        gpus = [f"GPU{index}" for index in node.usable_gpus] or list(facts.gpus)
        for hca in node.hcas:
            links = [facts.links.get(gpu, {}).get(hca.name) for gpu in gpus]
            if links and all(link in _FAR for link in links):
                seen = f"{hca.name} is {links[0]} from every GPU in use"
                yield found("HCA-FAR", node.name, seen)
        for problem in facts.problems:
            yield found("TOPO-UNREADABLE", node.name, f"{problem.code}: {problem.message}")


def gids(node: Node, facts: tuple[Gid, ...] | Silent | None) -> Iterator[Finding]:
    """Find adapters on Ethernet without a RoCE v2 address at the inventory's index, or at any."""
    if isinstance(facts, Silent):
        seen = facts.message or f"no list of GIDs ({facts.code})"
        yield found("ROCE-GID", node.name, seen, "a list of GIDs")
        return
    index = node.roce.gid_index if node.roce else None
    where = "" if index is None else f" at gid_index {index}"
    for hca in node.hcas:
        own = [gid for gid in facts or () if gid.hca == hca.name]
        # A link-local address reaches the adapter's own subnet at most; NCCL times out on it
        # (github NVIDIA/nccl issue #769).
        is_routable = any(
            gid.kind == "RoCE v2" and not gid.address.startswith("fe80:")
            for gid in own
            if index in (None, gid.index)
        )
        if facts is not None and hca.link_layer == "Ethernet" and not is_routable:
            there = ", ".join(f"{gid.index} {gid.kind} {gid.address}" for gid in own)
            seen = f"{hca.name} has no routable GID of RoCE v2{where}; there are {there or 'none'}"
            yield found("ROCE-GID", node.name, seen)


def _severity(node: Node) -> Severity:
    return "warning" if node.in_container else "error"


def _ports(node: Node, declared: Hca, ports: list[HcaPort]) -> Iterator[Finding]:
    active = [port for port in ports if port.state == "Active"]
    if not active:
        states = ", ".join(f"{port.name}/{port.port} State={port.state}" for port in ports)
        yield found("IB-PORT", node.name, states, f"{declared.name} with an active port")
    for port in active:
        at = f"{port.name}/{port.port}"
        # An inventory has whole numbers: 2 stands for the 2.5 of one lane of SDR.
        if port.rate_gbps is None or int(port.rate_gbps) != declared.rate_gbps:
            rate = "an unknown rate" if port.rate_gbps is None else f"{port.rate_gbps} Gb/s"
            needed = f"{declared.rate_gbps} Gb/s"
            yield found("IB-RATE", node.name, f"{at} runs at {rate}", needed)
        layer = "InfiniBand" if port.link_layer == "IB" else port.link_layer
        if layer != declared.link_layer:
            yield found("IB-LAYER", node.name, f"{at} speaks {layer}", declared.link_layer)
