"""Which files of a sweep's folder are evidence, and their sha256 in SHA256SUMS."""

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from orchestrator import errors
from orchestrator.disk import on_disk, walk
from orchestrator.state.files import keep
from orchestrator.state.sweep import Sweep

SUMS = "SHA256SUMS"
"""In the form of coreutils: ``sha256sum -c SHA256SUMS`` checks them too."""
# Among them the FIFOs that a killed supervisor leaves, such as r0.gate.
_NO_EVIDENCE = re.compile(
    r"lock|SHA256SUMS|detached-.*\.log|.*\.new|r[0-9]+\.(gate|alive|clock)", re.ASCII
)

_OF_ATTEMPT = re.compile(r"attempts/([^/]+)/a([0-9]{1,6})/([^/]+)", re.ASCII)
_DIGESTS: dict[tuple[int, ...], str] = {}


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
    """List a sweep's folder; links out of it are not followed, since they may lead to secrets."""

    @cache  # an attempt has many files and one record
    def list_given(trial: str, number: int) -> frozenset[str] | None:
        try:
            tasks = sweep.attempt(trial, number).tasks
        except errors.DlperfError:
            return None
        return frozenset(name for task in tasks for name in task.files)

    def is_secret(path: str) -> bool | None:
        """Return True if a task was given this file, such as a key; None if that is unknown."""
        found = _OF_ATTEMPT.fullmatch(path)
        if not found or found[3] == "attempt.json" or found[3].endswith(".log"):
            return False
        given = list_given(found[1], int(found[2]))
        return None if given is None else found[3] in given

    files, left_out, missing = list[str](), list[str](), dict[str, str]()
    root = Path(os.path.realpath(sweep.folder))
    for path, real, problem in walk(sweep.folder, "STORE-RIGHTS", outside=False):
        name = path.relative_to(sweep.folder).as_posix()
        # A link to a key is a key, by whatever name.
        names = {name, real.relative_to(root).as_posix()} if not problem else {name}
        secrets = {is_secret(it) for it in names}
        is_temporary = any(_NO_EVIDENCE.fullmatch(step) for it in names for step in it.split("/"))
        if is_temporary or (True in secrets and not problem):
            left_out.append(name)
        elif problem or None in secrets:
            missing[name] = problem or "its attempt.json cannot be read, so that it may be a key"
        else:
            files.append(name)
    return Survey(tuple(sorted(files)), tuple(left_out), missing)


def keep_sums(sweep: Sweep) -> None:
    """Write SHA256SUMS: one line per file that is evidence."""
    lines = [f"{sha256(sweep.folder / path)}  {path}\n" for path in survey(sweep).files]
    keep(sweep.folder / SUMS, "".join(lines).encode())


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal; what does not change is read once a command."""
    with on_disk(path, "STORE-RIGHTS", "make it readable for this user"), open(path, "rb") as file:
        seen = os.fstat(file.fileno())
        stamp = (seen.st_dev, seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns)
        if stamp not in _DIGESTS:
            _DIGESTS[stamp] = hashlib.file_digest(file, "sha256").hexdigest()
        return _DIGESTS[stamp]
