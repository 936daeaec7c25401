"""The cluster: the validated inventory, its nodes in rank order, and what cannot hold together."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from ipaddress import IPv4Address, IPv6Address
from typing import Any, Literal, Self

from pydantic import Field

from orchestrator.model.node import SLURM, Container, Node, NodeEntry, Registry, Settings
from orchestrator.model.slurm import Slurm
from orchestrator.model.text import (
    Conflict,
    EnvName,
    EnvValue,
    ImageChoice,
    Name,
    Noun,
    Size,
    ip,
    size_bytes,
)

LOG_BYTES = 1 << 30


class Cluster(Noun):
    """The validated inventory."""

    name: Name
    """The cluster's name in reports and in the state folder."""
    scheduler: Literal["fanout", "slurm"] | None = None
    """The source of nodes: fanout (default), those under ``nodes``; or slurm."""
    slurm: Slurm | None = None
    """Options of jobs, with ``scheduler: slurm``."""
    defaults: Settings = Field(default_factory=Settings)
    """Settings of all nodes; those of a single node override them."""
    container: Container = Field(default_factory=Container)
    """Options of containers."""
    registry: Registry | None = None
    """Registries to use instead of the one in an image's name."""
    max_log_size: Size | None = None
    """The size of its raw log, on its node, at which a task is ended; 1g by default."""
    images: tuple[ImageChoice, ...] = ()
    """Images that provision prepares on the nodes; NAME@TAG takes the base with another tag."""
    env: dict[EnvName, EnvValue] = Field(default_factory=dict)
    """Environment variables of every task on this cluster; those of a playbook count more."""
    nodes: tuple[NodeEntry, ...] = Field(default=(), min_length=1, max_length=4096)
    """The nodes in rank order: a case of two nodes takes the first two that fit it; needed unless
    Slurm gives them."""

    @property
    def log_bytes(self) -> int:
        return LOG_BYTES if self.max_log_size is None else size_bytes(self.max_log_size)

    @property
    def has_hcas(self) -> bool:
        return any(node.hcas for node in self.members)

    @property
    def in_containers(self) -> bool:
        return self.members[0].in_container

    @property
    def from_files(self) -> bool:
        """Return True if containers start from image files, which all nodes see."""
        return self.in_containers and not self.members[0].has_engine

    def confines(self, node: Node) -> bool:
        """Return True if a container's root on the node may not pass over permissions of files."""
        return node.has_engine and not self.container.privileged

    @property
    def shares_files(self) -> bool:
        """Return True if every node sees this machine's files at the same paths."""
        return all(node.shares_files for node in self.members)

    @cached_property
    def members(self) -> tuple[Node, ...]:
        """Return the nodes in the order of the file, which is rank order."""
        common = self.defaults.model_dump(exclude_none=True)
        members = []
        for entry in self.nodes:
            own = entry.model_dump(exclude_none=True)
            gpus = {**common.get("gpus", {}), **own.pop("gpus", {})}
            user = own.get("user", common.get("user", "root"))
            merged = {"folder": f"/var/tmp/dlperf-{user}", **common, **own}
            if gpus:
                merged["gpus"] = gpus
            if self.slurm:
                merged["transport"] = SLURM
            members.append(Node.model_validate(merged))
        return tuple(members)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        copied = super().model_copy(update=update, deep=deep)
        copied.__dict__.pop("members", None)  # pydantic copies what was cached too
        return copied

    def with_nodes(self, nodes: Mapping[str, str]) -> "Cluster":
        """Return the cluster with the nodes that Slurm gave, or stand-ins for them.

        Args:
            nodes: address by name, in rank order.
        """
        entries = tuple(NodeEntry(name=name, address=at) for name, at in nodes.items())
        return self.model_copy(update={"nodes": entries})


IMAGE_FILES = ("pyxis", "apptainer")


def inventory_conflicts(cluster: Cluster) -> Iterator[Conflict]:
    if cluster.scheduler == SLURM and cluster.slurm is None:
        yield Conflict(("scheduler",), "it is slurm; needed `slurm:` with time and nodes")
    elif cluster.scheduler != SLURM and cluster.slurm is not None:
        yield Conflict(("slurm",), "settings for Slurm; needed `scheduler: slurm` beside them")
    elif cluster.slurm is not None:
        yield from _find_needless(cluster)
    elif not cluster.nodes:
        yield Conflict((), "there is no node; needed `nodes:` with at least one")
    else:
        yield from _find_repeated(cluster)
        yield from _find_unreachable(cluster)
        yield from _find_differences(cluster)
        yield from _find_unfit_devices(cluster)


