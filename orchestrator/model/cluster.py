"""The cluster: nodes, their addresses, GPUs, HCAs, and how containers are started on them."""

import ipaddress
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal, Self

from pydantic import Field

from orchestrator.model.env import EnvName, EnvValue, Roce
from orchestrator.model.plan import Seat
from orchestrator.model.slurm import Slurm
from orchestrator.model.text import (
    Address,
    Conflict,
    Count,
    DataPath,
    Fingerprint,
    ImageChoice,
    Jump,
    Mirror,
    Name,
    NodePath,
    Noun,
    RangedName,
    Size,
    Words,
    repeated,
    size_bytes,
)

MOST_GPUS = 64
LOG_BYTES = 1 << 30
SLURM = "slurm"
IMAGE_FILES = ("pyxis", "apptainer")
Ulimit = Literal["core", "cpu", "data", "fsize", "memlock", "nofile", "nproc", "rss", "stack"]
Limit = Annotated[int, Field(ge=-1)]


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

    name: RangedName
    """Such as mlx5_0; `"mlx5_[0-7]"` is eight of them."""
    rate_gbps: Count
    """What the link must run at: 100 for EDR."""
    link_layer: Literal["InfiniBand", "Ethernet"] = "InfiniBand"
    """Ethernet for RoCE."""


class Settings(Noun):
    """What holds for a node, said for all of them under ``defaults`` or for one."""

    user: Name | None = None
    """Who logs in by ssh; root unless said otherwise."""
    port: int | None = Field(default=None, ge=1, le=65535)
    """Where sshd listens; 22 unless said otherwise."""
    transport: Literal["ssh", "local"] | None = None
    """How the node is reached; ssh unless said otherwise."""
    runtime: Literal["docker", "process", "pyxis", "apptainer"] | None = None
    """How tasks run there; docker unless said otherwise. Pyxis and apptainer need Slurm."""
    gpus: Gpus | None = None
    """The GPUs that the node must have."""
    hcas: tuple[Hca, ...] | None = None
    """The InfiniBand adapters that the node must have, and that NCCL may use."""
    data: dict[Name, DataPath] | None = None
    """Data sets by name: absolute paths on the node."""
    identity: NodePath | None = None
    """The one SSH key that is offered."""
    agent: bool | None = None
    """Whether ssh-agent signs with that key, as one with a passphrase needs; without ``identity``
    the agent must hold one key alone."""
    roce: Roce | None = None
    """For adapters on Ethernet: what NCCL is told of the fabric."""
    interface: Name | None = None
    """The network interface that NCCL, gloo and MPI use."""
    sudo: bool | None = None
    """Whether the user needs ``sudo -n`` to reach Docker."""
    known_hosts: NodePath | None = None
    """File of trusted host keys on this machine; ~/.ssh/known_hosts unless said otherwise."""
    folder: DataPath | None = None
    """Where attempts lie on the node; /var/tmp/dlperf-USER unless said otherwise."""


class NodeEntry(Settings):
    """One node of an inventory."""

    name: RangedName
    """What plans, logs and reports call the node; `"vs[001-128]"` is 128 of them."""
    address: Address
    """How the controller and the other nodes reach it; with a range of names one of as many."""
    host_key: Fingerprint | None = None
    """Fingerprint of the key that its sshd must show."""
    jump: Jump | None = None
    """Through which machine the node is reached."""


class Container(Noun):
    """How containers are started; least privilege unless a reason is given."""

    shm_size: Size | None = None
    """Shared memory of a container, for data loaders and NCCL."""
    ulimits: dict[Ulimit, Limit] = Field(default_factory=dict)
    """Limits inside a container; -1 is none. InfiniBand needs memlock: -1."""
    privileged: bool = False
    """Whether containers may do everything on the node; needs a reason."""
    reason: Words | None = None
    """Why containers must be privileged; shown in the report."""
    gpu_access: Literal["auto", "cdi", "runtime", "gpus", "none"] = "auto"
    """How containers come to GPUs: what the engine has, a CDI device, the nvidia runtime,
    Docker's --gpus, or not at all."""


