"""Recipes of images: from image.yaml, lock, bundle and the last provisioning.

The digest of a base is, with ``--lock``, what the registry or the archive says now; else that of
the lock beside the inventory (a bundle adds to it), else what the last provisioning used, else
again what the registry says.
"""

import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path

from orchestrator import errors
from orchestrator.files import shipped, yaml_reader
from orchestrator.inputs import user_files
from orchestrator.model.image import Image
from orchestrator.model.site import Site
from orchestrator.planning import images
from orchestrator.planning.images import HeldImage, ImageRecipe
from orchestrator.provisioning import archive, context
from orchestrator.provisioning.materials import Preparing


def recipe(preparing: Preparing, name: str, before: Site | None) -> tuple[ImageRecipe, Path]:
    """Return an image's recipe as far as it is known without asking anyone, and its folder.

    Raises:
        ConfigError, UsageError: there is no such image, or its image.yaml is not valid.
        ImageError: IMAGE-FOLDER; the Dockerfile does not fit image.yaml.
    """
    image, folder = user_files.image(name)
    user_files.refuse(yaml_reader.read(folder / "image.yaml"), image.unsaid())
    record = before.images.get(name) if before else None
    digest = None
    if not preparing.relock:
        digest = preparing.lock.images.get(image.base)
        if digest is None and record is not None and record.base == image.base:
            digest = record.base_digest
    locked = preparing.lock.downloads
    checksums = {url: locked[url] for url in image.downloads if url in locked}
    cached = frozenset(
        sha256 for sha256 in checksums.values() if preparing.downloads.cached(sha256)
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


def resolve(preparing: Preparing, draft: ImageRecipe) -> ImageRecipe:
    """Return the recipe with the digest of its base and the sha256 of every download.

    With ``--lock`` a file is trusted on its first download, and its sha256 is recorded.

    Raises:
        ImageError: a base cannot be resolved; DOWNLOAD-UNLOCKED without ``relock``; ARCHIVE, a
            download is no archive or wheel, or an archive holds another image.
    """
    image, voice = draft.image, preparing.voice
    checksums, cached = dict(draft.downloads), set(draft.cached)
    for url in draft.needed:
        if url not in checksums:
            if not preparing.relock:
                raise _unlocked(url)
            voice.line(
                f"{url}: downloaded without a known checksum, since --lock asks for it;"
                " its sha256 is recorded"
            )
            path, checksums[url] = preparing.downloads.learn(url)
            _look_into(path, url)
            cached.add(checksums[url])
    digest = draft.base_digest
    if digest is None:
        if image.archive is not None:
            path = preparing.downloads.fetch(image.archive, checksums[image.archive])
            (digest, _), host = find_archived(path, image), "its archive"
        else:
            origin = images.reference(image.base)
            host = preparing.mirror or origin.host
            first = next(iter(preparing.fleet.images.values()))
            source = f"{host}/{origin.repository}:{origin.tag}"
            digest = first.digest(source, preparing.credentials)
        voice.line(f"{image.base} is {digest}, says {host}")
    if preparing.relock:
        preparing.lock = preparing.lock.extend({image.base: digest}, checksums)
    return replace(draft, base_digest=digest, downloads=checksums, cached=frozenset(cached))


def fetch(preparing: Preparing, recipe: ImageRecipe, url: str) -> Path:
    """Return the file at ``url`` with the sha256 that is locked, checked before its first use.

    Raises:
        ImageError: DOWNLOAD-UNLOCKED, OFED-CHECKSUM, DOWNLOAD, or ARCHIVE if it is none.
    """
    sha256 = recipe.downloads.get(url)
    if sha256 is None:
        raise _unlocked(url)
    path = preparing.downloads.fetch(url, sha256)
    if sha256 not in recipe.cached:  # what was there already was looked into when it came
        _look_into(path, url)
    return path


def find_archived(path: Path, image: Image) -> tuple[str, str]:
    """Return id and content digest of the image's base in a file of `docker save`.

    Raises:
        ImageError: ARCHIVE, the file holds another image.
    """
    held = archive.images(path)
    base = images.reference(image.base)
    matches = {held[name] for name in held if images.reference(name) == base}
    if len(matches) != 1:
        raise errors.ImageError(
            f"{image.archive} holds {', '.join(held) or 'no image with a name'};"
            f" needed {image.base}",
            code="ARCHIVE",
            fix="give its name to base: in image.yaml",
        )
    return matches.pop()


def _unlocked(url: str) -> errors.ImageError:
    return errors.ImageError(
        f"no checksum is known for {url}",
        code="DOWNLOAD-UNLOCKED",
        fix="provision --lock accepts it once and records its sha256",
    )


def _look_into(path: Path, url: str) -> None:
    """Refuse a web page that came in the place of an archive."""
    if not tarfile.is_tarfile(path) and not zipfile.is_zipfile(path):
        raise errors.ImageError(
            f"{url} gave neither a tar archive nor a wheel", code="ARCHIVE", fix="look at its URL"
        )
