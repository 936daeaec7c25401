"""Images, prepared: every node has the same derived image, built once and carried."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator import errors, images
from orchestrator.files import load, shipped
from orchestrator.images import Action, Recipe
from orchestrator.inputs import yaml_files
from orchestrator.model.site import Site
from orchestrator.provisioning import context, image_inputs
from orchestrator.provisioning.materials import Preparing

if TYPE_CHECKING:
    pass


def recipe(preparing: Preparing, name: str, before: Site | None) -> tuple[Recipe, Path]:
    """An image's recipe, as far as lock, bundle and the last provisioning know it; its folder."""
    image, folder = yaml_files.image(name)
    yaml_files.refuse(load.read(folder / "image.yaml"), image.unsaid())
    known = before.images.get(name) if before else None
    digest = preparing.lock.images.get(image.base)
    if digest is None and known is not None and known.base == image.base:
        digest = known.base_digest
    if preparing.wanted.relock:
        digest = None
    checksums = {
        url: preparing.lock.downloads[url]
        for url in image.downloads
        if url in preparing.lock.downloads
    }
    cached = frozenset(
        checksum for checksum in checksums.values() if preparing.downloads.cached(checksum)
    )
    bundled = {image.tag: image.id for image in preparing.bundle.images} if preparing.bundle else {}
    contents = context.files(folder, shipped.SCRIPTS)
    ignored = images.ignored(image, contents["Dockerfile"].decode(errors="replace"))
    if ignored:
        raise errors.ImageError(
            f"image {name} sets {', '.join(ignored)}, of which its Dockerfile takes no notice",
            code="IMAGE-FOLDER",
            fix="add the ARG to the Dockerfile, or leave the value out of image.yaml",
        )
    files = context.digests(contents)
    known_id = known.id if known else None
    return Recipe(image, digest, files, checksums, cached, bundled, known_id), folder


def resolved(preparing: Preparing, known: Recipe) -> Recipe:
    """The recipe with everything known: bases asked for, downloads learnt where that is allowed.

    Raises:
        ImageError: a base cannot be resolved; or a download's sha256 is not locked.
    """
    checksums, cached = dict(known.downloads), set(known.cached)
    for url in known.wanted:
        if url not in checksums:
            checksums[url] = image_inputs.learnt(preparing, known.image, url)
            cached.add(checksums[url])
    digest = known.base_digest
    if digest is None:
        digest = image_inputs.base_digest(preparing, known.image, checksums)
    if preparing.wanted.relock:
        preparing.lock = preparing.lock.extended({known.image.base: digest}, checksums)
    return replace(known, base_digest=digest, downloads=checksums, cached=frozenset(cached))


def shown(actions: Mapping[str, Sequence[Action]]) -> Iterator[tuple[str, str, str, str, str]]:
    """Rows of a table: image, kind, node, what, reason."""
    for name, of_image in actions.items():
        for action in of_image:
            yield name, action.kind, action.node or "this machine", action.what, action.reason
