"""Reads the image ids in a file of `docker save`, without a Docker engine."""

import hashlib
import json
import lzma
import tarfile
import zlib
from collections.abc import Mapping
from pathlib import Path

from orchestrator import errors

_LIST = "manifest.json"
_MOST_BYTES = 4 << 20  # a configuration has a few kilobytes; layers are far larger


def ids(path: Path) -> dict[str, str]:
    """Image ids (the sha256 of the configuration) by image name.

    Raises:
        ImageError: ARCHIVE; not a file of ``docker save``, damaged, or cut short.
    """
    try:
        listed, small = _read(path)
        images = json.loads(listed)
        return {
            name: small[image["Config"]] for image in images for name in image["RepoTags"] or ()
        }
    except (tarfile.TarError, OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise _unfit(path, f"cannot be read: {error}") from error
    except (ValueError, TypeError, KeyError) as error:
        raise _unfit(path, f"has a {_LIST} that does not say what lies in it: {error!r}") from error


def _read(path: Path) -> tuple[bytes, Mapping[str, str]]:
    """The list of images, and the sha256 by name of everything small; one pass, nothing kept."""
    listed = None
    small: dict[str, str] = {}
    with tarfile.open(path, "r|*") as archive:
        for member in archive:
            if not member.isfile() or member.size > _MOST_BYTES:
                continue
            file = archive.extractfile(member)
            content = file.read() if file else b""
            small[member.name] = f"sha256:{hashlib.sha256(content).hexdigest()}"
            if member.name == _LIST:
                listed = content
    if listed is None:
        raise _unfit(path, f"holds no {_LIST}")
    return listed, small


def _unfit(path: Path, why: str) -> errors.ImageError:
    return errors.ImageError(
        f"{path.name} {why}; needed what `docker save` writes", code="ARCHIVE", fix="get it anew"
    )
