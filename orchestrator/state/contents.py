"""Which files of a sweep's folder are evidence, and their sha256 in SHA256SUMS."""

import hashlib
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from orchestrator import errors
from orchestrator.disk import on_disk, walk
from orchestrator.state.files import keep
from orchestrator.state.sweep import Sweep

GIVEN = "its tasks were given it"
UNKNOWN = "its attempt.json cannot be read, so that it may be a key"
SUMS = "SHA256SUMS"
"""In the form of coreutils: ``sha256sum -c SHA256SUMS`` checks them too."""
# Among them the FIFOs that a killed supervisor leaves, such as r0.gate.
_NO_EVIDENCE = re.compile(
    r"lock|SHA256SUMS|detached-.*\.log|.*\.new|.*\.folder|r[0-9]+\.(gate|alive|clock)", re.ASCII
)


@dataclass(frozen=True, slots=True)
class Survey:
    """The files in a sweep's folder, by paths relative to it.

    Args:
        files: every file that is evidence, also behind links within the folder; sorted.
        left_out: what is no evidence: locks, files half written, and what programs were given for
            one attempt, such as keys for mpirun.
        missing: by path, why what may be evidence cannot be read from here.
    """

    files: tuple[str, ...]
    left_out: tuple[str, ...]
    missing: Mapping[str, str]


def survey(sweep: Sweep) -> Survey:
    """List a sweep's folder; links out of it are not followed, since they may lead to secrets.

    Raises:
        LocalError: STORE-RIGHTS, a folder cannot be listed.
    """

    @cache  # an attempt has many files and one record
    def list_given(trial: str, number: int) -> frozenset[str] | None:
        try:
            tasks = sweep.attempt(trial, number).tasks
        except errors.DlperfError:
            return None
        return frozenset(name for task in tasks for name in task.files)

    files, left_out, missing = list[str](), list[str](), dict[str, str]()
    root = Path(os.path.realpath(sweep.folder))
    for path, real, problem in walk(sweep.folder, "STORE-RIGHTS", outside=False):
        name = path.relative_to(sweep.folder).as_posix()
        # A link to a key is a key, by whatever name.
        names = {name, real.relative_to(root).as_posix()} if not problem else {name}
        secret = next(filter(None, (_secret(it, list_given) for it in names)), "")
        if any(_NO_EVIDENCE.fullmatch(step) for it in names for step in it.split("/")):
            left_out.append(name)
        elif problem or secret == UNKNOWN:
            missing[name] = problem or secret
        elif secret:
            left_out.append(name)
        else:
            files.append(name)
    return Survey(tuple(sorted(files)), tuple(left_out), missing)


def keep_sums(sweep: Sweep) -> None:
    """Write SHA256SUMS: one line per file that is evidence.

    Raises:
        StoreError, LocalError: the old file, if any, is untouched.
    """
    lines = [f"{sha256(sweep.folder / path)}  {path}\n" for path in survey(sweep).files]
    keep(sweep.folder / SUMS, "".join(lines).encode())


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal; an unchanged file is read once a command.

    Raises:
        LocalError: STORE-RIGHTS.
    """
    with on_disk(path, "STORE-RIGHTS", "make it readable for this user"):
        status = path.stat()
        stamp = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        return _digest(path, stamp)


@cache
def _digest(path: Path, _stamp: tuple[int, ...]) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _secret(path: str, list_given: Callable[[str, int], frozenset[str] | None]) -> str:
    """Say whether a task was given this file before it started: settings and keys, never results.

    Returns:
        GIVEN; UNKNOWN if the attempt's record is damaged; empty for a file that is no secret.
    """
    first, *steps = path.split("/")
    if first != "attempts" or len(steps) != 3 or not re.fullmatch("a[0-9]{1,6}", steps[1]):
        return ""
    trial, number, name = steps
    if name == "attempt.json" or name.endswith(".log"):
        return ""
    names = list_given(trial, int(number[1:]))
    if names is None:
        return UNKNOWN
    return GIVEN if name in names else ""
