"""Downloads, stored by their sha256."""

import contextlib
import hashlib
import http.client
import os
import shutil
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from orchestrator import errors
from orchestrator.disk import on_disk
from orchestrator.model.bundle import FileSeen

Progress = Callable[[str, int, int | None], None]
"""Called with a URL, the bytes received, and the bytes of all, if the server reports them."""

_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of a download.

    Args:
        idle_s: seconds without a byte.
        whole_s: seconds until the last byte.
        most_bytes: of the file.
    """

    idle_s: float = 30.0
    whole_s: float = 4 * 3600.0
    most_bytes: int = 16 << 30


class Downloads:
    """A folder of downloaded files, named by their sha256."""

    def __init__(self, folder: Path, progress: Progress, bounds: Bounds | None = None) -> None:
        self._folder = folder
        self._progress = progress
        self._bounds = bounds or Bounds()

    def cached(self, sha256: str) -> Path | None:
        """Return the file of that sha256, hashed again; remove a damaged one. None without one."""
        path = self._place(sha256)
        with on_disk(path):
            if not path.is_file():
                return None
            if hash_file(path).sha256 == sha256:
                return path
            path.unlink()
        return None

    def fetch(self, url: str, sha256: str) -> Path:
        """Return the file at ``url``, which must hash to ``sha256``; download it if missing.

        Raises:
            ImageError: OFED-CHECKSUM or DOWNLOAD; nothing of it is kept.
            StoreError, LocalError: this machine cannot keep it.
        """
        if path := self.cached(sha256):
            return path
        with self._receive(url) as (aside, digest):
            if digest != sha256:
                raise errors.ImageError(
                    f"{url} gave {digest}; the lock has {sha256}",
                    code="OFED-CHECKSUM",
                    fix="find out why it changed; only then lock it again with provision --lock",
                )
            return self._keep(aside, digest)

    def learn(self, url: str) -> tuple[Path, str]:
        """Download ``url`` and return the file and its sha256, unchecked: only when locking.

        Raises:
            ImageError: OFED-CHECKSUM when it was cut, or DOWNLOAD; nothing of it is kept.
            StoreError, LocalError: this machine cannot keep it.
        """
        with self._receive(url) as (aside, digest):
            return self._keep(aside, digest), digest

    def adopt(self, file: Path, sha256: str) -> Path:
        """Copy a file of this machine, which must hash to ``sha256``.

        Raises:
            ImageError: OFED-CHECKSUM; nothing of it is kept.
            StoreError, LocalError: this machine cannot keep it.
        """
        with self._aside() as aside:
            with on_disk(file):
                shutil.copyfile(file, aside)
                digest = hash_file(aside).sha256
            if digest != sha256:
                raise errors.ImageError(
                    f"{file} has {digest}; needed {sha256}",
                    code="OFED-CHECKSUM",
                    fix="make the bundle again",
                )
            return self._keep(aside, digest)

    def _place(self, sha256: str) -> Path:
        return self._folder / sha256.replace(":", "-")

    @contextlib.contextmanager
    def _aside(self) -> Iterator[Path]:
        """Yield a new file in the folder, removed afterwards unless it was renamed."""
        with on_disk(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle, name = tempfile.mkstemp(dir=self._folder, prefix="part-")
        os.close(handle)
        try:
            yield Path(name)
        finally:
            Path(name).unlink(missing_ok=True)

    @contextlib.contextmanager
    def _receive(self, url: str) -> Iterator[tuple[Path, str]]:
        """Download ``url`` into a file aside; yield it and its sha256."""
        digest = hashlib.sha256()
        with self._aside() as aside:
            with on_disk(aside), open(aside, "wb") as file:
                for chunk in self._chunks(url):
                    digest.update(chunk)
                    file.write(chunk)
            yield aside, f"sha256:{digest.hexdigest()}"

    def _keep(self, aside: Path, sha256: str) -> Path:
        path = self._place(sha256)
        with on_disk(path):
            with open(aside, "rb") as file:
                os.fsync(file.fileno())
            aside.rename(path)
        return path

    def _chunks(self, url: str) -> Iterator[bytes]:
        deadline = time.monotonic() + self._bounds.whole_s
        got = 0
        try:
            with _OPENER.open(url, timeout=self._bounds.idle_s) as answer:
                length = answer.headers.get("Content-Length", "")
                total = int(length) if length.isdecimal() else None
                while chunk := answer.read1(_CHUNK):
                    got += len(chunk)
                    self._refuse_too_much(url, got, deadline)
                    self._progress(url, got, total)
                    yield chunk
        except (OSError, http.client.HTTPException) as error:
            if isinstance(error, urllib.error.HTTPError):  # it is the answer, still open
                error.close()
            raise _failed(url, str(error) or type(error).__name__) from error
        if total is not None and got != total:
            raise errors.ImageError(
                f"{url} gave {got} of {total} bytes", code="OFED-CHECKSUM", fix="try again"
            )

    def _refuse_too_much(self, url: str, got: int, deadline: float) -> None:
        if got > self._bounds.most_bytes:
            raise _failed(url, f"more than {self._bounds.most_bytes} bytes")
        if time.monotonic() > deadline:
            raise _failed(url, f"{got} bytes in {self._bounds.whole_s:g} s, and no end")


def hash_file(path: Path) -> FileSeen:
    """Return a file's sha256 and size, from its bytes.

    Raises:
        OSError: it cannot be read.
    """
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256")
        return FileSeen(f"sha256:{digest.hexdigest()}", file.tell())


def present(folder: Path, files: Iterable[str]) -> dict[str, FileSeen]:
    """Return size and sha256 of the files that exist in the folder, by path; links are ignored.

    Raises:
        LocalError: one cannot be read.
    """
    files_seen = {}
    for name in files:
        path = folder / name
        with on_disk(path):
            if path.is_file() and not path.is_symlink():
                files_seen[name] = hash_file(path)
    return files_seen


def _opener() -> urllib.request.OpenerDirector:
    """Return an opener for HTTP and HTTPS, without urllib's file: and ftp:."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPRedirectHandler(),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.UnknownHandler(),
    ):
        opener.add_handler(handler)
    opener.addheaders = [("User-Agent", "dlperf-orch")]
    return opener


_OPENER = _opener()


def _failed(url: str, why: str) -> errors.ImageError:
    return errors.ImageError(
        f"{url} cannot be downloaded: {why}",
        code="DOWNLOAD",
        fix="give a URL that this machine reaches, or use a bundle",
    )
