"""Reads which images a file of `docker save` holds, without a Docker engine."""

import hashlib
import json
import lzma
import tarfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from orchestrator import errors
from orchestrator.model.image import content_digest

_LIST = "manifest.json"
_MOST_BYTES = 4 << 20  # a configuration has a few kilobytes; layers are far larger


@dataclass(frozen=True, slots=True)
class SavedImage:
    """An image in a file: the sha256 of its configuration, and the digest of what it holds."""

    id: str
    content: str


def images(path: Path) -> dict[str, SavedImage]:
    """The images in the file, by name.

    Raises:
        ImageError: ARCHIVE; not a file of ``docker save``, damaged, or cut short.
    """
    try:
        listed, small = _read(path)
        return {
            name: _image(small[image["Config"]])
            for image in json.loads(listed)
            for name in image["RepoTags"] or ()
        }
    except (tarfile.TarError, OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise _unfit(path, f"cannot be read: {error}") from error
    except (ValueError, TypeError, KeyError) as error:
        raise _unfit(path, f"has a {_LIST} that does not say what lies in it: {error!r}") from error


def _image(configuration: bytes) -> SavedImage:
    said = json.loads(configuration)
    layers, settings = said["rootfs"]["diff_ids"], said.get("config") or {}
    digest = f"sha256:{hashlib.sha256(configuration).hexdigest()}"
    return SavedImage(digest, content_digest(layers, settings))


def _read(path: Path) -> tuple[bytes, Mapping[str, bytes]]:
    """The list of images, and everything by name that may be a configuration; in one pass."""
    listed = None
    small: dict[str, bytes] = {}
    with tarfile.open(path, "r|*") as archive:
        for member in archive:
            if not member.isfile() or member.size > _MOST_BYTES:
                continue
            file = archive.extractfile(member)
            content = file.read() if file else b""
            if member.name == _LIST:
                listed = content
            elif content.startswith(b"{"):
                small[member.name] = content
    if listed is None:
        raise _unfit(path, f"holds no {_LIST}")
    return listed, small


def _unfit(path: Path, why: str) -> errors.ImageError:
    return errors.ImageError(
        f"{path.name} {why}; needed what `docker save` writes", code="ARCHIVE", fix="get it anew"
    )
