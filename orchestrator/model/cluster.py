"""The cluster: the validated inventory, its nodes in rank order, and what cannot hold together."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from ipaddress import IPv4Address, IPv6Address
from typing import Any, Literal, Self

from pydantic import Field

from orchestrator.model.node import MOST_GPUS, SLURM, Container, Node, NodeEntry, Registry, Settings
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
    repeated,
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
        """Return the size of its raw log at which a task is ended."""
        return LOG_BYTES if self.max_log_size is None else size_bytes(self.max_log_size)

    @property
    def in_containers(self) -> bool:
        """Return True if all nodes run tasks in containers."""
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
        """Return a copy that computes its own members."""
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
    """Yield everything about an inventory that cannot hold together."""
    if cluster.scheduler == SLURM and cluster.slurm is None:
        yield Conflict(("scheduler",), "it is slurm; needed `slurm:` with time and nodes")
        return
    if cluster.scheduler != SLURM and cluster.slurm is not None:
        yield Conflict(("slurm",), "settings for Slurm; needed `scheduler: slurm` beside them")
        return
    if cluster.container.privileged and not cluster.container.reason:
        yield Conflict(
            ("container", "privileged"),
            "privileged containers without a reason; needed `reason:` beside it",
        )
    if cluster.slurm is not None:
        yield from cluster.slurm.conflicts()
        yield from _with_slurm(cluster)
    elif not cluster.nodes:
        yield Conflict((), "there is no node; needed `nodes:` with at least one")
    else:
        yield from _find_repeated(cluster)
        yield from _addresses(cluster)
        yield from _ways(cluster)
        yield from _gpus_and_roce(cluster)


def _with_slurm(cluster: Cluster) -> Iterator[Conflict]:
    """Yield settings that nodes given by Slurm, and runtimes for image files, do not use."""
    if cluster.nodes:
        yield Conflict(("nodes",), "Slurm's allocation gives the nodes; needed no `nodes:`")
    for field in ("user", "port", "transport", "identity", "known_hosts"):
        if getattr(cluster.defaults, field) is not None:
            yield Conflict(
                ("defaults", field),
                f"{field} is how nodes are reached without Slurm; needed none, since srun"
                " reaches them",
            )
    if cluster.defaults.runtime not in IMAGE_FILES:
        return
    if cluster.container != Container():
        yield Conflict(
            ("container",),
            f"settings of Docker's; needed none with runtime {cluster.defaults.runtime}",
        )
    for field in ("push", "user", "secret_file"):
        if cluster.registry is not None and getattr(cluster.registry, field) is not None:
            yield Conflict(
                ("registry", field),
                f"{field} is for Docker; needed none, since {cluster.defaults.runtime} logs in"
                " with its own credentials and carries nothing",
            )


def _find_repeated(cluster: Cluster) -> Iterator[Conflict]:
    for field, alike in (
        ("name", [entry.name for entry in cluster.nodes]),
        ("address", [_way(node) for node in cluster.members]),
    ):
        for index, before in repeated(alike).items():
            yield Conflict(
                ("nodes", index, field),
                f"{getattr(cluster.nodes[index], field)!r} is also the {field} of"
                f" nodes[{before}]; needed one {field} for each node",
            )


def _addresses(cluster: Cluster) -> Iterator[Conflict]:
    versions: dict[int, int] = {}
    found = [_ip(node.address) for node in cluster.members]
    here = [ip is not None and (ip.is_loopback or ip.is_unspecified) for ip in found]
    for index, (node, address) in enumerate(zip(cluster.members, found, strict=True)):
        if address is None:
            continue
        first = versions.setdefault(address.version, index)
        if len(versions) > 1 and first == index:
            yield Conflict(
                ("nodes", index, "address"),
                f"IPv{address.version} beside IPv{10 - address.version};"
                " needed one address family, or ranks cannot meet",
            )
        if here[index] and not all(here):
            yield Conflict(
                ("nodes", index, "address"),
                f"{node.address} is this machine for every node;"
                " needed an address that the other nodes can reach,"
                " or transport: local for all of them",
            )


def _ways(cluster: Cluster) -> Iterator[Conflict]:
    """Yield differences between nodes that a gang of one program cannot have."""
    first, *others = members = cluster.members
    if first.runtime in IMAGE_FILES:
        yield Conflict(
            ("nodes", 0),
            f"node {first.name} has runtime {first.runtime}, which runs in steps of Slurm's;"
            " needed `scheduler: slurm`, docker or process",
        )
    for index, node in enumerate(others, 1):
        if node.runtime != first.runtime:
            yield Conflict(
                ("nodes", index),
                f"node {node.name} has runtime {node.runtime}, node {first.name}"
                f" {first.runtime}; needed one runtime on all nodes",
            )
        elif node.runtime == "process" and node.transport != first.transport:
            yield Conflict(
                ("nodes", index),
                f"node {node.name} has transport {node.transport}, node {first.name}"
                f" {first.transport}; needed one way to all nodes that run plain processes",
            )
    for index, node in enumerate(members):
        if node.folder.startswith("~"):
            yield Conflict(
                ("nodes", index),
                f"node {node.name} has folder {node.folder}; needed an absolute path",
            )


def _gpus_and_roce(cluster: Cluster) -> Iterator[Conflict]:
    without = [
        index
        for index, node in enumerate(cluster.members)
        if node.roce and not any(hca.link_layer == "Ethernet" for hca in node.hcas)
    ]
    for index in without[:1]:
        entry = cluster.nodes[index]
        yield Conflict(
            ("defaults", "roce") if entry.roce is None else ("nodes", index, "roce"),
            f"roce for node {entry.name}, which has no adapter with link_layer: Ethernet;"
            " needed one among its hcas",
        )
    for index, node in enumerate(cluster.members):
        if node.gpus is None or node.gpus.use is None:
            continue
        use, count = node.gpus.use, node.gpus.count or MOST_GPUS
        path = ("nodes", index) if cluster.nodes[index].gpus is None else ("nodes", index, "gpus")
        if len(set(use)) != len(use) or not use:
            yield Conflict(path, f"gpus.use is {list(use)}; needed at least one index, each once")
        wrong = [gpu for gpu in use if not 0 <= gpu < count]
        if wrong:
            yield Conflict(path, f"gpus.use has {wrong}; needed indices from 0 to {count - 1}")


def _ip(address: str) -> IPv4Address | IPv6Address | None:
    return ip("127.0.0.1" if address.casefold() == "localhost" else address)


def _way(node: Node) -> str:
    """Return a key that is equal for the same node; one address may serve several, by port."""
    # IPv6 has many spellings of one address: ``::1`` is also ``0:0:0:0:0:0:0:1``.
    return f"{node.transport} {_ip(node.address) or node.address} {node.port}"
