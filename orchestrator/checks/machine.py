"""Rules about a machine itself: disk, limits, load, modules, the environment."""

from collections.abc import Iterator
from dataclasses import dataclass

from orchestrator import words
from orchestrator.model.findings import found
from orchestrator.model.node import Node
from orchestrator.model.site import Finding, HostFacts

LEAST_DISK_MIB = 1024
LEAST_OPEN_FILES = 256
LEAST_SHM_MIB = 65  # Docker gives a container 64 unless told otherwise, which NCCL outgrows
BUSY_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class Demands:
    """The requirements that the images in use have of every node.

    Args:
        extra: the extra of this package that brings the modules an image needs.
        install: the command that installs such a module, without its name.
        is_certain: whether a program of that image is to run; else what it lacks is a warning.
        driver: the oldest NVIDIA driver that the images run on.
    """

    extra: str | None = None
    install: str = "install"
    is_certain: bool = True
    driver: str | None = None


def host(node: Node, facts: HostFacts, demands: Demands) -> Iterator[Finding]:
    """Find what is wrong with modules, disk, limits, load, interface and proxies of a node."""
    for module in facts.missing_modules:
        yield _missing(node, module, demands)
    yield from _room(node, facts)
    yield from _load(node, facts)
    if node.interface is not None and node.interface not in facts.interfaces:
        yield found(
            "INTERFACE-MISSING",
            node.name,
            f"interfaces {', '.join(facts.interfaces) or 'none'}",
            node.interface,
        )
    yield from _proxies(node, facts) if node.has_engine else _limits(node, facts)


def _missing(node: Node, module: str, demands: Demands) -> Finding:
    checkout = f", or from a checkout: pip install '.[{demands.extra}]'" if demands.extra else ""
    return found(
        "MODULE-MISSING",
        node.name,
        f"no Python module {module}",
        f"{module} importable",
        f"{demands.install} {module}{checkout}",
        severity="error" if demands.is_certain else "warning",
    )


def _room(node: Node, facts: HostFacts) -> Iterator[Finding]:
    """Disk and open files, which attempts take on every node."""
    if facts.free_disk_mib < LEAST_DISK_MIB:
        seen, needed = words.sizes(facts.free_disk_mib << 20, LEAST_DISK_MIB << 20)
        yield found(
            "DISK-FULL",
            node.name,
            f"{seen} free where attempts lie",
            f"at least {needed}",
            "free some disk, or choose another folder with "
            + ("--state" if node.shares_files else "`folder:` in the inventory"),
        )
    if facts.open_files is not None and facts.open_files < LEAST_OPEN_FILES:
        yield found(
            "LIMITS",
            node.name,
            f"{facts.open_files} open files allowed",
            f"at least {LEAST_OPEN_FILES}",
            f"ulimit -n {LEAST_OPEN_FILES}",
        )


def _load(node: Node, facts: HostFacts) -> Iterator[Finding]:
    if facts.load > facts.cpus * BUSY_SHARE:
        yield found(
            "BUSY",
            node.name,
            f"load {facts.load:g} on {facts.cpus} CPUs",
            f"below {facts.cpus * BUSY_SHARE:g}",
        )


def _proxies(node: Node, facts: HostFacts) -> Iterator[Finding]:
    if facts.proxies:
        yield found(
            "PROXY",
            node.name,
            f"{', '.join(facts.proxies)} set for its user",
            "no proxy between nodes, nor to the registry of the inventory",
            "unset them, or name the nodes and the registry in no_proxy",
        )


def _limits(node: Node, facts: HostFacts) -> Iterator[Finding]:
    """Limits that programs need from the machine itself where they run in no container."""
    if node.hcas and facts.memlock_kib is not None:
        yield found(
            "MEMLOCK",
            node.name,
            f"{facts.memlock_kib} KiB of memory may be locked",
            "unlimited, for InfiniBand",
            "raise memlock in /etc/security/limits.conf",
        )
    if node.gpus is not None and facts.shm_mib < LEAST_SHM_MIB:
        yield found(
            "SHM-SMALL",
            node.name,
            f"{words.size(facts.shm_mib << 20)} of shared memory",
            f"at least {words.size(LEAST_SHM_MIB << 20)}",
            "mount -o remount,size=16g /dev/shm",
        )
