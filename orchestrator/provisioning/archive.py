"""Tar archives: checked before anything is unpacked, and the images in files of `docker save`."""

import hashlib
import json
import lzma
import posixpath
import tarfile
import zlib
from pathlib import Path, PurePosixPath

from orchestrator import errors
from orchestrator.model.image import content_digest

MOST_BYTES = 16 << 30
_MOST_MEMBERS = 200_000
_LIST = "manifest.json"
_MOST_OF_CONFIGURATION = 4 << 20  # bytes; one has a few kilobytes, and layers are far larger
_DAMAGES = (tarfile.TarError, OSError, EOFError, zlib.error, lzma.LZMAError)


def check(path: Path, *, most_bytes: int = MOST_BYTES) -> None:
    """Read a tar archive, compressed or not, from end to end; nothing is unpacked.

    Raises:
        ImageError: ARCHIVE; it is damaged, too large, or would write outside of its folder.
    """
    size = count = 0
    links: set[str] = set()
    ways: set[str] = set()  # folders on the way to a member
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                size, count = size + member.size, count + 1
                if size > most_bytes or count > _MOST_MEMBERS:
                    raise _unsafe(member.name, f"is beyond {most_bytes} bytes, {count} files")
                _refuse_unsafe(member)
                name = posixpath.normpath(member.name)
                ways.update(map(str, PurePosixPath(name).parents))
                if member.issym():
                    links.add(name)
                elif member.islnk():  # to a link, it would be that link at another place
                    target = posixpath.normpath(member.linkname)
                    ways.update((target, *map(str, PurePosixPath(target).parents)))
    except (*_DAMAGES, ValueError) as error:
        seen = f"is no archive that can be read: {error}"
        raise _unreadable(f"{path.name} {seen}") from error
    # Each of two links may stay inside, and both together leave.
    for name in sorted(links & ways):
        raise _unsafe(name, "is a link that other members go through")


def _refuse_unsafe(member: tarfile.TarInfo) -> None:
    if not (member.isfile() or member.isdir() or member.issym() or member.islnk()):
        raise _unsafe(member.name, "is a device or a pipe")
    if _leaves(member.name):
        raise _unsafe(member.name, "would be written outside of its folder")
    target = member.linkname
    if member.issym():
        target = posixpath.join(posixpath.dirname(member.name), target)
    # A `..` behind a name may follow a link: that of `lib/../x` is not `x`.
    steps = PurePosixPath(member.linkname).parts
    climbs = [at for at, step in enumerate(steps) if step == ".."]
    is_late = member.issym() and climbs != list(range(len(climbs)))
    if (member.issym() or member.islnk()) and (_leaves(target) or is_late):
        raise _unsafe(member.name, f"is a link to {member.linkname}")


def _leaves(path: str) -> bool:
    return path.startswith("/") or posixpath.normpath(path).split("/")[0] == ".."


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


def _unsafe(name: str, why: str) -> errors.ImageError:
    return _unreadable(f"the archive is not safe to unpack: {name} {why}")


def _unreadable(cause: str) -> errors.ImageError:
    return errors.ImageError(cause, code="ARCHIVE", fix="get it anew")
