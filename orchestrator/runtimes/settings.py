"""Settings that a node's containers start with, from the inventory."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from orchestrator.model.cluster import Cluster


@dataclass(frozen=True, slots=True)
class ContainerSettings:
    """Settings that a node's containers start with, from the inventory.

    Args:
        image: by id or reference, for containers of no attempt; it must be there.
        shm_size: as Docker writes it, 16g; None for Docker's own.
        ulimits: soft and hard alike; -1 is none.
        gpu_access: auto, cdi, runtime, gpus or none.
        owner: the record of who starts containers, for others who find them there.
    """

    image: str
    shm_size: str | None = None
    ulimits: Mapping[str, int] = field(default_factory=dict)
    gpu_access: str = "auto"
    has_hcas: bool = False
    privileged: bool = False
    owner: str = ""

    @classmethod
    def of(cls, cluster: Cluster, image: str = "", owner: str = "") -> "ContainerSettings":
        """Return the settings of an inventory.

        Args:
            image: by id or reference; empty where only attempts, which name theirs, are run.
        """
        container = cluster.container
        return cls(
            image=image,
            shm_size=container.shm_size,
            ulimits={str(name): limit for name, limit in container.ulimits.items()},
            gpu_access=container.gpu_access,
            has_hcas=any(node.hcas for node in cluster.members),
            privileged=container.privileged,
            owner=owner,
        )
