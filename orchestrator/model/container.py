"""How an inventory has containers started, and where it has their images come from."""

from typing import Annotated, Literal

from pydantic import Field

from orchestrator.model.text import Mirror, NodePath, Noun, Size, Words

Ulimit = Literal["core", "cpu", "data", "fsize", "memlock", "nofile", "nproc", "rss", "stack"]
Limit = Annotated[int, Field(ge=-1)]


class Container(Noun):
    """Options of containers; least privilege unless a reason is given."""

    shm_size: Size | None = None
    """Shared memory of a container, for data loaders and NCCL."""
    ulimits: dict[Ulimit, Limit] = Field(default_factory=dict)
    """Limits inside a container; -1 is none. InfiniBand needs memlock: -1."""
    privileged: bool = False
    """Let containers do everything on the node; needs a reason."""
    reason: Words | None = None
    """The reason for privileged containers; shown in the report."""
    gpu_access: Literal["auto", "cdi", "runtime", "gpus", "none"] = "auto"
    """Access of containers to GPUs: what the engine has, a CDI device, the nvidia runtime,
    Docker's --gpus, or not at all."""


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
