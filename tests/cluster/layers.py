"""Build the layers of the stand-in images, once per machine; a hash of the parts names a file."""

import fcntl
import gzip
import hashlib
import importlib.metadata
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.cluster.place import Place, TestbedError

SUITE = "bookworm"
PACKAGES = ("python3", "python-is-python3", "git", "libstdc++6", "usr-is-merged")
MPI = ("openmpi-bin", "python3-mpi4py", "openssh-server", "openssh-client")
# Manuals, and what only git's scripts in Perl and old encodings need; a pull is waited for often.
_REMOVED = ("share/man", "share/locale", "share/doc", "share/perl", "lib/*/perl", "lib/*/gconv")
# Training needs neither C++ headers and programs nor tests. It loads triton and most of cuDNN on
# GPUs only: without them the layer of the CUDA build has 3.2 GB instead of 4.4.
_LEFT_OUT = (
    *("torch/include/", "torch/share/", "torch/test/", "torch/bin/", ".."),
    *("triton/", "nvidia/cudnn/lib/libcudnn_"),
)
_KEPT = "torch/bin/torch_shm_manager"  # torch refuses to be imported without it
_UNNEEDED = ("__pycache__", "tests", "include")
_PYTHON = "usr/lib/python3/dist-packages"


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer of an image: a gzipped tar.

    Args:
        digest: sha256 of the gzipped bytes, without a prefix.
        diff_id: sha256 of the tar.
        size: of the gzipped bytes.
    """

    path: str
    digest: str
    diff_id: str
    size: int


def build_debian(place: Place, *more: str) -> Layer:
    """Build Debian with Python, git and more packages by mmdebstrap: about 40 s without a cache.

    Raises:
        TestbedError: mmdebstrap fails; ends with the end of its standard error.
    """
    packages = (*PACKAGES, *more)

    def fill(target: "_Target") -> None:
        trees = " ".join(f'"$1"/usr/{part}' for part in _REMOVED)
        hook = f"--customize-hook=rm -rf {trees}"
        argv = ["mmdebstrap", "--quiet", "--variant=essential", "--format=tar", hook]
        # It starts hundreds of programs, so it is known by its mark when a run is cut short.
        env = {**os.environ, **place.mark, "TMPDIR": str(target.folder)}
        child = subprocess.Popen(
            [*argv, f"--include={','.join(packages)}", SUITE, "-"],
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert child.stdout is not None
        assert child.stderr is not None
        with child:
            shutil.copyfileobj(child.stdout, target, 1 << 20)
            said = child.stderr.read().decode(errors="replace")
        if child.returncode:
            raise TestbedError(f"mmdebstrap: exit {child.returncode}: {said[-1500:]}")

    return _load_or_make(place, "debian", [SUITE, *packages, *_REMOVED], fill)


def build_torch(place: Place) -> Layer:
    """Copy PyTorch and all that it requires from the interpreter that runs this.

    Raises:
        TestbedError: this interpreter has no PyTorch, or is not of Debian's version.
    """
    try:
        names = sorted(list_required("torch"))
    except importlib.metadata.PackageNotFoundError as err:
        raise TestbedError(f"{sys.executable} has no {err.args[0]}; needed `make venv`") from err
    return _copy_distributions(place, "torch", names)


def build_pip(place: Place) -> Layer:
    """Copy pip from this interpreter, with setuptools, which builds its packages.

    Raises:
        TestbedError: this interpreter is not of Debian's version.
    """
    return _copy_distributions(place, "pip", ["pip", "setuptools"])


def build_files(place: Place, name: str, content: Mapping[str, bytes]) -> Layer:
    """Build a layer of a few files by path; files without a dot in their name are executable."""

    def fill(target: "_Target") -> None:
        with tarfile.open(fileobj=target, mode="w|") as tar:
            for path, data in sorted(content.items()):
                member = tarfile.TarInfo(path)
                member.size = len(data)
                member.mode = 0o644 if "." in path.rsplit("/", 1)[-1].removesuffix(".sh") else 0o755
                tar.addfile(member, io.BytesIO(data))

    parts = [f"{path} {hashlib.sha256(data).hexdigest()}" for path, data in sorted(content.items())]
    return _load_or_make(place, name, parts, fill)


def build_folders(place: Place, name: str, found: Mapping[str, Path]) -> Layer:
    """Copy whole folders of this machine to the given paths in the image.

    Compiled files, tests and static libraries are left out: no program needs them there.
    """

    def fill(target: "_Target") -> None:
        with tarfile.open(fileobj=target, mode="w|") as tar:
            for where, folder in found.items():
                tar.add(folder, where, filter=_drop_unneeded)

    states = [
        f"{where} {path.relative_to(folder)} {path.lstat().st_size} {path.lstat().st_mtime_ns}"
        for where, folder in found.items()
        for path in sorted(folder.rglob("*"))
        if "__pycache__" not in path.parts and not path.is_dir()
    ]
    return _load_or_make(place, name, [*_UNNEEDED, *states], fill)


class _Target(io.RawIOBase):
    """Write a layer's tar, gzipped, to a file, and hash both forms meanwhile."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self._tar = hashlib.sha256()
        self._file: BinaryIO = (folder / "layer.tar.gz").open("wb")
        self._gzip = gzip.GzipFile(fileobj=self._file, mode="wb", compresslevel=1, mtime=0)

    def writable(self) -> bool:
        """Return True: tarfile writes to it."""
        return True

    def write(self, data: "bytes | bytearray | memoryview") -> int:  # type: ignore[override]  # narrower
        """Add the next bytes of the tar."""
        self._tar.update(data)
        return self._gzip.write(data)

    def finish(self, path: Path) -> Layer:
        """Close the file and move it to its place."""
        self._gzip.close()
        self._file.close()
        with (self.folder / "layer.tar.gz").open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        size = (self.folder / "layer.tar.gz").stat().st_size
        (self.folder / "layer.tar.gz").rename(path)
        return Layer(str(path), digest, self._tar.hexdigest(), size)


