"""Addresses of nodes as numbers: on a node itself its name may mean loopback, as on Debian."""

import contextlib
import socket
from collections.abc import Sequence
from pathlib import Path

from orchestrator.fleet import ask_all
from orchestrator.model.cluster import Cluster
from orchestrator.model.node import Node
from orchestrator.model.plan import Seat
from orchestrator.model.text import ip
from orchestrator.schedulers import slurm_queue


def seats(cluster: Cluster, state: Path) -> tuple[Seat, ...]:
    """Return the nodes of a cluster as seats, with the folder that sweeps have there.

    No connection is opened. Outside of a job the nodes of Slurm are stand-ins without addresses.
    """
    here, slurm = str((state / "sweeps").resolve()), cluster.slurm is not None
    at = {} if slurm and not slurm_queue.job_id() else numbers(cluster.members)
    return tuple(
        node.seat(here if slurm or node.is_here else node.folder, at.get(node.name, ""))
        for node in cluster.members
    )


def numbers(nodes: Sequence[Node]) -> dict[str, str]:
    """Return addresses for command lines, by node name; a name that nobody here knows stays.

    A node whose name means loopback here is this machine: then its address towards the others.
    """
    found = {node.name: node.address for node in nodes}
    named = [node.name for node in nodes if not node.is_here and ip(node.address) is None]
    found |= {
        answer.node: answer.checked()
        for answer in ask_all(named, lambda name: look_up(found[name]))
    }
    others = [address for address in found.values() if ip(address) and not _is_loopback(address)]
    here = [node for node in nodes if node.name in named and _is_loopback(found[node.name])]
    own = _towards(*others[:1]) if here else ""
    return found | {node.name: own or node.address for node in here}


def look_up(name: str) -> str:
    """Return the first address of a host; IPv4 before IPv6, since not every launcher has that."""
    try:
        known = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return name
    addresses = [str(entry[4][0]) for entry in known]
    return min(addresses, key=lambda address: (_is_loopback(address), ":" in address))


def _is_loopback(address: str) -> bool:
    found = ip(address)
    return found is not None and found.is_loopback


def _towards(other: str = "192.0.2.1") -> str:
    """Return this machine's address as another sees it, by the kernel's routes: nothing is sent.

    Empty where no route leads there. The default is an address that nobody has (RFC 5737).
    """
    family = socket.AF_INET6 if ":" in other else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as asked, contextlib.suppress(OSError):
        asked.connect((other, 9))
        return str(asked.getsockname()[0])
    return ""
