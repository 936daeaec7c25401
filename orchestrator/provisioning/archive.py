"""Lists the images in files of `docker save`."""

import hashlib
import json
import lzma
import tarfile
import zlib
from pathlib import Path

from orchestrator import errors
from orchestrator.model.image import content_digest

_LIST = "manifest.json"
_MOST_OF_CONFIGURATION = 4 << 20  # bytes; one has a few kilobytes, and layers are far larger
_DAMAGES = (tarfile.TarError, OSError, EOFError, zlib.error, lzma.LZMAError)


def images(path: Path) -> dict[str, tuple[str, str]]:
    """Return the images in a file of ``docker save``, by name, without a Docker engine.

    Each as the sha256 of its configuration, which is its id, and the digest of its content.

    Raises:
        ImageError: ARCHIVE; not such a file, damaged, or cut short.
    """
    listed: bytes | None = None
    small: dict[str, bytes] = {}  # by name, everything that may be a configuration
    needed = "needed what `docker save` writes"
    try:
        with tarfile.open(path, "r|*") as archive:  # in one pass
            for member in archive:
                if not member.isfile() or member.size > _MOST_OF_CONFIGURATION:
                    continue
                file = archive.extractfile(member)
                content = file.read() if file else b""
                if member.name == _LIST:
                    listed = content
                elif content.startswith(b"{"):
                    small[member.name] = content
        if listed is None:
            raise _unreadable(f"{path.name} holds no {_LIST}; {needed}")
        return {
            name: _image(small[image["Config"]])
            for image in json.loads(listed)
            for name in image["RepoTags"] or ()
        }
    except _DAMAGES as error:
        raise _unreadable(f"{path.name} cannot be read: {error}; {needed}") from error
    except (ValueError, TypeError, KeyError) as error:
        seen = f"has a {_LIST} that does not say what lies in it: {error!r}"
        raise _unreadable(f"{path.name} {seen}; {needed}") from error


def _image(configuration: bytes) -> tuple[str, str]:
    said = json.loads(configuration)
    layers, settings = said["rootfs"]["diff_ids"], said.get("config") or {}
    digest = f"sha256:{hashlib.sha256(configuration).hexdigest()}"
    return digest, content_digest(layers, settings)


def _unreadable(cause: str) -> errors.ImageError:
    return errors.ImageError(cause, code="ARCHIVE", fix="get it anew")
