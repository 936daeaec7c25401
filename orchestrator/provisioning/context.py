"""The build context of an image: its folder's files and its downloads as one tar."""

import hashlib
import io
import os
import stat
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from orchestrator import errors
from orchestrator.disk import on_disk

_MOST_BYTES = 64 << 20
_DOWNLOADS = "downloads"


def files(folder: Path, scripts: Path) -> dict[str, bytes]:
    """Return the files of an image's folder that go into its build, by path in the folder.

    Not image.yaml, whose values go in by themselves, nor pages, caches and hidden files: who edits
    a comment builds nothing anew.

    Args:
        scripts: a folder of those that images share; one that the Dockerfile names goes in too,
            unless the image's folder has its own.

    Raises:
        ImageError: IMAGE-FOLDER; it has no Dockerfile, or something that is no plain file.
        LocalError: something of it cannot be read.
    """
    contents: dict[str, bytes] = {}
    room = _MOST_BYTES
    for path in _paths(folder):
        with on_disk(path):
            status = path.lstat()
            if not stat.S_ISREG(status.st_mode) or status.st_size > room:
                raise _unfit(f"{path} is no plain file, or too large; needed at most 64 MiB in all")
            content = path.read_bytes()
        room -= len(content)
        contents[path.relative_to(folder).as_posix()] = content
    if "Dockerfile" not in contents:
        raise _unfit(f"{folder} has no Dockerfile; needed one to build an image from")
    lines = contents["Dockerfile"].decode(errors="replace").splitlines()
    copied = {word for line in lines if line.startswith("COPY ") for word in line.split()}
    shared = {}
    for name in sorted(copied):
        path = scripts / name
        if path.suffix == ".sh" and path.parent == scripts and path.is_file():
            with on_disk(path):
                shared[name] = path.read_bytes()
    return {**shared, **contents}


def _paths(folder: Path) -> Iterator[Path]:
    """Yield everything below the folder that goes in and is no folder, in the order of names."""
    with on_disk(folder):
        inside = sorted(folder.iterdir())
    for path in inside:
        if path.name.startswith(".") or path.name == "__pycache__" or path.suffix == ".md":
            continue
        if path.is_dir() and not path.is_symlink():
            yield from _paths(path)
        elif path.name != "image.yaml":
            yield path


def _unfit(cause: str) -> errors.ImageError:
    return errors.ImageError(cause, code="IMAGE-FOLDER", fix="compare it with a shipped folder")


def digests(contents: Mapping[str, bytes]) -> dict[str, str]:
    """Return the sha256 of files, by path."""
    return {
        name: f"sha256:{hashlib.sha256(content).hexdigest()}" for name, content in contents.items()
    }


def write(contents: Mapping[str, bytes], downloads: Mapping[str, Path], to: Path) -> None:
    """Write the context as a tar that depends on nothing but its parts, and is never in memory.

    Args:
        downloads: by the name that each has in the build, below ``downloads/``; that folder is
            there even if it is empty, so that a Dockerfile can copy it.

    Raises:
        StoreError, LocalError: it cannot be written; a part of it may lie there.
    """
    placed = {f"{_DOWNLOADS}/{name}": path for name, path in sorted(downloads.items())}
    parents = (str(folder) for name in (*contents, *placed) for folder in Path(name).parents)
    with on_disk(to), tarfile.open(to, "w", format=tarfile.GNU_FORMAT) as archive:
        for folder in sorted({_DOWNLOADS, *parents} - {"."}):
            archive.addfile(_entry(folder, 0, tarfile.DIRTYPE, 0o755))
        for name, content in sorted(contents.items()):
            archive.addfile(_entry(name, len(content)), io.BytesIO(content))
        for name, path in placed.items():
            with open(path, "rb") as file:
                archive.addfile(_entry(name, os.fstat(file.fileno()).st_size), file)


def _entry(
    name: str, size: int, kind: bytes = tarfile.REGTYPE, mode: int = 0o644
) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)  # owner root, no time: as TarInfo begins
    entry.size, entry.type, entry.mode = size, kind, mode
    return entry
