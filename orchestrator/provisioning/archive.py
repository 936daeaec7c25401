"""Checks of downloaded tar archives, made before anything is unpacked."""

import lzma
import posixpath
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from orchestrator import errors

MOST_BYTES = 16 << 30
_MOST_MEMBERS = 200_000


def check(path: Path, *, most_bytes: int = MOST_BYTES) -> None:
    """Read a tar archive, compressed or not, from end to end; nothing is unpacked.

    Raises:
        ImageError: ARCHIVE; it is damaged, too large, or would write outside of its folder.
    """
    inspection = _Inspection(most_bytes)
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                inspection.add(member)
    except (tarfile.TarError, OSError, EOFError, ValueError, zlib.error, lzma.LZMAError) as error:
        raise errors.ImageError(
            f"{path.name} is no archive that can be read: {error}",
            code="ARCHIVE",
            fix="get it anew",
        ) from error
    inspection.finish()


class _Inspection:
    """Size, links and folders of an archive's members so far."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._size = self._count = 0
        self._links: set[str] = set()
        self._ways: set[str] = set()

    def add(self, member: tarfile.TarInfo) -> None:
        """Refuse a member that is unsafe by itself."""
        _refuse_unsafe(member)
        self._size, self._count = self._size + member.size, self._count + 1
        if self._size > self._most_bytes or self._count > _MOST_MEMBERS:
            raise _unsafe(member.name, f"is beyond {self._most_bytes} bytes, {_MOST_MEMBERS} files")
        name = posixpath.normpath(member.name)
        self._ways.update(_folders(name))
        if member.issym():
            self._links.add(name)
        elif member.islnk():  # to a link, it would be that link at another place
            target = posixpath.normpath(member.linkname)
            self._ways.update((*_folders(target), target))

    def finish(self) -> None:
        """Refuse members that go through links: each may stay inside, and two together leave."""
        if through := sorted(self._links & self._ways):
            raise _unsafe(through[0], "is a link that other members go through")


def _refuse_unsafe(member: tarfile.TarInfo) -> None:
    if not (member.isfile() or member.isdir() or member.issym() or member.islnk()):
        raise _unsafe(member.name, "is a device or a pipe")
    if _leaves(member.name):
        raise _unsafe(member.name, "would be written outside of its folder")
    if member.islnk() and _leaves(member.linkname):
        raise _unsafe(member.name, f"is a link to {member.linkname}")
    if member.issym() and (_leaves(_target(member)) or _climbs_late(member.linkname)):
        raise _unsafe(member.name, f"is a link to {member.linkname}")


def _leaves(path: str) -> bool:
    return path.startswith("/") or posixpath.normpath(path).split("/")[0] == ".."


def _target(member: tarfile.TarInfo) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(member.name), member.linkname))


def _climbs_late(target: str) -> bool:
    """Return True if ``..`` follows a name, which may be a link itself."""
    steps = [step for step in target.split("/") if step not in ("", ".")]
    first_name = next((at for at, step in enumerate(steps) if step != ".."), len(steps))
    return ".." in steps[first_name:]


def _folders(name: str) -> Iterator[str]:
    """The folders on the way to a member."""
    steps = name.split("/")
    return ("/".join(steps[:length]) for length in range(1, len(steps)))


def _unsafe(name: str, why: str) -> errors.ImageError:
    return errors.ImageError(
        f"the archive is not safe to unpack: {name} {why}", code="ARCHIVE", fix="get it anew"
    )