class Registry(Noun):
    """Where images come from when it is not the registry that their names say."""

    mirror: Mirror | None = None
    """Pull from here instead; the digest stays the one of the original."""
    push: Mirror | None = None
    """Carry derived images to the nodes through here; else from node to node."""
    user: Words | None = None
    """Who logs in; the secret comes from DLPERF_REGISTRY_SECRET, a 0600 file or a prompt."""
    secret_file: NodePath | None = None
    """A file on this machine, mode 0600, whose first line is the secret."""


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
    sudo: bool
    identity: str | None
    known_hosts: str
    host_key: str | None
    jump: str | None
    folder: str
    agent: bool = False
    roce: Roce | None = None

    @property
    def is_here(self) -> bool:
        """Whether it is the machine that this program runs on."""
        return self.transport == "local"

    @property
    def shares_files(self) -> bool:
        """Whether it sees this machine's files at the same paths: itself, or Slurm's nodes."""
        return self.transport in ("local", SLURM)

    @property
    def in_container(self) -> bool:
        """Whether its tasks run in containers."""
        return self.runtime != "process"

    @property
    def has_engine(self) -> bool:
        """Whether Docker's engine is there, and starts its containers."""
        return self.runtime == "docker"

    @property
    def usable_gpus(self) -> tuple[int, ...]:
        """Indices of the GPUs that cases may take, in the order in which they are taken."""
        if self.gpus is None:
            return ()
        return self.gpus.use if self.gpus.use is not None else tuple(range(self.gpus.count or 0))

    def seat(self, root: str) -> Seat:
        """The node as a gang sees it, with all the GPUs that cases may take.

        Args:
            root: the folder there in which sweeps have theirs.
        """
        return Seat(
            node=self.name,
            address=self.address,
            gpus=self.usable_gpus,
            interface=self.interface,
            hcas=tuple(hca.name for hca in self.hcas),
            data=self.data,
            root=root,
            gid_index=self.roce.gid_index if self.roce else None,
            traffic_class=self.roce.traffic_class if self.roce else None,
        )


