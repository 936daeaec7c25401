"""Downloads, stored by their sha256."""

import hashlib
import http.client
import os
import shutil
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

from orchestrator import errors
from orchestrator.disk import on_disk

_CHUNK = 1 << 16


class Downloads:
    """A folder of downloaded files, named by their sha256.

    Args:
        show: called with a text that reports the progress of a download.
        idle_s: the longest time without a byte.
    """

    def __init__(self, folder: Path, show: Callable[[str], None], *, idle_s: float = 30.0) -> None:
        self.folder, self._show, self._idle_s = folder, show, idle_s

    def cached(self, sha256: str) -> Path | None:
        """Return the stored file, hashed again; None if there is none. Remove a damaged one."""
        path = self.folder / sha256.replace(":", "-")
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
            ImageError: OFED-CHECKSUM or DOWNLOAD; the partial file is removed.
            StoreError, LocalError: this machine cannot keep it.
        """
        return self.cached(sha256) or self.store(source, sha256)[0]

    def store(self, source: str | Path, needed: str | None) -> tuple[Path, str]:
        """Copy a file or what a URL gives into the folder; return its place and sha256.

        Args:
            needed: the expected sha256; None accepts any, which only locking may do.

        Raises:
            As ``fetch``; OFED-CHECKSUM also for a truncated download.
        """
        with on_disk(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle, name = tempfile.mkstemp(dir=self.folder, prefix="part-")
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
                path = aside.rename(self.folder / digest.replace(":", "-"))
        finally:
            aside.unlink(missing_ok=True)
        return path, digest

    def _chunks(self, url: str) -> Iterator[bytes]:
        got = 0
        try:
            if not url.startswith(("http://", "https://")):  # urllib would open file: and ftp: too
                raise OSError("needed http:// or https://")
            request = urllib.request.Request(url, headers={"User-Agent": "dlperf-orch"})
            with urllib.request.urlopen(request, timeout=self._idle_s) as answer:
                length = answer.headers.get("Content-Length", "")
                total = int(length) if length.isdecimal() else None
                while chunk := answer.read1(_CHUNK):
                    got += len(chunk)
                    self._show(f"{url}: {got >> 20} MiB")
                    yield chunk
        except (OSError, http.client.HTTPException) as error:
            if isinstance(error, urllib.error.HTTPError):  # the error is the open response
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
    with open(path, "rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"


def is_whole(path: Path, sha256: str) -> bool:
    """Return True if there is a file at a path, no link, with that digest."""
    with on_disk(path):
        return path.is_file() and not path.is_symlink() and hash_file(path) == sha256
