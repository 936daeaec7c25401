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
    yield from _shm(node, facts, started)
    yield from states(node, facts.data, where="in a container: ")
    if node.gpus is not None and started.gpu_access != "none":
        yield from _gpus(node, facts)
    if node.hcas:
        yield from _memlock(node, facts, started)
        yield from _devices(node, facts)
        # Here is where programs run: what the node itself may lack must be in the image.
        inside = node.model_copy(update={"runtime": "process"})
        yield from adapters(inside, facts.infiniband)
        yield from openable(inside, facts.verbs)
        yield from _skew(node, facts.ofed, host_ofed)


def mib(size: str) -> int:
    """MiB of a size as inventories write it, such as ``16g``; without a letter it is bytes."""
    unit = _UNITS.get(size[-1])
    return int(size) >> 20 if unit is None else int(size[:-1]) * unit >> 20


def _shm(node: Node, facts: ContainerFacts, started: Container) -> Iterator[Finding]:
    if started.shm_size is not None and facts.shm_mib < mib(started.shm_size):
        seen, needed = words.sizes(facts.shm_mib << 20, mib(started.shm_size) << 20)
        yield found(
            "SHM-SMALL",
            node.name,
            f"{seen} of shared memory in a container",
            needed,
            "look at what the engine says when the container is created",
        )


def _gpus(node: Node, facts: ContainerFacts) -> Iterator[Finding]:
    needed = len(node.usable_gpus)
    if isinstance(facts.gpus, Silent):
        yield found(
            "GPU-RUNTIME",
            node.name,
            f"in a container: {facts.gpus.message or facts.gpus.code}",
            f"nvidia-smi -L lists {words.count(needed, 'GPU')}",
            "set container.gpu_access to a way that this engine has",
            severity="error",
        )
    elif facts.gpus is not None and facts.gpus < needed:
        yield found(
            "GPU-COUNT",
            node.name,
            f"{words.count(facts.gpus, 'GPU')} in a container",
            words.count(needed, "GPU"),
            "look at NVIDIA_VISIBLE_DEVICES of the image and at the engine's GPU runtime",
        )


def _memlock(node: Node, facts: ContainerFacts, started: Container) -> Iterator[Finding]:
    limit = started.ulimits.get("memlock", -1)
    if facts.memlock_kib is None or 0 <= limit <= facts.memlock_kib * 1024:
        return
    yield found(
        "MEMLOCK",
        node.name,
        f"a container may lock {facts.memlock_kib} KiB of memory",
        "unlimited" if limit < 0 else f"{limit // 1024} KiB",
        "set container.ulimits.memlock; -1 is unlimited",
    )


def _devices(node: Node, facts: ContainerFacts) -> Iterator[Finding]:
    if not any(name.startswith("uverbs") for name in facts.devices):
        yield found(
            "IB-DEVICE",
            node.name,
            f"/dev/infiniband of a container has {', '.join(facts.devices) or 'nothing'}",
            "the node's uverbs devices",
        )


def _skew(node: Node, inside: str | None, outside: str | None) -> Iterator[Finding]:
    if inside is None or outside is None:
        return
    here, there = words.version_key(inside), words.version_key(outside)
    if here == there:
        return
    yield found(
        "OFED-SKEW",
        node.name,
        f"OFED {inside} in the container, {outside} on the node",
        "the same, or an older one in the container",
        "NCCL may fall back to sockets: check the transport in its log"
        if here > there
        else "compare with nodes that have the same pair",
    )
