"""Recipes of images: from image.yaml, lock, bundle and the last provisioning."""

from dataclasses import replace
from pathlib import Path

from orchestrator import errors, images
from orchestrator.files import shipped, yaml_reader
from orchestrator.images import HeldImage, ImageRecipe
from orchestrator.inputs import user_files
from orchestrator.model.site import Site
from orchestrator.provisioning import context, image_digests
from orchestrator.provisioning.materials import Preparing


def recipe(preparing: Preparing, name: str, before: Site | None) -> tuple[ImageRecipe, Path]:
    """An image's recipe with what lock, bundle and the last provisioning say, and its folder.

    Raises:
        ConfigError, UsageError: there is no such image, or its image.yaml is not valid.
        ImageError: IMAGE-FOLDER; the Dockerfile does not fit image.yaml.
    """
    image, folder = user_files.image(name)
    user_files.refuse(yaml_reader.read(folder / "image.yaml"), image.unsaid())
    record = before.images.get(name) if before else None
    digest = image_digests.known_base(preparing, image, record)
    checksums = {
        url: preparing.lock.downloads[url]
        for url in image.downloads
        if url in preparing.lock.downloads
    }
    cached = frozenset(
        checksum for checksum in checksums.values() if preparing.downloads.cached(checksum)
    )
    bundled = {
        image.tag: HeldImage(image.id, image.inputs, image.content)
        for image in (preparing.bundle.images if preparing.bundle else ())
    }
    contents = context.files(folder, shipped.SCRIPTS)
    ignored = images.ignored(image, contents["Dockerfile"].decode(errors="replace"))
    if ignored:
        raise errors.ImageError(
            f"image {name} sets {', '.join(ignored)}, of which its Dockerfile takes no notice",
            code="IMAGE-FOLDER",
            fix="add the ARG to the Dockerfile, or leave the value out of image.yaml",
        )
    files = context.digests(contents)
    known = frozenset((record.id, *record.ids.values()) if record else ())
    return ImageRecipe(image, digest, files, checksums, cached, bundled, known), folder


def resolved(preparing: Preparing, draft: ImageRecipe) -> ImageRecipe:
    """The recipe with the digest of its base and the sha256 of every download filled in.

    Raises:
        ImageError: a base cannot be resolved; DOWNLOAD-UNLOCKED without ``relock``.
    """
    checksums, cached = dict(draft.downloads), set(draft.cached)
    for url in draft.needed:
        if url not in checksums:
            checksums[url] = image_digests.learnt(preparing, draft.image, url)
            cached.add(checksums[url])
    digest = draft.base_digest
    if digest is None:
        digest = image_digests.base_digest(preparing, draft.image, checksums)
    if preparing.options.relock:
        preparing.lock = preparing.lock.extended({draft.image.base: digest}, checksums)
    return replace(draft, base_digest=digest, downloads=checksums, cached=frozenset(cached))
