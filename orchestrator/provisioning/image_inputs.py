"""What goes into an image, had: downloads, and the digest of its base."""

import zipfile
from collections.abc import Mapping
from pathlib import Path

from orchestrator import errors, images
from orchestrator.images import Recipe
from orchestrator.model.image import Image
from orchestrator.provisioning import archive, saved_image
from orchestrator.provisioning.materials import Preparing


def learnt(preparing: Preparing, image: Image, url: str) -> str:
    """The sha256 of what lies at ``url``, trusted as it comes if the command line says so.

    Raises:
        ImageError: it does not say so; or what came is not what it must be.
    """
    if not preparing.wanted.relock:
        raise _unlocked(url)
    preparing.voice.line(
        f"{url}: downloaded without a known checksum, since --lock asks for it;"
        " its sha256 is recorded"
    )
    path, sha256 = preparing.downloads.learn(url)
    _look_into(path, image, url)
    return sha256


def fetched(preparing: Preparing, what: Recipe, url: str) -> Path:
    """The file at ``url``, as the lock knows it, looked into before anyone uses it.

    Raises:
        ImageError: it is not what it must be, or nothing says what it must be.
    """
    sha256 = what.downloads.get(url)
    if sha256 is None:
        raise _unlocked(url)
    path = preparing.downloads.fetch(url, sha256)
    if sha256 not in what.cached:  # what was there already was looked into when it came
        _look_into(path, what.image, url)
    return path


def base_digest(preparing: Preparing, image: Image, checksums: Mapping[str, str]) -> str:
    """The digest of an image's base: its registry says it, or the file that holds it.

    Args:
        checksums: sha256 by URL.

    Raises:
        ImageError: the registry does not say; or the file holds another image.
    """
    if image.archive is not None:
        path = preparing.downloads.fetch(image.archive, checksums[image.archive])
        digest, host = _held(path, image), "its archive"
    else:
        origin = images.reference(image.base)
        host = preparing.mirror or origin.host
        first = next(iter(preparing.fleet.images.values()))
        asked = f"{host}/{origin.repository}:{origin.tag}"
        digest = first.digest(asked, preparing.credentials)
    preparing.voice.line(f"{image.base} is {digest}, says {host}")
    return digest


def _held(path: Path, image: Image) -> str:
    """The id of the image's base in a file of `docker save`."""
    held = saved_image.ids(path)
    wanted = images.reference(image.base)
    found = {held[name] for name in held if images.reference(name) == wanted}
    if len(found) != 1:
        raise errors.ImageError(
            f"{image.archive} holds {', '.join(held) or 'no image with a name'};"
            f" needed {image.base}",
            code="ARCHIVE",
            fix="give its name to base: in image.yaml",
        )
    return found.pop()


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