def _find_needless(cluster: Cluster) -> Iterator[Conflict]:
    """Yield settings that nodes given by Slurm, and runtimes for image files, do not use."""
    if cluster.nodes:
        yield Conflict(("nodes",), "Slurm's allocation gives the nodes; needed no `nodes:`")
    for field in ("user", "port", "transport", "identity", "known_hosts"):
        if getattr(cluster.defaults, field) is not None:
            text = f"nodes given by Slurm are reached by srun; needed no `{field}:`"
            yield Conflict(("defaults", field), text)
    runtime = cluster.defaults.runtime
    if runtime in IMAGE_FILES and cluster.container != Container():
        yield Conflict(("container",), f"settings of Docker's; needed none with runtime {runtime}")
    for field in ("push", "user", "secret_file"):
        if runtime in IMAGE_FILES and getattr(cluster.registry, field, None) is not None:
            text = f"{field} is for Docker; needed none, since {runtime} logs in by itself"
            yield Conflict(("registry", field), text)


def _find_repeated(cluster: Cluster) -> Iterator[Conflict]:
    names = [(entry.name.casefold(), entry.name) for entry in cluster.nodes]
    # One address may serve several nodes, by port; IPv6 has many spellings of one address.
    ways = [
        ((node.transport, _ip(node.address) or node.address.casefold(), node.port), node.address)
        for node in cluster.members
    ]
    for field, keys in (("name", names), ("address", ways)):
        first: dict[object, int] = {}
        for index, (key, written) in enumerate(keys):
            if (before := first.setdefault(key, index)) != index:
                seen = f"{written!r} is also the {field} of nodes[{before}]"
                yield Conflict(("nodes", index, field), f"{seen}; needed one {field} for each node")


def _find_unreachable(cluster: Cluster) -> Iterator[Conflict]:
    found = [_ip(node.address) for node in cluster.members]
    here = [ip is not None and (ip.is_loopback or ip.is_unspecified) for ip in found]
    versions = {at: ip.version for at, ip in enumerate(found) if ip and not here[at]}
    first = next(iter(versions.values()), 0)
    if (other := next((at for at, own in versions.items() if own != first), None)) is not None:
        text = f"IPv{versions[other]} beside IPv{first}; needed one address family, or ranks"
        yield Conflict(("nodes", other, "address"), f"{text} cannot meet")
    needed = "an address that the other nodes can reach, or transport: local for all of them"
    for index, node in enumerate(cluster.members):
        if here[index] and not all(here):
            text = f"{node.address} is this machine for every node; needed {needed}"
            yield Conflict(("nodes", index, "address"), text)


def _find_differences(cluster: Cluster) -> Iterator[Conflict]:
    """Yield differences between nodes that a gang of one program cannot have."""
    first, *others = cluster.members
    if first.runtime in IMAGE_FILES:
        yield Conflict(
            ("nodes", 0),
            f"node {first.name} has runtime {first.runtime}, which runs in steps of Slurm's;"
            " needed `scheduler: slurm`, docker or process",
        )
    for index, node in enumerate(others, 1):
        # Plain processes run from a folder that must be at the same path on every node.
        for field in ("runtime", *(() if first.in_container else ("transport",))):
            if (own := getattr(node, field)) != (other := getattr(first, field)):
                text = f"node {node.name} has {field} {own}, node {first.name} {other}"
                yield Conflict(("nodes", index), f"{text}; needed one {field} on all nodes")


def _find_unfit_devices(cluster: Cluster) -> Iterator[Conflict]:
    for index, (entry, node) in enumerate(zip(cluster.nodes, cluster.members, strict=True)):
        if node.roce and not any(hca.link_layer == "Ethernet" for hca in node.hcas):
            yield Conflict(
                ("nodes", index) if entry.roce is None else ("nodes", index, "roce"),
                f"roce for node {entry.name}, which has no adapter with link_layer: Ethernet;"
                " needed one among its hcas",
            )
        count = node.gpus.count if node.gpus else None
        if count and (wrong := [gpu for gpu in node.usable_gpus if gpu >= count]):
            path = ("nodes", index) if entry.gpus is None else ("nodes", index, "gpus")
            yield Conflict(path, f"gpus.use has {wrong}; needed indices from 0 to {count - 1}")


def _ip(address: str) -> IPv4Address | IPv6Address | None:
    return ip("127.0.0.1" if address.casefold() == "localhost" else address)
