"""Which digest of an image's base is believed, and which sha256 of what else goes in.

Of a base: with ``--lock`` what the registry or the archive says now; else the lock beside the
inventory (a bundle adds to it), else what the last provisioning used, else again the registry.
"""

import zipfile
from collections.abc import Mapping
from pathlib import Path

from orchestrator import errors, images
from orchestrator.images import ImageRecipe
from orchestrator.model.image import Image
from orchestrator.model.site import ImageRecord
from orchestrator.provisioning import archive, saved_image
from orchestrator.provisioning.materials import Preparing
from orchestrator.provisioning.saved_image import SavedImage


def known_base(preparing: Preparing, image: Image, record: ImageRecord | None) -> str | None:
    """The digest of an image's base by lock, bundle or the last provisioning, as ``sha256:...``.

    Args:
        record: what the last provisioning kept of this image.

    Returns:
        None where the registry or the archive must be asked (``base_digest``).
    """
    if preparing.options.relock:
        return None
    digest = preparing.lock.images.get(image.base)
    if digest is None and record is not None and record.base == image.base:
        return record.base_digest
    return digest


def learnt(preparing: Preparing, image: Image, url: str) -> str:
    """The sha256 of the file at ``url``, trusted on first download if ``--lock`` is given.

    Raises:
        ImageError: DOWNLOAD-UNLOCKED without ``--lock``; ARCHIVE if it is no safe archive or wheel.
    """
    if not preparing.options.relock:
        raise _unlocked(url)
    preparing.voice.line(
        f"{url}: downloaded without a known checksum, since --lock asks for it;"
        " its sha256 is recorded"
    )
    path, sha256 = preparing.downloads.learn(url)
    _look_into(path, image, url)
    return sha256


def fetched(preparing: Preparing, recipe: ImageRecipe, url: str) -> Path:
    """The file at ``url`` with the sha256 that is locked, checked before its first use.

    Raises:
        ImageError: DOWNLOAD-UNLOCKED, OFED-CHECKSUM, DOWNLOAD, or ARCHIVE if it is not safe.
    """
    sha256 = recipe.downloads.get(url)
    if sha256 is None:
        raise _unlocked(url)
    path = preparing.downloads.fetch(url, sha256)
    if sha256 not in recipe.cached:  # what was there already was looked into when it came
        _look_into(path, recipe.image, url)
    return path


def base_digest(preparing: Preparing, image: Image, checksums: Mapping[str, str]) -> str:
    """The digest of an image's base, from its registry or from the archive that holds it.

    Args:
        checksums: sha256 by URL.

    Raises:
        ImageError: the registry gives none; or ARCHIVE, the file holds another image.
    """
    if image.archive is not None:
        path = preparing.downloads.fetch(image.archive, checksums[image.archive])
        digest, host = archived(path, image).id, "its archive"
    else:
        origin = images.reference(image.base)
        host = preparing.mirror or origin.host
        first = next(iter(preparing.fleet.images.values()))
        source = f"{host}/{origin.repository}:{origin.tag}"
        digest = first.digest(source, preparing.credentials)
    preparing.voice.line(f"{image.base} is {digest}, says {host}")
    return digest


def archived(path: Path, image: Image) -> SavedImage:
    """The image's base in a file of `docker save`.

    Raises:
        ImageError: ARCHIVE, the file holds another image.
    """
    held = saved_image.images(path)
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


def _look_into(path: Path, image: Image, url: str) -> None:
    if url not in image.wheels:
        archive.check(path)
    elif not zipfile.is_zipfile(path):
        raise errors.ImageError(
            f"{url} gave no wheel: it is no ZIP file", code="ARCHIVE", fix="look at its URL"
        )
