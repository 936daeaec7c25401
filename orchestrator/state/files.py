"""Files as the state folder has them: whole or not there, with JSON and times of one form."""

import contextlib
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, TypeAlias

from orchestrator import disk
from orchestrator.disk import on_disk
from orchestrator.model.facts import JSON

Gate: TypeAlias = contextlib.AbstractContextManager[object]
RIGHTS = ("STORE-RIGHTS", "choose another folder with --state, or --out for reports")


def now() -> str:
    """Return the time in the form of all our files: UTC, ISO 8601, milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def dumps(document: JSON, *, indent: int | None = 1) -> str:
    """Serialize a document to JSON without NaN, in the document's own order."""
    return json.dumps(document, allow_nan=False, ensure_ascii=False, indent=indent)


def ours(path: Path) -> contextlib.AbstractContextManager[None]:
    """Turn an OSError about a file of the state folder into an error of ours."""
    return on_disk(path, *RIGHTS)


def read(path: Path) -> bytes | None:
    """Read a file of ours; return None if there is no file."""
    with ours(path):
        try:
            return path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None


def write(path: Path, content: bytes, gate: Gate | None = None) -> None:
    """Write a whole file as ``disk.replacing`` does: an error leaves the old one untouched."""
    with replacing(path, gate) as file:
        file.write(content)


def keep(path: Path, content: bytes) -> None:
    """Write a whole file as ``write`` does, unless it is there already: syncing takes its time."""
    with contextlib.suppress(OSError):
        if not path.is_symlink() and path.read_bytes() == content:
            return
    write(path, content)


def replacing(path: Path, gate: Gate | None = None) -> contextlib.AbstractContextManager[BinaryIO]:
    """Return the file that replaces ``path`` when its block ends well, as of ``disk.replacing``."""
    return disk.replacing(path, *RIGHTS, gate)
