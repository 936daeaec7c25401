"""Rules about RDMA: adapters, ports, drivers, addresses on Ethernet, and distance to the GPUs."""

from collections.abc import Iterator

from orchestrator import nodeset
from orchestrator.model.facts import Gid, InfinibandFacts, Silent, VerbsFacts
from orchestrator.model.findings import found
from orchestrator.model.node import Hca, Node
from orchestrator.model.site import Finding, HcaPort, Severity, Topology

_FAR = frozenset({"SYS", "SOC"})  # SOC is what drivers before 384 call SYS
_TOOLS = "install infiniband-diags and ibverbs-utils, or OFED's user space"
_ROUTABLE = "RoCE v2"


def adapters(node: Node, facts: InfinibandFacts | Silent | None) -> Iterator[Finding]:
    """Findings about the adapters that the inventory declares."""
    if isinstance(facts, Silent):
        yield _silent(node, facts)
    elif facts is not None:
        for problem in facts.problems:
            yield found(
                problem.code,
                node.name,
                problem.message,
                "an answer that can be read",
                "see `dlperf-orch inspect ibstat`",
                severity="warning",
            )
        there: dict[str, list[HcaPort]] = {}
        for port in facts.ports:
            there.setdefault(port.name, []).append(port)
        if lacking := [hca.name for hca in node.hcas if hca.name not in there]:
            yield found(
                "IB-PORT",
                node.name,
                f"adapters {', '.join(there)}",
                f"{nodeset.fold(lacking)} among them",
                "name under hcas: those that are there; look for one that is missing in dmesg",
            )
        for declared in node.hcas:
            if declared.name in there:
                yield from _adapter(node, declared, there[declared.name])


def openable(node: Node, facts: VerbsFacts | Silent | None) -> Iterator[Finding]:
    """Declared adapters that no program can open; a warning where an image may have the driver."""
    if facts is None:
        return
    severity = _severity(node)
    if isinstance(facts, Silent):
        if facts.code == "ABSENT" and node.in_container:
            return
        yield found(
            "IB-NO-DRIVER",
            node.name,
            facts.message or f"ibv_devinfo: {facts.code}",
            "ibv_devinfo lists the adapters",
            _TOOLS,
            severity=severity,
        )
        return
    lacking = [hca.name for hca in node.hcas if hca.name not in facts.hcas]
    if lacking:
        there = ", ".join(facts.hcas) or "none"
        why = f" ({facts.warnings[0]})" if facts.warnings else ""
        yield found(
            "IB-NO-DRIVER",
            node.name,
            f"ibv_devinfo lists {there}{why}",
            f"{', '.join(lacking)} among them",
            severity=severity,
        )


def distances(node: Node, facts: Topology | Silent | None) -> Iterator[Finding]:
    """Adapters that are far from every GPU in use; problems of the topology table."""
    if facts is None:
        return
    if isinstance(facts, Silent):
        problems = [facts.message or facts.code]
    else:
        problems = [f"{problem.code}: {problem.message}" for problem in facts.problems]
        yield from _far(node, facts)
    for problem in problems:
        yield found("TOPO-UNREADABLE", node.name, problem, "a whole table of nvidia-smi topo -m")


def _severity(node: Node) -> Severity:
    return "warning" if node.in_container else "error"


def _silent(node: Node, silent: Silent) -> Finding:
    if silent.code == "ABSENT":
        seen, expected = silent.message, "a program ibstat"
        return found("IB-TOOLS", node.name, seen, expected, _TOOLS, severity=_severity(node))
    if silent.code == "HUNG":
        seen, fix = silent.message or "no answer in 10 s", "look for the adapter's driver in dmesg"
        return found("IB-QUERY-HUNG", node.name, seen, "an answer of ibstat", fix)
    names = ", ".join(hca.name for hca in node.hcas)
    return found("IB-PORT", node.name, silent.message, f"{names} active", "correct the inventory")


def _adapter(node: Node, declared: Hca, ports: list[HcaPort]) -> Iterator[Finding]:
    active = [port for port in ports if port.state == "Active"]
    if not active:
        yield found(
            "IB-PORT",
            node.name,
            ", ".join(f"{port.name}/{port.port} State={port.state}" for port in ports),
            f"{declared.name} with an active port",
            "check cable, switch and subnet manager (`ibstat`, `sminfo`)",
        )
    for port in active:
        yield from _port(node, declared, port)


def _port(node: Node, declared: Hca, port: HcaPort) -> Iterator[Finding]:
    at = f"{declared.name}/{port.port}"
    # An inventory has whole numbers: 2 stands for the 2.5 of one lane of SDR.
    if port.rate_gbps is None or int(port.rate_gbps) != declared.rate_gbps:
        yield found(
            "IB-RATE",
            node.name,
            f"{at} runs at {port.rate_gbps} Gb/s",
            f"{declared.rate_gbps} Gb/s",
        )
    layer = "InfiniBand" if port.link_layer == "IB" else port.link_layer
    if layer != declared.link_layer:
        yield found("IB-LAYER", node.name, f"{at} speaks {layer}", declared.link_layer)


def _far(node: Node, facts: Topology) -> Iterator[Finding]:
    gpus = [f"GPU{index}" for index in node.usable_gpus] or list(facts.gpus)
    for hca in node.hcas:
        words = [facts.links.get(gpu, {}).get(hca.name) for gpu in gpus]
        if words and all(word in _FAR for word in words):
            yield found(
                "HCA-FAR",
                node.name,
                f"{hca.name} is {words[0]} from every GPU in use",
                "a nearer one for at least one of them",
            )


def gids(node: Node, facts: tuple[Gid, ...] | Silent | None) -> Iterator[Finding]:
    """Adapters on Ethernet without a RoCE v2 address, or without one at the inventory's index."""
    if facts is None:
        return
    if isinstance(facts, Silent):
        yield _no_gid(node, facts.message or f"no list of GIDs ({facts.code})", "a list of GIDs")
        return
    for hca in node.hcas:
        if hca.link_layer == "Ethernet":
            yield from _addresses(node, hca, [gid for gid in facts if gid.hca == hca.name])


def _addresses(node: Node, hca: Hca, own: list[Gid]) -> Iterator[Finding]:
    index = node.roce.gid_index if node.roce else None
    at = [gid for gid in own if gid.index == index]
    wanted = at if index is not None else own
    if any(gid.kind == _ROUTABLE and not _is_link_local(gid) for gid in wanted):
        return
    if index is None:
        seen = f"{hca.name} has no routable GID of {_ROUTABLE} among {len(own)}"
        yield _no_gid(node, seen, "one, which an address of its interface makes")
        return
    there = ", ".join(f"{gid.index} {gid.kind} {gid.address}" for gid in own) or "none at all"
    kinds = ["link-local" if gid.kind == _ROUTABLE else gid.kind for gid in at]
    what = f"is {kinds[0]}" if kinds else "is empty"
    seen = f"{hca.name}: GID {index} {what}; there are {there}"
    yield _no_gid(node, seen, f"{_ROUTABLE} at gid_index {index}")


def _is_link_local(gid: Gid) -> bool:
    """Such an address reaches the adapter's own subnet at most; NCCL times out on it.

    Source: github NVIDIA/nccl issue #769.
    """
    return gid.address.startswith("fe80:")


def _no_gid(node: Node, seen: str, expected: str) -> Finding:
    fix = "give the adapter's interface an address, or correct `roce: {gid_index: ...}`"
    return found("ROCE-GID", node.name, seen, expected, fix)
