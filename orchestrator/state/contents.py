"""Which files of a sweep's folder are evidence, and their sha256 in SHA256SUMS."""

import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from orchestrator import errors
from orchestrator.disk import on_disk
from orchestrator.state.store import Sweep, write

SUMS = "SHA256SUMS"
"""In the form of coreutils: ``sha256sum -c SHA256SUMS`` checks them too."""
_NO_EVIDENCE = re.compile(r"lock|SHA256SUMS|detached-.*\.log|.*\.new|.*\.folder", re.ASCII)


def files(sweep: Sweep) -> tuple[str, ...]:
    """Paths within the sweep's folder of every file that is evidence, sorted.

    Not among them: locks, files half written, what is no regular file, and what programs were
    given for one attempt, such as keys for mpirun.
    """
    return tuple(sorted(path for path in _regular(sweep.folder) if not _is_given(sweep, path)))


def keep_sums(sweep: Sweep) -> None:
    """Write SHA256SUMS: one line for each file that is evidence.

    Raises:
        StoreError, LocalError: the old file, if any, is untouched.
    """
    lines = [f"{sha256(sweep.folder / path)}  {path}\n" for path in files(sweep)]
    write(sweep.folder / SUMS, "".join(lines).encode())


def sha256(path: Path) -> str:
    """Of a file's bytes.

    Raises:
        LocalError: STORE-RIGHTS.
    """
    with on_disk(path, "STORE-RIGHTS", "make it readable for this user"), open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _regular(folder: Path) -> Iterator[str]:
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not _NO_EVIDENCE.fullmatch(name)]
        for name in names:
            path = Path(place, name)
            if not _NO_EVIDENCE.fullmatch(name) and path.is_file() and not path.is_symlink():
                yield path.relative_to(folder).as_posix()


def _is_given(sweep: Sweep, path: str) -> bool:
    """Whether a task was given this file before it started: settings and keys, never results."""
    first, *steps = path.split("/")
    if first != "attempts" or len(steps) != 3 or not re.fullmatch("a[0-9]{1,6}", steps[1]):
        return False
    trial, number, name = steps
    if name == "attempt.json" or name.endswith(".log"):
        return False
    try:
        attempt = sweep.attempt(trial, int(number[1:]))
    except errors.DlperfError:
        return True  # damaged: nobody knows what is a key
    return any(name in task.files for task in attempt.tasks)
