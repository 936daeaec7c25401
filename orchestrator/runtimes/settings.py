"""How containers are started on a node, as its inventory says."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ContainerSettings:
    """How containers are started on a node, as its inventory says.

    Args:
        image: by id or reference; it must be there.
        shm_size: as Docker writes it, 16g; None for Docker's own.
        ulimits: soft and hard alike; -1 is none.
        gpu_access: auto, cdi, runtime, gpus or none.
    """

    image: str
    shm_size: str | None = None
    ulimits: Mapping[str, int] = field(default_factory=dict)
    gpu_access: str = "auto"
    has_hcas: bool = False
    privileged: bool = False
