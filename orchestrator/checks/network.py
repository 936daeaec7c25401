"""Rules about the network: the interface that is named, and connections between nodes."""

import fnmatch
from collections.abc import Iterator, Mapping, Sequence

from orchestrator.model.cluster import Cluster
from orchestrator.model.findings import found
from orchestrator.model.node import Node
from orchestrator.model.site import Finding, HostFacts
from orchestrator.model.text import ip
from orchestrator.probes.reach import Heard

_VIRTUAL = ("veth*", "docker*", "br-*", "virbr*", "tun*", "tap*", "flannel*", "cni*", "cali*")


def interfaces(cluster: Cluster, node: Node, facts: HostFacts) -> Iterator[Finding]:
    """Findings where ranks may not use the network that the inventory means."""
    if node.interface is None:
        yield from _virtual(cluster, node, facts)
        return
    if node.interface not in facts.interfaces:
        return
    if facts.addresses is None:
        yield found(
            "NET-UNPROVEN",
            node.name,
            f"no program that says which addresses {node.interface} has",
            f"{node.address} on it",
        )
        return
    carried = facts.addresses.get(node.interface, ())
    named_here = any(
        entry.interface is not None for entry in cluster.nodes if entry.name == node.name
    )
    if not _carries(carried, node.address, any_will_do=named_here):
        yield found(
            "NET-IFACE",
            node.name,
            f"{node.interface} has {', '.join(carried) or 'no address'}",
            "an address" if named_here else node.address,
        )


def reachable(
    port: int, listeners: Mapping[str, Heard], calls: Mapping[tuple[str, str], Heard]
) -> Iterator[Finding]:
    """Yield nodes that cannot connect on the rendezvous port.

    Args:
        listeners: result of listening, by node name.
        calls: result of connecting, by the names of caller and listener.
    """
    for node, heard in listeners.items():
        if heard.state == "busy":
            yield found(
                "PORT-BUSY",
                node,
                f"port {port} is in use",
                "a free port",
                f"find its owner with `ss -ltnp 'sport = :{port}'`",
                severity="error",
            )
        elif heard.state != "open":
            yield _unproven(node, f"cannot listen on port {port}: {heard.reason}")
    reached = {listener for (_, listener), heard in calls.items() if heard.state != "blocked"}
    for (caller, listener), heard in calls.items():
        if heard.state == "unproven":
            yield _unproven(caller, f"cannot call {listener}: {heard.reason}")
        elif heard.state != "open":
            yield found(
                "NET-BLOCKED",
                listener if listener not in reached and len(listeners) > 2 else caller,
                f"{caller}->{listener}:{port}: {heard.reason}",
                "a connection",
            )


def _unproven(node: str, seen: str) -> Finding:
    return found("NET-UNPROVEN", node, seen, "a connection between nodes")


def _virtual(cluster: Cluster, node: Node, facts: HostFacts) -> Iterator[Finding]:
    if len(cluster.nodes) == 1 or node.is_here:
        return
    own, means = ip(node.address), ip(facts.own_addresses[0]) if facts.own_addresses else None
    if means is not None and means.is_loopback and not (own and own.is_loopback):
        yield found(
            "NET-NAME",
            node.name,
            f"its own name {facts.hostname} means {means} there, which gloo tells the other ranks",
            f"{node.address}, or an interface named in the inventory",
            severity="warning" if node.gpus else "error",
        )
    held = facts.addresses if facts.addresses is not None else dict.fromkeys(facts.interfaces, ())
    picked = [
        name
        for name, addresses in held.items()
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in _VIRTUAL)
        and not _carries(addresses, node.address, any_will_do=False)
    ]
    if picked:
        yield found(
            "NET-VIRTUAL",
            node.name,
            f"virtual interfaces {', '.join(sorted(picked))}, which NCCL and gloo may pick",
            "an interface named in the inventory",
        )


def _carries(addresses: Sequence[str], address: str, *, any_will_do: bool) -> bool:
    node_ip = ip(address)
    if any_will_do or node_ip is None:  # a name stands for an address that only a resolver knows
        return bool(addresses)
    held = [own for address in addresses if (own := ip(address))]
    return node_ip in held or (node_ip.is_loopback and any(own.is_loopback for own in held))
