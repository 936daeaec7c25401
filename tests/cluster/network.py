"""The network of a run: a bridge in its outer namespace, a namespace and a cable for each node."""

import re
from pathlib import Path

from tests.cluster import processes
from tests.cluster.place import GATEWAY, Place, address


def lay(place: Place, nodes: tuple[str, ...]) -> None:
    """Make the outer namespace with its bridge, and one namespace for each node.

    Raises:
        TestbedError: the run's name is taken, or the kernel refuses.
    """
    processes.call("ip", "netns", "add", place.netns)
    bridge = f"""
        link set lo up
        link add br0 type bridge
        addr add {GATEWAY}/24 dev br0
        link set br0 up
    """
    processes.call("ip", "-n", place.netns, "-batch", "-", stdin=bridge)
    for node in nodes:
        processes.call("ip", "netns", "add", f"{place.netns}-{node}")
        outer = f"""
            link add {node} type veth peer name ib0 netns {place.netns}-{node}
            link set {node} master br0 up
        """
        processes.call("ip", "-n", place.netns, "-batch", "-", stdin=outer)
        inner = f"""
            link set lo up
            addr add {address(node)}/24 dev ib0
            link set ib0 up
        """
        processes.call("ip", "-n", f"{place.netns}-{node}", "-batch", "-", stdin=inner)


def remove(place: Place) -> None:
    """Remove the run's namespaces, with all that is in them; none is not an error."""
    for space in place.spaces():
        if re.fullmatch(rf"{place.netns}(-vs\d{{3}})?", space):
            processes.call("ip", "netns", "delete", space)


def is_there(place: Place) -> bool:
    """Whether the outer namespace is there."""
    return Path("/run/netns", place.netns).exists()
