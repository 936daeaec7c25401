"""The cluster: nodes, their addresses, GPUs, HCAs, and how containers are started on them."""

import ipaddress
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from orchestrator.model.text import (
    Address,
    Contradiction,
    Count,
    Fingerprint,
    Name,
    NodePath,
    Noun,
    Size,
    Words,
    repeated,
)

MOST_GPUS = 64


class Gpus(Noun):
    """The GPUs of a node, as they must be found there."""

    count: int | None = Field(default=None, ge=1, le=MOST_GPUS)
    """How many GPUs the node has."""
    model: Words | None = None
    """The product name that nvidia-smi prints."""
    use: tuple[int, ...] | None = None
    """Indices of the GPUs that may be used, in the order of use; else the first by index."""


class Hca(Noun):
    """An InfiniBand adapter, by the name that NCCL_IB_HCA takes."""

    name: Name
    rate_gbps: Count
    link_layer: Literal["InfiniBand", "Ethernet"] = "InfiniBand"


class Settings(Noun):
    """What holds for a node, said for all of them under ``defaults`` or for one."""

    user: Name | None = None
    port: int | None = Field(default=None, ge=1, le=65535)
    transport: Literal["ssh", "local"] | None = None
    """How the node is reached; ssh unless said otherwise."""
    runtime: Literal["docker", "process"] | None = None
    """How tasks run there; docker unless said otherwise."""
    gpus: Gpus | None = None
    hcas: tuple[Hca, ...] | None = None
    data: dict[Name, NodePath] | None = None
    """Data sets by name: absolute paths on the node."""
    identity: NodePath | None = None
    """The one SSH key that is offered."""
    interface: Name | None = None
    """The network interface that NCCL, gloo and MPI use."""
    sudo: bool | None = None


class NodeEntry(Settings):
    """One node of an inventory."""

    name: Name
    address: Address
    host_key: Fingerprint | None = None
    jump: Words | None = None


class Container(Noun):
    """How containers are started; least privilege unless a reason is given."""

    shm_size: Size | None = None
    ulimits: dict[Name, int] = Field(default_factory=dict)
    privileged: bool = False
    reason: Words | None = None
    """Why containers must be privileged; shown in the report."""


class Registry(Noun):
    """Where images come from when it is not the registry that their names say."""

    mirror: Words


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One machine of the cluster, everything said about it brought together."""

    name: str
    address: str
    transport: str
    runtime: str
    user: str
    port: int
    gpus: Gpus | None
    hcas: tuple[Hca, ...]
    data: Mapping[str, str]
    interface: str | None

    @property
    def usable_gpus(self) -> tuple[int, ...]:
        """Indices of the GPUs that cases may take, in the order in which they are taken."""
        if self.gpus is None:
            return ()
        return self.gpus.use if self.gpus.use is not None else tuple(range(self.gpus.count or 0))


class Cluster(Noun):
    """The validated inventory."""

    name: Name
    defaults: Settings = Field(default_factory=Settings)
    container: Container = Field(default_factory=Container)
    registry: Registry | None = None
    nodes: tuple[NodeEntry, ...] = Field(min_length=1, max_length=4096)

    @property
    def members(self) -> tuple[Node, ...]:
        """The nodes in the order of the file, which is rank order."""
        return tuple(self._member(entry) for entry in self.nodes)

    def _member(self, entry: NodeEntry) -> Node:
        said = self.defaults.model_dump(exclude_none=True)
        own = entry.model_dump(exclude_none=True)
        gpus = {**said.get("gpus", {}), **own.pop("gpus", {})}
        merged = NodeEntry.model_validate({**said, **own, **({"gpus": gpus} if gpus else {})})
        return Node(
            name=merged.name,
            address=merged.address,
            transport=merged.transport or "ssh",
            runtime=merged.runtime or "docker",
            user=merged.user or "root",
            port=merged.port or 22,
            gpus=merged.gpus,
            hcas=merged.hcas or (),
            data=merged.data or {},
            interface=merged.interface,
        )

    def contradictions(self) -> Iterator[Contradiction]:
        """Everything about this inventory that cannot hold together."""
        for field, alike in (
            ("name", [entry.name for entry in self.nodes]),
            ("address", [_one_spelling(entry.address) for entry in self.nodes]),
        ):
            for index, before in repeated(alike).items():
                yield Contradiction(
                    ("nodes", index, field),
                    f"{getattr(self.nodes[index], field)!r} is also the {field} of"
                    f" nodes[{before}]; needed one {field} for each node",
                )
        if self.container.privileged and not self.container.reason:
            yield Contradiction(
                ("container", "privileged"),
                "privileged containers without a reason; needed `reason:` beside it",
            )
        yield from self._addresses()
        yield from self._gpus()

    def _addresses(self) -> Iterator[Contradiction]:
        versions: dict[int, int] = {}
        members = self.members
        remote = len(members) > 1 and any(node.transport == "ssh" for node in members)
        for index, node in enumerate(members):
            address = _ip(node.address)
            if address is None:
                continue
            first = versions.setdefault(address.version, index)
            if len(versions) > 1 and first == index:
                yield Contradiction(
                    ("nodes", index, "address"),
                    f"IPv{address.version} beside IPv{10 - address.version};"
                    " needed one address family, or ranks cannot meet",
                )
            if remote and (address.is_loopback or address.is_unspecified):
                yield Contradiction(
                    ("nodes", index, "address"),
                    f"{node.address} is this machine for every node;"
                    " needed an address that the other nodes can reach,"
                    " or transport: local for all of them",
                )

    def _gpus(self) -> Iterator[Contradiction]:
        for index, node in enumerate(self.members):
            if node.transport == "local" and node.runtime == "docker":
                yield Contradiction(
                    ("nodes", index),
                    f"node {node.name} has transport local and runtime docker;"
                    " needed runtime: process",
                )
            if node.gpus is None or node.gpus.use is None:
                continue
            use, count = node.gpus.use, node.gpus.count or MOST_GPUS
            path = ("nodes", index) if self.nodes[index].gpus is None else ("nodes", index, "gpus")
            if len(set(use)) != len(use) or not use:
                yield Contradiction(
                    path, f"gpus.use is {list(use)}; needed at least one index, each once"
                )
            wrong = [gpu for gpu in use if not 0 <= gpu < count]
            if wrong:
                yield Contradiction(
                    path, f"gpus.use has {wrong}; needed indices from 0 to {count - 1}"
                )


def _ip(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address as a number; None for a name that only a resolver knows."""
    if address.casefold() == "localhost":
        return ipaddress.IPv4Address("127.0.0.1")
    try:
        return ipaddress.ip_address(address)
    except ValueError:
        return None


def _one_spelling(address: str) -> str:
    """IPv6 has many of one address: ``::1`` is also ``0:0:0:0:0:0:0:1``."""
    return str(_ip(address) or address)
