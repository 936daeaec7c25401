"""Downloads, stored by their sha256."""

import hashlib
import http.client
import os
import shutil
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

from orchestrator import errors
from orchestrator.disk import on_disk

Progress = Callable[[str, int, int | None], None]
"""Called with a URL, the bytes received, and the bytes of all, if the server reports them."""

_CHUNK = 1 << 16


class Downloads:
    """A folder of downloaded files, named by their sha256.

    Args:
        idle_s: the longest time without a byte.
        whole_s: seconds until the last byte.
        most_bytes: of a file.
    """

    def __init__(
        self,
        folder: Path,
        progress: Progress,
        *,
        idle_s: float = 30.0,
        whole_s: float = 4 * 3600.0,
        most_bytes: int = 16 << 30,
    ) -> None:
        self._folder = folder
        self._progress = progress
        self._idle_s = idle_s
        self._whole_s = whole_s
        self._most_bytes = most_bytes

    def cached(self, sha256: str) -> Path | None:
        """Return the file of that sha256, hashed again; remove a damaged one. None without one."""
        path = self._place(sha256)
        with on_disk(path):
            if not path.is_file():
                return None
            if hash_file(path) == sha256:
                return path
            path.unlink()
        return None

    def fetch(self, source: str | Path, sha256: str) -> Path:
        """Return the file of a URL or path, which must hash to ``sha256``; copied if missing.

        Raises:
            ImageError: OFED-CHECKSUM or DOWNLOAD; nothing of it is kept.
            StoreError, LocalError: this machine cannot keep it.
        """
        return self.cached(sha256) or self._store(source, sha256)[0]

    def learn(self, url: str) -> tuple[Path, str]:
        """Download ``url`` and return the file and its sha256, unchecked: only when locking.

        Raises:
            ImageError: OFED-CHECKSUM when it was cut, or DOWNLOAD; nothing of it is kept.
            StoreError, LocalError: this machine cannot keep it.
        """
        return self._store(url, None)

    def _place(self, sha256: str) -> Path:
        return self._folder / sha256.replace(":", "-")

    def _store(self, source: str | Path, needed: str | None) -> tuple[Path, str]:
        """Copy a file or what a URL gives into the folder; return its place and sha256."""
        with on_disk(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle, name = tempfile.mkstemp(dir=self._folder, prefix="part-")
        aside = Path(name)
        try:
            with on_disk(aside), open(handle, "wb") as file:
                if isinstance(source, Path):
                    with on_disk(source), open(source, "rb") as original:
                        shutil.copyfileobj(original, file)
                else:
                    for chunk in self._chunks(source):
                        file.write(chunk)
                file.flush()
                os.fsync(handle)
                digest = hash_file(aside)
                if needed not in (None, digest):
                    raise errors.ImageError(
                        f"{source} has {digest}; needed {needed}",
                        code="OFED-CHECKSUM",
                        fix="find out why it changed; only then lock it again with"
                        " provision --lock",
                    )
                aside.rename(self._place(digest))
        finally:
            aside.unlink(missing_ok=True)
        return self._place(digest), digest

    def _chunks(self, url: str) -> Iterator[bytes]:
        deadline, got = time.monotonic() + self._whole_s, 0
        try:
            if not url.startswith(("http://", "https://")):  # urllib knows file: and ftp:, too
                raise OSError("needed http:// or https://")
            request = urllib.request.Request(url, headers={"User-Agent": "dlperf-orch"})
            with urllib.request.urlopen(request, timeout=self._idle_s) as answer:
                length = answer.headers.get("Content-Length", "")
                total = int(length) if length.isdecimal() else None
                while chunk := answer.read1(_CHUNK):
                    got += len(chunk)
                    if got > self._most_bytes:
                        raise OSError(f"more than {self._most_bytes} bytes")
                    if time.monotonic() > deadline:
                        raise OSError(f"{got} bytes in {self._whole_s:g} s, and no end")
                    self._progress(url, got, total)
                    yield chunk
        except (OSError, http.client.HTTPException) as error:
            if isinstance(error, urllib.error.HTTPError):  # it is the answer, still open
                error.close()
            raise errors.ImageError(
                f"{url} cannot be downloaded: {str(error) or type(error).__name__}",
                code="DOWNLOAD",
                fix="give a URL that this machine reaches, or use a bundle",
            ) from error
        if total is not None and got != total:
            raise errors.ImageError(
                f"{url} gave {got} of {total} bytes", code="OFED-CHECKSUM", fix="try again"
            )


def hash_file(path: Path) -> str:
    """Return a file's digest as ``sha256:...``.

    Raises:
        OSError: it cannot be read.
    """
    with open(path, "rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"


def is_whole(path: Path, sha256: str) -> bool:
    """Return True if there is a file at a path, no link, with that digest.

    Raises:
        LocalError: it cannot be read.
    """
    with on_disk(path):
        return path.is_file() and not path.is_symlink() and hash_file(path) == sha256
