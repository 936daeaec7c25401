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
    """Find where ranks may not use the network that the inventory means."""
    if node.interface is None:
        if len(cluster.nodes) > 1 and not node.is_here:
            yield from _check_unnamed(node, facts)
    elif node.interface in facts.interfaces and facts.addresses is None:
        seen = f"no program that says which addresses {node.interface} has"
        yield found("NET-UNPROVEN", node.name, seen, f"{node.address} on it")
    elif node.interface in facts.interfaces and facts.addresses is not None:
        carried = facts.addresses.get(node.interface, ())
        named = {entry.name for entry in cluster.nodes if entry.interface is not None}
        any_will_do = node.name in named  # addresses for ssh and for ranks may differ on purpose
        if not (carried if any_will_do else _carries(carried, node.address)):
            seen = f"{node.interface} has {', '.join(carried) or 'no address'}"
            yield found("NET-IFACE", node.name, seen, "an address" if any_will_do else node.address)


def reachable(
    port: int, listeners: Mapping[str, Heard], calls: Mapping[tuple[str, str], Heard]
) -> Iterator[Finding]:
    """Find nodes that cannot connect on the rendezvous port.

    Args:
        calls: result of connecting, by the names of caller and listener.
    """
    for node, heard in listeners.items():
        if heard.state == "busy":
            fix = f"find its owner with `ss -ltnp 'sport = :{port}'`"
            seen = f"port {port} is in use"
            yield found("PORT-BUSY", node, seen, "a free port", fix, severity="error")
        elif heard.state != "open":
            yield found("NET-UNPROVEN", node, f"cannot listen on port {port}: {heard.reason}")
    reached = {listener for (_, listener), heard in calls.items() if heard.state != "blocked"}
    for (caller, listener), heard in calls.items():
        if heard.state == "unproven":
            yield found("NET-UNPROVEN", caller, f"cannot call {listener}: {heard.reason}")
        elif heard.state != "open":
            is_deaf = listener not in reached and len(listeners) > 2
            seen = f"{caller}->{listener}:{port}: {heard.reason}"
            yield found("NET-BLOCKED", listener if is_deaf else caller, seen)


def _check_unnamed(node: Node, facts: HostFacts) -> Iterator[Finding]:
    """Find what NCCL and gloo may pick between machines where no interface is named."""
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
        for name, addresses in sorted(held.items())
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in _VIRTUAL)
        and not _carries(addresses, node.address)
    ]
    if picked:
        seen = f"virtual interfaces {', '.join(picked)}, which NCCL and gloo may pick"
        yield found("NET-VIRTUAL", node.name, seen)


def _carries(addresses: Sequence[str], address: str) -> bool:
    node_ip = ip(address)
    if node_ip is None:  # a name stands for an address that only a resolver knows
        return bool(addresses)
    held = [own for address in addresses if (own := ip(address))]
    return node_ip in held or (node_ip.is_loopback and any(own.is_loopback for own in held))