class Cluster(Noun):
    """The validated inventory."""

    name: Name
    """What reports and the state folder call the cluster."""
    scheduler: Literal["fanout", "slurm"] | None = None
    """Who gives nodes: fanout, those under ``nodes``, unless said otherwise; or slurm."""
    slurm: Slurm | None = None
    """How jobs are submitted, with ``scheduler: slurm``."""
    defaults: Settings = Field(default_factory=Settings)
    """What holds for every node that does not say otherwise."""
    container: Container = Field(default_factory=Container)
    """How containers are started."""
    registry: Registry | None = None
    """Where images come from, if not from where their names say."""
    max_log_size: Size | None = None
    """At which size of its raw log a task is ended, on its node; 1g unless said otherwise."""
    images: tuple[ImageChoice, ...] = ()
    """Images that provision prepares on the nodes; NAME@TAG takes the base with another tag."""
    env: dict[EnvName, EnvValue] = Field(default_factory=dict)
    """Environment variables of every task on this cluster; those of a playbook count more."""
    nodes: tuple[NodeEntry, ...] = Field(default=(), min_length=1, max_length=4096)
    """The nodes in rank order: a case of two nodes takes the first two that fit it; needed unless
    Slurm gives them."""

    @property
    def log_bytes(self) -> int:
        """At which size of its raw log a task is ended."""
        return LOG_BYTES if self.max_log_size is None else size_bytes(self.max_log_size)

    @property
    def in_containers(self) -> bool:
        """Whether tasks run in containers, on every node."""
        return self.members[0].in_container

    @property
    def from_files(self) -> bool:
        """Whether tasks run in containers of image files, which all nodes see."""
        return self.in_containers and not self.members[0].has_engine

    @property
    def shares_files(self) -> bool:
        """Whether every node sees this machine's files at the same paths."""
        return all(node.shares_files for node in self.members)

    @property
    def is_here(self) -> bool:
        """Whether every node is the machine that this program runs on."""
        return all(node.is_here for node in self.members)

    @cached_property
    def members(self) -> tuple[Node, ...]:
        """The nodes in the order of the file, which is rank order."""
        return tuple(self._member(entry) for entry in self.nodes)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy, whose members are its own."""
        copied = super().model_copy(update=update, deep=deep)
        copied.__dict__.pop("members", None)  # pydantic copies what was cached too
        return copied

    def _member(self, entry: NodeEntry) -> Node:
        common = self.defaults.model_dump(exclude_none=True)
        own = entry.model_dump(exclude_none=True)
        gpus = {**common.get("gpus", {}), **own.pop("gpus", {})}
        merged = NodeEntry.model_validate({**common, **own, **({"gpus": gpus} if gpus else {})})
        return Node(
            name=merged.name,
            address=merged.address,
            transport=SLURM if self.slurm else merged.transport or "ssh",
            runtime=merged.runtime or "docker",
            user=merged.user or "root",
            port=merged.port or 22,
            gpus=merged.gpus,
            hcas=merged.hcas or (),
            data=merged.data or {},
            interface=merged.interface,
            sudo=merged.sudo or False,
            identity=merged.identity,
            known_hosts=merged.known_hosts or "~/.ssh/known_hosts",
            host_key=merged.host_key,
            jump=merged.jump,
            agent=merged.agent or False,
            roce=merged.roce,
            folder=merged.folder or f"/var/tmp/dlperf-{merged.user or 'root'}",
        )

    def conflicts(self) -> Iterator[Conflict]:
        """Everything about this inventory that cannot hold together."""
        if (self.scheduler == SLURM) != (self.slurm is not None):
            yield from self._schedulers()
            return
        if self.slurm is not None:
            yield from self.slurm.conflicts()
            yield from self._given()
            yield from self._privileged()
            yield from self._image_files()
            return
        if not self.nodes:
            yield Conflict((), "there is no node; needed `nodes:` with at least one")
            return
        for field, alike in (
            ("name", [entry.name for entry in self.nodes]),
            ("address", [_way(node) for node in self.members]),
        ):
            for index, before in repeated(alike).items():
                yield Conflict(
                    ("nodes", index, field),
                    f"{getattr(self.nodes[index], field)!r} is also the {field} of"
                    f" nodes[{before}]; needed one {field} for each node",
                )
        yield from self._privileged()
        yield from self._addresses()
        yield from self._ways()
        yield from self._gpus()
        yield from self._roce()

    def _schedulers(self) -> Iterator[Conflict]:
        if self.slurm is None:
            yield Conflict(("scheduler",), "it is slurm; needed `slurm:` with time and nodes")
        else:
            yield Conflict(("slurm",), "settings for Slurm; needed `scheduler: slurm` beside them")

    def _image_files(self) -> Iterator[Conflict]:
        """What says nothing to those who make containers of image files."""
        if self.defaults.runtime not in IMAGE_FILES:
            return
        if self.container != Container():
            yield Conflict(
                ("container",),
                f"settings of Docker's; needed none with runtime {self.defaults.runtime}",
            )
        for field in ("push", "user", "secret_file"):
            if self.registry is not None and getattr(self.registry, field) is not None:
                yield Conflict(
                    ("registry", field),
                    f"{field} is for Docker; needed none, since {self.defaults.runtime} logs in"
                    " with its own credentials and carries nothing",
                )

    def _privileged(self) -> Iterator[Conflict]:
        if self.container.privileged and not self.container.reason:
            yield Conflict(
                ("container", "privileged"),
                "privileged containers without a reason; needed `reason:` beside it",
            )

    def _given(self) -> Iterator[Conflict]:
        """What an inventory whose nodes Slurm gives may not say."""
        if self.nodes:
            yield Conflict(("nodes",), "Slurm's allocation gives the nodes; needed no `nodes:`")
        for field in ("user", "port", "transport", "identity", "known_hosts"):
            if getattr(self.defaults, field) is not None:
                yield Conflict(
                    ("defaults", field),
                    f"{field} is how nodes are reached without Slurm; needed none, since srun"
                    " reaches them",
                )

    def given(self, nodes: Mapping[str, str]) -> "Cluster":
        """The cluster with the nodes that Slurm gave, or stand-ins for them.

        Args:
            nodes: address by name, in rank order.
        """
        entries = tuple(NodeEntry(name=name, address=at) for name, at in nodes.items())
        return self.model_copy(update={"nodes": entries})

    def _addresses(self) -> Iterator[Conflict]:
        versions: dict[int, int] = {}
        members = self.members
        here = [_is_here(node.address) for node in members]
        for index, node in enumerate(members):
            address = _ip(node.address)
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

    def _ways(self) -> Iterator[Conflict]:
        """A gang runs one program: in one kind of place, at one path."""
        first, *others = members = self.members
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

    def _gpus(self) -> Iterator[Conflict]:
        for index, node in enumerate(self.members):
            if node.gpus is None or node.gpus.use is None:
                continue
            use, count = node.gpus.use, node.gpus.count or MOST_GPUS
            path = ("nodes", index) if self.nodes[index].gpus is None else ("nodes", index, "gpus")
            if len(set(use)) != len(use) or not use:
                yield Conflict(
                    path, f"gpus.use is {list(use)}; needed at least one index, each once"
                )
            wrong = [gpu for gpu in use if not 0 <= gpu < count]
            if wrong:
                yield Conflict(path, f"gpus.use has {wrong}; needed indices from 0 to {count - 1}")

    def _roce(self) -> Iterator[Conflict]:
        for index, node in enumerate(self.members):
            if node.roce and not any(hca.link_layer == "Ethernet" for hca in node.hcas):
                own = self.nodes[index].roce is not None
                yield Conflict(
                    ("nodes", index, "roce") if own else ("defaults", "roce"),
                    f"roce for node {node.name}, which has no adapter with link_layer: Ethernet;"
                    " needed one among its hcas",
                )
                return


def _ip(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address as a number; None for a name that only a resolver knows."""
    if address.casefold() == "localhost":
        return ipaddress.IPv4Address("127.0.0.1")
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return None
    return ip.ipv4_mapped or ip if isinstance(ip, ipaddress.IPv6Address) else ip


def _is_here(address: str) -> bool:
    """Whether the address means this machine, wherever it is used."""
    ip = _ip(address)
    return ip is not None and (ip.is_loopback or ip.is_unspecified)


def _way(node: Node) -> str:
    """Equal for nodes that are one: several may be behind an address, each at its own port."""
    # IPv6 has many spellings of one address: ``::1`` is also ``0:0:0:0:0:0:0:1``.
    return f"{node.transport} {_ip(node.address) or node.address} {node.port}"
