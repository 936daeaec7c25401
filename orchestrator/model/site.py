"""What provisioning found out: facts, and verdicts over them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Finding:
    """A verdict over facts: what was seen, what was expected, what to do."""

    severity: Severity
    code: str
    node: str
    seen: str
    expected: str
    fix: str


@dataclass(frozen=True, slots=True)
class HostFacts:
    """What one round trip to a node says of the machine itself."""

    hostname: str
    boot_id: str
    kernel: str
    system: str
    cpu_model: str
    cpus: int
    memory_mib: int
    free_disk_mib: int
    shm_mib: int
    open_files: int | None
    load: float
    clock_s: float
    interfaces: tuple[str, ...]
    missing_modules: tuple[str, ...]
    torch: str


@dataclass(frozen=True, slots=True)
class GpuSummary:
    """The GPUs of a node, as far as reports need them."""

    driver: str | None
    cuda: str | None
    models: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """Everything that was asked of one node; what was not asked is None."""

    host: HostFacts
    gpu: GpuSummary | None


@dataclass(frozen=True, slots=True)
class Site:
    """A cluster and what was found out about it.

    Args:
        cluster_digest: of the inventory that was asked for.
        nodes: facts by node name; nodes that gave none are missing.
    """

    version: int
    cluster: str
    cluster_digest: str
    inventory: str
    observed_at: str
    nodes: Mapping[str, NodeFacts]
    findings: tuple[Finding, ...]

    @property
    def shared_machine(self) -> bool:
        """Whether some of the nodes are one machine: then speedup says nothing of scaling."""
        boots = [facts.host.boot_id for facts in self.nodes.values()]
        return len(set(boots)) < len(boots)
