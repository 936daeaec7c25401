"""A node: what an inventory says of it and its containers, and the seat that it is in a gang."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from orchestrator.model.plan import Seat
from orchestrator.model.text import (
    Address,
    Count,
    DataPath,
    Fingerprint,
    FolderPath,
    Jump,
    Mirror,
    Name,
    NodePath,
    Noun,
    RangedName,
    Size,
    Words,
)

Ulimit = Literal["core", "cpu", "data", "fsize", "memlock", "nofile", "nproc", "rss", "stack"]
Limit = Annotated[int, Field(ge=-1)]


class Container(Noun):
    """Options of containers; least privilege unless a reason is given."""

    shm_size: Size | None = None
    """Shared memory of a container, for data loaders and NCCL."""
    ulimits: dict[Ulimit, Limit] = Field(default_factory=dict)
    """Limits inside a container; -1 is none. InfiniBand needs memlock: -1."""
    reason: Words | None = None
    """The reason for privileged containers; shown in the report."""
    privileged: bool = False
    """Let containers do everything on the node; needs a reason."""
    gpu_access: Literal["auto", "cdi", "runtime", "gpus", "none"] = "auto"
    """Access of containers to GPUs: what the engine has, a CDI device, the nvidia runtime,
    Docker's --gpus, or not at all."""

    @field_validator("privileged")
    @classmethod
    def _for_a_reason(cls, value: bool, info: ValidationInfo) -> bool:
        if value and not info.data.get("reason"):
            raise ValueError(
                "privileged containers without a reason; needed `reason:` beside `privileged:`"
            )
        return value


class Registry(Noun):
    """Registries to use instead of the one in an image's name, and their login."""

    mirror: Mirror | None = None
    """Pull from here instead; the digest stays the one of the original."""
    push: Mirror | None = None
    """Carry derived images to the nodes through here; else through this machine."""
    user: Words | None = None
    """The user that logs in; the secret is in DLPERF_REGISTRY_SECRET, a 0600 file or a prompt."""
    secret_file: NodePath | None = None
    """A file on this machine, mode 0600, whose first line is the secret."""


class Roce(Noun):
    """NCCL's settings for RDMA over Ethernet; at least one of both."""

    gid_index: int | None = Field(default=None, ge=0, le=255)
    """NCCL_IB_GID_INDEX: the place of the RoCE v2 address in each adapter's table of GIDs."""
    traffic_class: int | None = Field(default=None, ge=0, le=255)
    """NCCL_IB_TC: the class that the switches carry without loss, DSCP times 4."""


MOST_GPUS = 64
SLURM = "slurm"


def _differ(indices: tuple[int, ...]) -> tuple[int, ...]:
    if len(set(indices)) < len(indices):
        raise ValueError(f"got {[*indices]}; needed each index once")
    return indices


Indices = Annotated[
    tuple[Annotated[int, Field(ge=0, le=MOST_GPUS - 1)], ...],
    Field(min_length=1),
    AfterValidator(_differ),
]


class Gpus(Noun):
    """The GPUs of a node, as they must be found there."""

    count: int | None = Field(default=None, ge=1, le=MOST_GPUS)
    """Number of GPUs of the node."""
    model: Words | None = None
    """The product name that nvidia-smi prints."""
    use: Indices | None = None
    """Indices of the GPUs that may be used, in the order of use; else the first by index."""


class Hca(Noun):
    """An InfiniBand adapter, by the name that NCCL_IB_HCA takes."""

    name: RangedName
    """Such as mlx5_0; `"mlx5_[0-7]"` is eight of them."""
    rate_gbps: Count
    """The required rate of the link, in Gbit/s: 100 for EDR."""
    link_layer: Literal["InfiniBand", "Ethernet"] = "InfiniBand"
    """Ethernet for RoCE."""


