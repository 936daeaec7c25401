"""The cluster: the validated inventory, and its nodes in rank order."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal, Self

from pydantic import Field

from orchestrator.model.container import Container, Registry
from orchestrator.model.env import EnvName, EnvValue
from orchestrator.model.node import SLURM, Node, NodeEntry, Settings
from orchestrator.model.slurm import Slurm
from orchestrator.model.text import ImageChoice, Name, Noun, Size, size_bytes

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
        return tuple(self._member(entry) for entry in self.nodes)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy that computes its own members."""
        copied = super().model_copy(update=update, deep=deep)
        copied.__dict__.pop("members", None)  # pydantic copies what was cached too
        return copied

    def given(self, nodes: Mapping[str, str]) -> "Cluster":
        """Return the cluster with the nodes that Slurm gave, or stand-ins for them.

        Args:
            nodes: address by name, in rank order.
        """
        entries = tuple(NodeEntry(name=name, address=at) for name, at in nodes.items())
        return self.model_copy(update={"nodes": entries})

    def _member(self, entry: NodeEntry) -> Node:
        common = self.defaults.model_dump(exclude_none=True)
        own = entry.model_dump(exclude_none=True)
        gpus = {**common.get("gpus", {}), **own.pop("gpus", {})}
        merged = NodeEntry.model_validate({**common, **own, **({"gpus": gpus} if gpus else {})})
        said = {key: value for key, value in merged if value is not None}
        if self.slurm:
            said["transport"] = SLURM
        return Node(**{"folder": f"/var/tmp/dlperf-{merged.user or 'root'}", **said})
