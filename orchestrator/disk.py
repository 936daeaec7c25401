"""What the file system of this machine refuses, in errors that say what to do."""

import contextlib
import errno
from collections.abc import Iterator
from pathlib import Path

from orchestrator import errors


@contextlib.contextmanager
def on_disk(path: Path, code: str = "LOCAL-FILE", fix: str = "") -> Iterator[None]:
    """Turn an OSError about ``path`` into one of ours.

    Args:
        code: of whatever is not a full disk.

    Raises:
        StoreError: STORE-FULL.
        LocalError: anything else.
    """
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise errors.StoreError(
                f"no space left to write {path}", code="STORE-FULL", fix="free some disk"
            ) from error
        raise errors.LocalError(f"{path}: {error.strerror}", code=code, fix=fix) from error