class Settings(Noun):
    """Settings of a node, written under ``defaults`` for all nodes or below one node."""

    user: Name | None = None
    """The user that logs in by ssh; root by default."""
    port: int | None = Field(default=None, ge=1, le=65535)
    """The port of sshd; 22 by default."""
    transport: Literal["ssh", "local"] | None = None
    """The transport to the node; ssh by default."""
    runtime: Literal["docker", "process", "pyxis", "apptainer"] | None = None
    """The runtime of tasks; docker by default. Pyxis and apptainer need Slurm."""
    gpus: Gpus | None = None
    """The GPUs that the node must have."""
    hcas: tuple[Hca, ...] | None = None
    """The InfiniBand adapters that the node must have, and that NCCL may use."""
    data: dict[Name, DataPath] | None = None
    """Data sets by name: absolute paths on the node."""
    identity: NodePath | None = None
    """The one SSH key that is offered."""
    agent: bool | None = None
    """Let ssh-agent sign with that key, as one with a passphrase needs; without ``identity``
    the agent must hold one key alone."""
    roce: Roce | None = None
    """For adapters on Ethernet: what NCCL is told of the fabric."""
    interface: Name | None = None
    """The network interface that NCCL, gloo and MPI use."""
    sudo: bool | None = None
    """Use ``sudo -n`` to reach Docker."""
    known_hosts: NodePath | None = None
    """File of trusted host keys on this machine; ~/.ssh/known_hosts by default."""
    folder: FolderPath | None = None
    """The folder of attempts on the node; /var/tmp/dlperf-USER by default."""


class NodeEntry(Settings):
    """One node of an inventory."""

    name: RangedName
    """The node's name in plans, logs and reports; `"vs[001-128]"` names 128 nodes."""
    address: Address
    """Host name or IP address that all machines use to reach the node; a range if `name` is one."""
    host_key: Fingerprint | None = None
    """Fingerprint of the key that its sshd must show."""
    jump: Jump | None = None
    """Through which machine the node is reached."""


class Node(NodeEntry):
    """One machine of the cluster: its entry, completed by the inventory's defaults and ours."""

    user: Name = "root"
    port: int = 22
    transport: Literal["ssh", "local", "slurm"] = "ssh"  # type: ignore[assignment]  # of a job
    runtime: Literal["docker", "process", "pyxis", "apptainer"] = "docker"
    hcas: tuple[Hca, ...] = ()
    data: dict[Name, DataPath] = Field(default_factory=dict)
    agent: bool = False
    sudo: bool = False
    known_hosts: NodePath = "~/.ssh/known_hosts"
    folder: FolderPath

    @property
    def is_here(self) -> bool:
        """Return True if it is the machine that this program runs on."""
        return self.transport == "local"

    @property
    def shares_files(self) -> bool:
        """Return True for this machine and Slurm's nodes, which see its files at the same paths."""
        return self.transport in ("local", SLURM)

    @property
    def in_container(self) -> bool:
        return self.runtime != "process"

    @property
    def has_engine(self) -> bool:
        """Return True if Docker's engine is there, and starts its containers."""
        return self.runtime == "docker"

    @property
    def usable_gpus(self) -> tuple[int, ...]:
        """Return the indices of the GPUs that cases may use, in the order of use."""
        if self.gpus is None:
            return ()
        return self.gpus.use if self.gpus.use is not None else tuple(range(self.gpus.count or 0))

    def seat(self, root: str, address: str = "") -> Seat:
        """Return the node as a gang sees it, with all the GPUs that cases may take.

        Args:
            root: the folder there in which sweeps have theirs.
            address: for command lines, where the inventory has a name.
        """
        return Seat(
            node=self.name,
            address=address or self.address,
            gpus=self.usable_gpus,
            interface=self.interface,
            hcas=tuple(hca.name for hca in self.hcas),
            data=self.data,
            root=root,
            gid_index=self.roce.gid_index if self.roce else None,
            traffic_class=self.roce.traffic_class if self.roce else None,
        )
