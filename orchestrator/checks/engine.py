"""Rules about a node's Docker engine: is it there, has it room, can it give GPUs?

``DISK-FULL`` is of its own folder here; where attempts lie, in ``machine``.
"""

from collections.abc import Iterator

from orchestrator import words
from orchestrator.checks.gpu import older
from orchestrator.checks.machine import LEAST_DISK_MIB
from orchestrator.model.facts import Silent
from orchestrator.model.findings import found
from orchestrator.model.node import Container, Node
from orchestrator.model.site import REMEDIES, DockerFacts, Finding

_BOUNDED = frozenset({"local", "journald"})
_SAFE_TOOLKIT, _SAFE_RUNC = "1.17.8", "1.1.12"


def docker(
    node: Node, facts: DockerFacts | Silent | None, container: Container
) -> Iterator[Finding]:
    """Findings about the engine; none where ``facts`` is None, since it was not asked."""
    if isinstance(facts, Silent):
        code, fix = REMEDIES.get(facts.code, ("DOCKER-API", "run `docker info` on the node"))
        if node.sudo and facts.code == "ABSENT" and "sudo" in facts.message:
            fix = "install sudo on the node, or leave out `sudo: true`"
        yield found(
            code,
            node.name,
            f"{facts.message or 'no answer in 10 s'} (user {node.user})",
            "an answer of docker info",
            fix.format(user=node.user),
            severity="error",
        )
    elif facts is not None:
        yield from _room(node, facts)
        yield from _gpu_access(node, facts, container)
        yield from _logs(node, facts)
        yield from _versions(node, facts)
        if facts.proxies:
            yield found(
                "PROXY",
                node.name,
                f"the engine has {', '.join(facts.proxies)} set",
                "no proxy to the registry of the inventory",
                "name the registry in the engine's NO_PROXY",
            )


def _room(node: Node, facts: DockerFacts) -> Iterator[Finding]:
    if facts.free_mib is None or facts.free_mib < LEAST_DISK_MIB:
        free = "unknown space" if facts.free_mib is None else words.size(facts.free_mib << 20)
        yield found(
            "DISK-FULL",
            node.name,
            f"{free} free at {facts.root_dir}, where images go",
            f"at least {words.size(LEAST_DISK_MIB << 20)}",
            "remove images that nobody uses, or move this folder to a larger disk",
        )


def _gpu_access(node: Node, facts: DockerFacts, container: Container) -> Iterator[Finding]:
    access = container.gpu_access
    if node.gpus is not None and access == "none":
        yield found(
            "GPU-RUNTIME",
            node.name,
            "container.gpu_access is none",
            "GPU access for containers, since the inventory declares GPUs",
            "leave out gpu_access, or leave out gpus",
            severity="warning",
        )
    if node.gpus is None or access == "none":
        return
    if access not in facts.gpu_ways and not (access == "auto" and facts.gpu_ways):
        yield found(
            "GPU-RUNTIME",
            node.name,
            f"runtimes {', '.join(facts.runtimes)}; NVIDIA's hook for --gpus"
            f" {'installed' if facts.gpu_hook else 'missing'}; CDI"
            f" {'ready' if facts.cdi else 'without NVIDIA'}",
            "one of CDI, runtime nvidia, --gpus" if access == "auto" else f"gpu_access {access}",
            "install nvidia-container-toolkit, then `nvidia-ctk runtime configure`",
            severity="error",
        )


def _logs(node: Node, facts: DockerFacts) -> Iterator[Finding]:
    driver = facts.logging_driver
    is_bounded = driver == "json-file" and "max-size" in (facts.log_opts or ())
    if driver not in _BOUNDED and not is_bounded:
        yield found(
            "DOCKER-LOGS",
            node.name,
            f"log driver {driver}, max-size not set",
            "logs of other containers bounded too",
        )


def _versions(node: Node, facts: DockerFacts) -> Iterator[Finding]:
    for name, version, safe, hole in (
        ("NVIDIA Container Toolkit", facts.toolkit, _SAFE_TOOLKIT, "CVE-2025-23266"),
        ("runc", facts.runc, _SAFE_RUNC, "CVE-2024-21626"),
    ):
        if version is not None and older(version.partition("+")[0], safe):
            yield found(
                "TOOLKIT-OLD",
                node.name,
                f"{name} {version}",
                f"at least {safe}, or a build that fixes {hole}",
                f"update {name}, or ask your distribution whether its version has the fix",
            )
