"""Rules about what a container sees of its node."""

from collections.abc import Iterator

from orchestrator import words
from orchestrator.checks.data import states
from orchestrator.checks.fabric import adapters, openable
from orchestrator.model.facts import ContainerFacts, Silent
from orchestrator.model.findings import found
from orchestrator.model.node import Container, Node
from orchestrator.model.site import Finding

_UNITS = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def container(
    node: Node, facts: ContainerFacts, started: Container, *, host_ofed: str | None = None
) -> Iterator[Finding]:
    """Find what is wrong with memory, data sets, GPUs and InfiniBand inside a container.

    Args:
        started: the container settings of the inventory.
        host_ofed: version of OFED on the node itself.
    """
    if started.shm_size is not None and facts.shm_mib < mib(started.shm_size):
        seen, needed = words.sizes(facts.shm_mib << 20, mib(started.shm_size) << 20)
        yield found("SHM-SMALL", node.name, f"{seen} of shared memory in a container", needed)
    yield from states(node, facts.data, where="in a container: ")
    if node.gpus is not None and started.gpu_access != "none":
        needed = words.count(len(node.usable_gpus), "GPU")
        if isinstance(facts.gpus, Silent):
            seen = f"in a container: {facts.gpus.message or facts.gpus.code}"
            yield found("GPU-RUNTIME", node.name, seen, f"nvidia-smi -L lists {needed}")
        elif facts.gpus is not None and facts.gpus < len(node.usable_gpus):
            seen = f"{words.count(facts.gpus, 'GPU')} in a container"
            yield found("GPU-COUNT", node.name, seen, needed)
    if node.hcas:
        yield from _infiniband(node, facts, started.ulimits.get("memlock", -1), host_ofed)


def mib(size: str) -> int:
    """Convert a size of an inventory to MiB: ``16g``, or bytes without a letter."""
    unit = _UNITS.get(size[-1])
    return int(size) >> 20 if unit is None else int(size[:-1]) * unit >> 20


def _infiniband(
    node: Node, facts: ContainerFacts, memlock: int, host_ofed: str | None
) -> Iterator[Finding]:
    if facts.memlock_kib is not None and not 0 <= memlock <= facts.memlock_kib * 1024:
        seen = f"a container may lock {facts.memlock_kib} KiB of memory"
        needed = "unlimited" if memlock < 0 else f"{memlock // 1024} KiB"
        yield found("MEMLOCK", node.name, seen, needed)
    if not any(name.startswith("uverbs") for name in facts.devices):
        devices = ", ".join(facts.devices) or "nothing"
        yield found("IB-DEVICE", node.name, f"/dev/infiniband of a container has {devices}")
    # Here is where programs run: what the node itself may lack must be in the image.
    inside = node.model_copy(update={"runtime": "process"})
    yield from adapters(inside, facts.infiniband)
    yield from openable(inside, facts.verbs)
    versions = [words.version_key(version) for version in (facts.ofed, host_ofed) if version]
    if len(versions) == 2 and versions[0] != versions[1]:
        fix = "compare with nodes that have the same pair"
        if versions[0] > versions[1]:
            fix = "NCCL may fall back to sockets: check the transport in its log"
        seen = f"OFED {facts.ofed} in the container, {host_ofed} on the node"
        yield found("OFED-SKEW", node.name, seen, fix=fix)
