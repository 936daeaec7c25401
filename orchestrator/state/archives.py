"""A sweep as one file, ``ID.tar.zst``: written so that equal sweeps give equal bytes, read safely.

An archive may come from anybody: it holds regular files in one folder, or it is refused.
"""

import contextlib
import io
import os
import re
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

import zstandard

from orchestrator import errors, words
from orchestrator.disk import make_folder, on_disk, replacing
from orchestrator.state import contents
from orchestrator.state.store import Store
from orchestrator.state.sweep import Sweep

SUFFIX = ".tar.zst"
MAGIC = b"\x28\xb5\x2f\xfd"
LEVEL = 10
MOST_BYTES = 64 << 30
MOST_FILES = 500_000
_IN_BYTES = 4 << 10  # a few bytes may say a block of 128 KiB
_COPY_BYTES = 1 << 20
_HEADER_BYTES = 4 << 20  # more than the headers of one member need
_WINDOW_BYTES = 128 << 20
_NAME = re.compile(r"[A-Za-z0-9_.][^/\0-\x1f\\]{0,254}")


def pack(sweep: Sweep, target: Path) -> contents.Survey:
    """Write the evidence of a sweep into one file; return what it holds and what is left out.

    The same files give the same bytes: members are sorted and have no owner, time or mode of
    their own.

    Raises:
        LocalError: ARCHIVE-INCOMPLETE; evidence would be missing.
    """
    found = contents.survey(sweep)
    if found.missing:
        missing = [f"{words.printable(path)}: {why}" for path, why in found.missing.items()]
        raise errors.LocalError(
            f"evidence of sweep {sweep.id} cannot be read: {'; '.join(missing)}",
            code="ARCHIVE-INCOMPLETE",
            fix="put the files themselves there, or remove what is no evidence",
        )
    if target.parent.resolve().is_relative_to(sweep.folder.resolve()):
        raise errors.UsageError(
            f"{words.printable(str(target))} lies in the sweep's own folder, whose files it holds",
            code="USAGE",
            fix="give an --output elsewhere",
        )
    sums = (contents.SUMS,) if (sweep.folder / contents.SUMS).is_file() else ()
    listed = tuple(sorted((*found.files, *sums)))
    compressor = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True)
    with (
        replacing(target, fix="choose another --output") as file,
        compressor.stream_writer(file, closefd=False) as stream,
        tarfile.open(fileobj=stream, mode="w|", format=tarfile.GNU_FORMAT) as archive,
    ):
        for path in listed:
            source = sweep.folder / path
            with on_disk(source, "STORE-RIGHTS", "make it readable"), open(source, "rb") as member:
                entry = tarfile.TarInfo(f"{sweep.id}/{path}")  # owner root, no time: as it begins
                entry.size, entry.mode = os.fstat(member.fileno()).st_size, 0o600
                archive.addfile(entry, member)
    return replace(found, files=listed)


def is_one(path: Path) -> bool:
    """Return True if a file is an archive, by its name or its first bytes."""
    try:
        if not path.is_file():
            return False
        with open(path, "rb") as file:
            return path.name.endswith(SUFFIX) or file.read(len(MAGIC)) == MAGIC
    except (OSError, ValueError):  # a name that no file can have
        return False


def unpack(path: Path, into: Path) -> Sweep:
    """Write an archive's files below ``into``, an empty folder; return its sweep.

    Raises:
        UsageError: ARCHIVE-DAMAGED, ARCHIVE-UNSAFE; some files may be written.
    """
    names: set[str] = set()
    with on_disk(path, "LOCAL-FILE", "make it readable for this user"), open(path, "rb") as file:
        stream = _Stream(path, file)
        try:
            with tarfile.open(fileobj=stream, mode="r|", bufsize=_COPY_BYTES) as archive:
                for member in archive:
                    _refuse_unsafe(path, member, names)
                    stream.allow(member.size + _HEADER_BYTES)
                    target = into / member.name
                    with on_disk(target, fix="set TMPDIR to a folder with space and rights"):
                        make_folder(target.parent)
                        source = archive.extractfile(member)
                        with open(target, "xb") as written:
                            while source and (piece := source.read(_COPY_BYTES)):
                                written.write(piece)
            stream.finish()
        except (tarfile.TarError, zstandard.ZstdError, EOFError, ValueError) as error:
            raise _damaged(path, str(error)) from error
    (folder,) = {name.partition("/")[0] for name in names} or {""}
    if f"{folder}/sweep.json" not in names:
        raise _damaged(path, "no sweep.json is in it")
    return Sweep(into / folder)


