"""References of base images."""

from dataclasses import dataclass

_DOCKER_HUB = "docker.io"


@dataclass(frozen=True, slots=True)
class Reference:
    """Where a base lies: a registry, a repository there, a tag in it."""

    host: str
    repository: str
    tag: str


def reference(base: str) -> Reference:
    """The parts of a base reference; one that begins with no registry means Docker Hub."""
    path, _, its_tag = base.rpartition(":")
    host, slash, repository = path.partition("/")
    if not slash or not ("." in host or ":" in host or host == "localhost"):
        host, repository = _DOCKER_HUB, path
    if host == _DOCKER_HUB and "/" not in repository:
        repository = f"library/{repository}"
    return Reference(host, repository, its_tag)


def pinned(base: str, digest: str, mirror: str | None) -> str:
    """What Docker pulls to get exactly these bytes: from the mirror if there is one."""
    origin = reference(base)
    return f"{mirror or origin.host}/{origin.repository}@{digest}"
