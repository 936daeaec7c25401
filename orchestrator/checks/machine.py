"""Rules about a machine: disk, limits, load, modules, proxies, Docker engine and containers."""

from collections.abc import Iterator
from dataclasses import dataclass

from orchestrator import words
from orchestrator.checks.data import states
from orchestrator.checks.fabric import adapters, openable
from orchestrator.model.facts import ContainerFacts, Silent
from orchestrator.model.findings import found
from orchestrator.model.node import Container, Node
from orchestrator.model.site import DOCKER_CODES, DockerFacts, Finding, HostFacts
from orchestrator.model.text import size_bytes

LEAST_DISK_MIB = 1024
LEAST_OPEN_FILES = 256
LEAST_SHM_MIB = 65  # Docker gives a container 64 unless told otherwise, which NCCL outgrows
BUSY_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class Demands:
    """The requirements of the images in use.

    Args:
        extra: the extra of this package that has the modules of an image.
        is_certain: whether a program of that image will run; else missing modules are warnings.
        driver: the oldest NVIDIA driver that the images run on.
    """

    extra: str | None = None
    is_certain: bool = True
    driver: str | None = None


def host(node: Node, facts: HostFacts, demands: Demands) -> Iterator[Finding]:
    """Find what is wrong with modules, disk, limits, load, interface and proxies of a node."""
    checkout = f", or from a checkout: pip install '.[{demands.extra}]'" if demands.extra else ""
    for module in facts.missing_modules:
        yield found(
            "MODULE-MISSING",
            node.name,
            f"no Python module {module}",
            f"{module} importable",
            f"install {module} for that Python: pip, pipx inject or uv pip install{checkout}",
            severity="error" if demands.is_certain else "warning",
        )
    way = "--state" if node.shares_files else "`folder:` in the inventory"
    fix = f"free some disk, or choose another folder with {way}"
    yield from _room(node, facts.free_disk_mib, "where attempts lie", fix)
    if facts.open_files is not None and facts.open_files < LEAST_OPEN_FILES:
        seen, needed = f"{facts.open_files} open files allowed", f"at least {LEAST_OPEN_FILES}"
        yield found("LIMITS", node.name, seen, needed)
    if facts.load > facts.cpus * BUSY_SHARE:
        needed = f"below {facts.cpus * BUSY_SHARE:g}"
        yield found("BUSY", node.name, f"load {facts.load:g} on {facts.cpus} CPUs", needed)
    if node.interface is not None and node.interface not in facts.interfaces:
        seen = f"interfaces {', '.join(facts.interfaces) or 'none'}"
        yield found("INTERFACE-MISSING", node.name, seen, node.interface)
    if node.has_engine:  # containers have limits of their own
        if facts.proxies:
            yield found("PROXY", node.name, f"{', '.join(facts.proxies)} set for its user")
        return
    if node.hcas and facts.memlock_kib is not None:
        yield found("MEMLOCK", node.name, f"{facts.memlock_kib} KiB of memory may be locked")
    if node.gpus is not None and facts.shm_mib < LEAST_SHM_MIB:
        seen = f"{words.size(facts.shm_mib << 20)} of shared memory"
        yield found("SHM-SMALL", node.name, seen, f"at least {words.size(LEAST_SHM_MIB << 20)}")


def docker(
    node: Node, facts: DockerFacts | Silent | None, container: Container
) -> Iterator[Finding]:
    """Find what is wrong with the engine, if it was asked."""
    if facts is None:
        return
    if isinstance(facts, Silent):
        code, fix = DOCKER_CODES.get(facts.code, "DOCKER-API"), ""
        if node.sudo and facts.code == "ABSENT" and "sudo" in facts.message:
            fix = "install sudo on the node, or leave out `sudo: true`"
        seen = f"{facts.message or 'no answer in 10 s'} (user {node.user})"
        yield found(code, node.name, seen, "an answer of docker info", fix, severity="error")
        return
    fix = "remove images that nobody uses, or move this folder to a larger disk"
    yield from _room(node, facts.free_mib, f"at {facts.root_dir}, where images go", fix)
    yield from _gpu_access(node, facts, container.gpu_access)
    if facts.proxies:
        yield found("PROXY", node.name, f"the engine has {', '.join(facts.proxies)} set")


def _room(node: Node, free_mib: int | None, where: str, fix: str) -> Iterator[Finding]:
    if free_mib is None or free_mib < LEAST_DISK_MIB:
        free, needed = words.sizes((free_mib or 0) << 20, LEAST_DISK_MIB << 20)
        free = "unknown space" if free_mib is None else free
        yield found("DISK-FULL", node.name, f"{free} free {where}", f"at least {needed}", fix)


def _gpu_access(node: Node, facts: DockerFacts, access: str) -> Iterator[Finding]:
    if node.gpus is None:
        return
    if access == "none":
        needed = "GPU access for containers, since the inventory declares GPUs"
        seen, fix = "container.gpu_access is none", "leave out gpu_access, or leave out gpus"
        yield found("GPU-RUNTIME", node.name, seen, needed, fix, severity="warning")
    elif access not in facts.gpu_ways and not (access == "auto" and facts.gpu_ways):
        hook = "installed" if facts.gpu_hook else "missing"
        seen = f"runtimes {', '.join(facts.runtimes)}; NVIDIA's hook for --gpus {hook};"
        seen += f" CDI {'ready' if facts.cdi else 'without NVIDIA'}"
        any_way = "one of CDI, runtime nvidia, --gpus"
        needed = any_way if access == "auto" else f"gpu_access {access}"
        yield found("GPU-RUNTIME", node.name, seen, needed)


def container(
    node: Node, facts: ContainerFacts, started: Container, host_ofed: str | None = None
) -> Iterator[Finding]:
    """Find what is wrong with memory, data sets, GPUs and InfiniBand inside a container.

    Args:
        host_ofed: version of OFED on the node itself.
    """
    least_mib = size_bytes(started.shm_size) >> 20 if started.shm_size else 0
    if facts.shm_mib < least_mib:
        seen, needed = words.sizes(facts.shm_mib << 20, least_mib << 20)
        yield found("SHM-SMALL", node.name, f"{seen} of shared memory in a container", needed)
    yield from states(node, facts.data, where="in a container: ")
    if node.gpus is not None and started.gpu_access != "none":
        needed = words.count(len(node.usable_gpus), "GPU")
        if isinstance(facts.gpus, Silent):
            seen = f"in a container: {facts.gpus.message or facts.gpus.code}"
            yield found("GPU-RUNTIME", node.name, seen, f"nvidia-smi lists {needed}")
        elif facts.gpus is not None and len(facts.gpus.gpus) < len(node.usable_gpus):
            seen = f"{words.count(len(facts.gpus.gpus), 'GPU')} in a container"
            yield found("GPU-COUNT", node.name, seen, needed)
    if node.hcas:
        yield from _infiniband(node, facts, started.ulimits.get("memlock", -1), host_ofed)


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
    versions = {words.version_key(version) for version in (facts.ofed, host_ofed) if version}
    if len(versions) == 2:
        seen = f"OFED {facts.ofed} in the container, {host_ofed} on the node"
        yield found("OFED-SKEW", node.name, seen)