@dataclass(frozen=True, slots=True)
class OpenedSweep:
    """A sweep, and the archive that it was unpacked from, if any."""

    sweep: Sweep
    archive: Path | None

    @property
    def name(self) -> str:
        """Path to show in messages: the archive's, or the sweep's folder."""
        return str(self.archive or self.sweep.folder)


@contextlib.contextmanager
def opened(store: Store, name: str | None) -> Iterator[OpenedSweep]:
    """Open a sweep by id, its beginning, folder, playbook or archive; the newest for None.

    An archive is unpacked into a folder that is removed when the block ends.
    """
    if name and name.endswith((SUFFIX, ".json")) and not Path(name).exists():
        raise errors.UsageError(
            f"there is no file {words.shown(name)}",
            code="NO-SWEEP",
            fix="give the path of what `dlperf-orch archive` or `collect` wrote, or a sweep's id",
        )
    if name is None or not is_one(Path(name)):
        yield OpenedSweep(store.sweep(name), None)
        return
    with tempfile.TemporaryDirectory(prefix="dlperf-archive-") as folder:
        sweep = unpack(Path(name), Path(folder))
        sweep.record()
        yield OpenedSweep(sweep, Path(name))


class _Stream(io.RawIOBase):
    """A limited stream of an archive's decompressed bytes; checks the checksum too."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        super().__init__()
        decompressor = zstandard.ZstdDecompressor(max_window_size=_WINDOW_BYTES)
        self._path, self._file, self._frame = path, file, decompressor.decompressobj()
        self._held = b""
        self._more, self._left = _HEADER_BYTES, MOST_BYTES  # tarfile reads as it opens

    def allow(self, size: int) -> None:
        """Allow this many more bytes to be read."""
        self._more = size

    def read(self, size: int = -1) -> bytes:
        """Read the next bytes, fewer only at the end; refuse to read more than was allowed."""
        self._more, self._left = self._more - size, self._left - size
        if self._more < 0 or self._left < 0:
            raise _unsafe(self._path, "it", "has more bytes or larger headers than any of ours")
        pieces, missing = [self._held], size - len(self._held)
        while missing > 0 and not self._frame.eof and (piece := self._file.read(_IN_BYTES)):
            pieces.append(self._frame.decompress(piece))
            missing -= len(pieces[-1])
        content = b"".join(pieces)
        self._held = content[size:]
        return content[:size]

    def finish(self) -> None:
        """Read to the end, where the checksum of the whole is; refuse an archive that was cut."""
        while not self._frame.eof and (piece := self._file.read(_IN_BYTES)):
            self._frame.decompress(piece)
        if not self._frame.eof:
            raise _damaged(self._path, "it was cut: its end is missing")
        if self._frame.unused_data or self._file.read(1):
            raise _damaged(self._path, "something follows after its end")


def _refuse_unsafe(path: Path, member: tarfile.TarInfo, names: set[str]) -> None:
    """Refuse whatever we never write: links, devices, folders, names that leave, too much."""
    steps = member.name.split("/")
    is_inside = len(steps) > 1 and all(_NAME.fullmatch(it) and it.strip(".") for it in steps)
    is_beside = steps[0] == next(iter(names), member.name).partition("/")[0]
    is_plain = member.type in (tarfile.REGTYPE, tarfile.AREGTYPE) and not member.issparse()
    if not (is_inside and is_beside and is_plain) or member.name in names:
        raise _unsafe(path, member.name, "is none of the regular files of one sweep's folder")
    names.add(member.name)
    if len(names) > MOST_FILES or member.size > MOST_BYTES:
        raise _unsafe(path, member.name, f"is beyond {MOST_FILES} files, {MOST_BYTES} bytes")


def _damaged(path: Path, why: str) -> errors.UsageError:
    return errors.UsageError(
        f"{words.printable(str(path))} is no archive that can be read: {words.printable(why)}",
        code="ARCHIVE-DAMAGED",
        fix="get it anew, or write it anew with `dlperf-orch archive`",
    )


def _unsafe(path: Path, name: str, why: str) -> errors.UsageError:
    return errors.UsageError(
        f"{words.printable(str(path))} is not safe to open: {words.shown(name)} {why}",
        code="ARCHIVE-UNSAFE",
        fix="get it from whom you trust; `dlperf-orch archive` writes no such file",
    )
