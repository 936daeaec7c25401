"""An image from the node that has it to those that lack it.

Through a registry, a folder that all nodes see, or this machine.
"""

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from orchestrator import errors, nodeset
from orchestrator.fleet import ask_all, settled
from orchestrator.provisioning import through_here
from orchestrator.provisioning.materials import Preparing

if TYPE_CHECKING:
    from orchestrator.runtimes.images import ImageFacts


def carry(preparing: Preparing, tag: str, source: str, targets: Sequence[str]) -> None:
    """Bring the image to every target.

    Raises:
        ImageError, NodeError: some nodes may have it already.
    """
    registry = preparing.fleet.cluster.registry
    if registry is not None and registry.push is not None:
        _through_registry(preparing, registry.push, tag, source, targets)
    elif preparing.fleet.cluster.slurm is not None:
        _through_folder(preparing, tag, source, targets)
    else:
        preparing.voice.line(
            f"{tag}: from {source} through this machine to {nodeset.fold(targets)}"
        )
        through_here.feed(preparing, tag, source, targets)


def _through_registry(
    preparing: Preparing, host: str, tag: str, source: str, targets: Sequence[str]
) -> None:
    images, name = preparing.fleet.images, f"{host}/{tag}"
    images[source].tag(tag, name)
    preparing.voice.line(f"{source}: push {name}")
    images[source].push(name, _quiet, preparing.credentials)
    pinned = _pushed(images[source].find(name), name)

    def pull(node: str) -> None:
        images[node].pull(pinned, _quiet, preparing.credentials)
        images[node].tag(pinned, tag)

    preparing.voice.line(f"{', '.join(targets)}: pull {pinned}")
    settled(ask_all(targets, pull))


def _through_folder(preparing: Preparing, tag: str, source: str, targets: Sequence[str]) -> None:
    """A file that every node sees: what flows through a step of Slurm's flows slowly."""
    images = preparing.fleet.images
    preparing.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = preparing.folder / f"{tag.replace('/', '-')}.tar"
    preparing.voice.line(f"{tag}: from {source} through {path} to {', '.join(targets)}")
    try:
        images[source].save_file(tag, str(path))
        settled(ask_all(targets, lambda node: images[node].load_file(str(path))))
    finally:
        with contextlib.suppress(OSError):
            path.unlink()


def _pushed(image: "ImageFacts | None", name: str) -> str:
    """The reference by digest that a push has given to an image."""
    repository = name.rpartition(":")[0]
    digests = image.repo_digests if image else ()
    for reference in digests:
        if reference.partition("@")[0] == repository:
            return reference
    raise errors.ImageError(f"the push of {name} gave it no digest", code="REG-DIGEST")


def _quiet(_: int, __: int) -> None:
    """Progress of work that runs on many nodes at once is not shown."""