def _load_or_make(
    place: Place, name: str, parts: Iterable[str], fill: Callable[[_Target], None]
) -> Layer:
    """Return the layer of these parts from the cache, or make it, in one process at a time."""
    key = f"{name}-{hashlib.sha256(chr(10).join(parts).encode()).hexdigest()[:16]}"
    place.cache.mkdir(parents=True, exist_ok=True)
    note = place.cache / f"{key}.json"
    with _hold_lock(place.cache / f"{key}.lock"):
        if not note.exists():
            work = place.cache / f"{key}.{place.run}"
            work.mkdir()
            try:
                target = _Target(work)
                fill(target)
                layer = target.finish(place.cache / f"{key}.tar.gz")
            finally:
                shutil.rmtree(work, ignore_errors=True)
            (place.cache / f"{key}.new").write_text(json.dumps(asdict(layer)))
            (place.cache / f"{key}.new").rename(note)
        said = json.loads(note.read_text())
    return Layer(**said)


@contextmanager
def _hold_lock(lock: Path) -> Iterator[None]:
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _copy_distributions(place: Place, name: str, distributions: Sequence[str]) -> Layer:
    if sys.version_info[:2] != (3, 11):
        raise TestbedError(f"Python {sys.version.split()[0]}; needed 3.11, as in Debian {SUITE}")

    def fill(target: "_Target") -> None:
        with tarfile.open(fileobj=target, mode="w|") as tar:
            for distribution in distributions:
                for path, where in _list_files(distribution):
                    tar.add(path, f"{_PYTHON}/{where}", filter=_give_to_root)

    versions = [
        f"{distribution} {importlib.metadata.version(distribution)}"
        for distribution in distributions
    ]
    return _load_or_make(place, name, [*versions, *_LEFT_OUT, _KEPT, sys.version], fill)


def list_required(name: str, path: Sequence[str] | None = None) -> set[str]:
    """Name a distribution and everything that it requires here, its requirements' extras included.

    Args:
        path: the folders where distributions are installed, by default those of this interpreter.

    Raises:
        PackageNotFoundError: one of them is not installed.
    """
    found: set[tuple[str, str]] = set()
    todo = [(canonicalize_name(name), "")]
    while todo:
        each = todo.pop()
        if each in found:
            continue
        found.add(each)
        for requirement in map(Requirement, _find(each[0], path).requires or ()):
            if requirement.marker is None or requirement.marker.evaluate({"extra": each[1]}):
                required = canonicalize_name(requirement.name)
                todo.extend((required, extra) for extra in ("", *requirement.extras))
    return {each for each, _ in found}


def _find(name: str, path: Sequence[str] | None) -> importlib.metadata.Distribution:
    where = sys.path if path is None else path
    for found in importlib.metadata.distributions(name=name, path=list(where)):
        return found
    raise importlib.metadata.PackageNotFoundError(name)


def _list_files(name: str) -> Iterator[tuple[str, str]]:
    """Yield the path of each file of a distribution, and its path below site-packages."""
    for file in importlib.metadata.files(name) or ():
        where = str(file)
        if where != _KEPT and _is_left_out(where):
            continue
        path = str(file.locate())
        if Path(path).is_file():
            yield path, where


def _is_left_out(where: str) -> bool:
    return where.startswith(_LEFT_OUT) or "/tests/" in where or where.endswith((".a", ".pyi"))


def _drop_unneeded(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    name = member.name.rsplit("/", 1)[-1]
    return None if name in _UNNEEDED or name.endswith(".a") else _give_to_root(member)


def _give_to_root(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    return member
