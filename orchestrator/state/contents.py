"""Which files of a sweep's folder are evidence, and their sha256 in SHA256SUMS."""

import hashlib
import os
import re
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path

from orchestrator import errors
from orchestrator.disk import on_disk
from orchestrator.state.files import keep
from orchestrator.state.sweep import Sweep

SUMS = "SHA256SUMS"
"""In the form of coreutils: ``sha256sum -c SHA256SUMS`` checks them too."""
_NO_EVIDENCE = re.compile(r"lock|SHA256SUMS|detached-.*\.log|.*\.new|.*\.folder", re.ASCII)


def files(sweep: Sweep) -> tuple[str, ...]:
    """Paths within the sweep's folder of every file that is evidence, sorted.

    Not among them: locks, files half written, what is no regular file, and what programs were
    given for one attempt, such as keys for mpirun.
    """
    given = cache(partial(_given, sweep))  # an attempt has many files and one record
    return tuple(sorted(path for path in _regular(sweep.folder) if not _is_given(path, given)))


def keep_sums(sweep: Sweep) -> None:
    """Write SHA256SUMS: one line per file that is evidence.

    Raises:
        StoreError, LocalError: the old file, if any, is untouched.
    """
    lines = [f"{sha256(sweep.folder / path)}  {path}\n" for path in files(sweep)]
    keep(sweep.folder / SUMS, "".join(lines).encode())


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


def _is_given(path: str, given: Callable[[str, int], frozenset[str] | None]) -> bool:
    """Whether a task was given this file before it started: settings and keys, never results."""
    first, *steps = path.split("/")
    if first != "attempts" or len(steps) != 3 or not re.fullmatch("a[0-9]{1,6}", steps[1]):
        return False
    trial, number, name = steps
    if name == "attempt.json" or name.endswith(".log"):
        return False
    names = given(trial, int(number[1:]))
    return names is None or name in names


def _given(sweep: Sweep, trial: str, number: int) -> frozenset[str] | None:
    """What tasks of an attempt were given; None of a damaged one: nobody knows what is a key."""
    try:
        attempt = sweep.attempt(trial, number)
    except errors.DlperfError:
        return None
    return frozenset(name for task in attempt.tasks for name in task.files)
