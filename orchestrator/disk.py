"""Files on this machine: put in place whole or not at all, and errors that say what to do."""

import contextlib
import errno
import os
import re
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from orchestrator import errors

# What is being written: NAME.THREAD.PID.new, by that thread of the process with that id.
_ASIDE = re.compile(r".+\.([0-9]{1,7})\.new")


@contextlib.contextmanager
def on_disk(path: Path, code: str = "LOCAL-FILE", fix: str = "") -> Iterator[None]:
    """Turn an OSError about ``path`` into STORE-FULL or, for any other cause, ``code``."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise errors.StoreError(
                f"no space left to write {path}", code="STORE-FULL", fix="free some disk"
            ) from error
        raise errors.LocalError(f"{path}: {error.strerror}", code=code, fix=fix) from error


def is_there(path: Path) -> bool:
    """Return True if a file or folder exists; where pathlib may answer False, raise an OSError."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def listed(folder: Path) -> list[Path]:
    """List a folder's entries, sorted by name; return an empty list if there is no folder."""
    try:
        return sorted(Path(folder, name) for name in os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []


def walk(
    folder: Path, code: str, *, outside: bool, above: tuple[Path, ...] = ()
) -> Iterator[tuple[Path, Path, str]]:
    """Yield everything below a folder that is no folder, through links too, by name.

    Each comes with its path without links, and why it has no contents; empty where it has.

    Args:
        code: of the LocalError for a folder that cannot be listed.
        outside: whether links that lead out of the folder are followed.
        above: the folders, without links, that were entered on the way to it.
    """
    above = above or (Path(os.path.realpath(folder)),)
    with on_disk(folder, code, "make it readable for this user"):
        names = sorted(os.listdir(folder))
        os.stat(os.path.join(folder, "."))  # one may be listed while nothing in it can be reached
    for path in (folder / name for name in names):
        real = Path(os.path.realpath(path))
        if not os.path.exists(path):
            yield path, real, f"a link to {real}, which is not there or may not be looked at"
        elif not outside and not real.is_relative_to(above[0]):
            yield path, real, f"a link to {real}, out of the folder"
        elif real in above:
            yield path, real, "a link to a folder that holds it"
        elif real.is_dir():
            yield from walk(path, code, outside=outside, above=(*above, real))
        else:
            yield path, real, "" if real.is_file() else "no file, but a FIFO, socket or device"


@contextlib.contextmanager
def replacing(
    path: Path,
    code: str = "LOCAL-FILE",
    fix: str = "",
    gate: contextlib.AbstractContextManager[object] | None = None,
) -> Iterator[BinaryIO]:
    """Yield a file that replaces ``path`` when the block ends well: synced, then renamed.

    Whatever goes wrong leaves what was there.

    Args:
        gate: held while the file takes its place.
    """
    # Two processes may write the same report, and two threads.
    aside = path.with_name(f"{path.name}.{threading.get_native_id()}.{os.getpid()}.new")
    with on_disk(path, code, fix):
        make_folder(path.parent)
        try:
            with open(aside, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            with gate or contextlib.nullcontext():
                aside.rename(path)
        except BaseException:
            with contextlib.suppress(OSError):
                aside.unlink()
            raise
        sync_folder(path.parent)


def make_folder(folder: Path) -> None:
    """Make a folder of the user's alone, and those above it, so that they outlive a power cut."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)
    sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Make a folder's entries, as created, renamed or removed so far, survive a power cut."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove_unfinished(files: Iterable[Path]) -> None:
    """Remove what processes that are no more were writing when they ended."""
    for path in files:
        named = _ASIDE.fullmatch(path.name)
        if named and not Path("/proc", named[1]).exists():
            with contextlib.suppress(OSError):
                path.unlink()
