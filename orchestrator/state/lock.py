"""File locks that the kernel releases when their holder ends, and that name the holder."""

import contextlib
import errno
import fcntl
import os
import shlex
import stat
import time
from pathlib import Path

from orchestrator import errors, processes
from orchestrator.disk import make_folder
from orchestrator.model.process import Holder
from orchestrator.state.files import now, ours

PATIENCE_S, AGAIN_S = 1.0, 0.02
EVERYBODYS = 0o666


def own(folder: Path) -> Holder:
    """Return this process as the holder of a lock, with the state folder that it works in."""
    return Holder(processes.me(), processes.user(), now(), str(folder.resolve()))


def refused(resource: str, holder: Holder | None, **where: str) -> errors.StoreError:
    """Return the error LOCKED: who holds the resource, and how to end that process.

    Args:
        resource: such as ``cluster lab``; empty where ``where`` names a node.
    """
    on, stop = "where it runs", "dlperf-orch stop"
    if holder is not None:
        on, stop = f"on {holder.process.host}", f"{stop} --state {shlex.quote(holder.folder)}"
    used = f"in use by {holder or 'another dlperf-orch'}"
    return errors.StoreError(
        f"{resource} is {used}" if resource else used,
        code="LOCKED",
        fix=f"wait for it, or end it {on}: a sweep by `{stop}`, anything else by Ctrl-C",
        **where,
    )


class Lock:
    """An exclusive lock on a file; its holder writes a ``Holder`` into it.

    Args:
        resource: what is locked, for messages, such as ``cluster lab``.
        folder: the state folder that the holder works in.
    """

    def __init__(self, path: Path, resource: str, folder: Path) -> None:
        self._path, self._resource, self._folder = path, resource, folder
        self._handle = -1

    def __enter__(self) -> "Lock":
        """Take the lock, or raise LOCKED."""
        with ours(self._path):
            self._handle = self._open()
        try:
            self._take()
            self._sign(f"{own(self._folder).record()}\n".encode())
        except BaseException:
            os.close(self._handle)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Release the lock; the file stays, since removing it could race with the next holder."""
        with contextlib.suppress(OSError):
            os.ftruncate(self._handle, 0)
        os.close(self._handle)

    def holder(self) -> Holder | None:
        """Return the holder named in the file, or None if the lock is free; do not take it.

        A process of another machine counts as the holder: whether it runs is not known here.
        """
        with ours(self._path):
            try:
                holder = Holder.read(self._path.read_text(errors="replace"))
            except (FileNotFoundError, NotADirectoryError):
                return None
        gone = holder and processes.is_here(holder.process) and not processes.runs(holder.process)
        return None if gone else holder

    def held_by(self) -> Holder | None:
        """Return the holder, or None; test by flock if the file names a process of another machine.

        A process that ended without a word, as with its machine, left its name in the file. What
        cannot be asked counts as held.
        """
        holder = self.holder()
        if holder is None or processes.is_here(holder.process):
            return holder
        with contextlib.suppress(OSError), open(self._path, "rb+") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return None
        return holder

    def _open(self) -> int:
        make_folder(self._path.parent)
        return os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def _sign(self, record: bytes) -> None:
        with ours(self._path):
            os.ftruncate(self._handle, 0)
            os.pwrite(self._handle, record, 0)

    def _take(self) -> None:
        """Take the lock; try for ``PATIENCE_S`` while its holder's name is missing or changes.

        The name may be stale, and another process may hold the lock only to test it.
        """
        deadline = time.monotonic() + PATIENCE_S
        before = None
        while True:
            try:
                fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                holder = self.holder()
                if (holder is not None and holder == before) or time.monotonic() > deadline:
                    raise refused(self._resource, holder) from None
                before = holder
            time.sleep(AGAIN_S)


class MachineLock(Lock):
    """A lock shared by all users of this machine, in a folder that all can write to."""

    def _open(self) -> int:
        flags = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        with contextlib.suppress(FileExistsError):
            made = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL | flags, EVERYBODYS)
            os.fchmod(made, EVERYBODYS)
            return made
        try:
            # Without O_CREAT: the kernel refuses that for others' files in /var/tmp, even to root.
            handle = os.open(self._path, os.O_RDWR | flags)
        except PermissionError:
            handle = os.open(self._path, os.O_RDONLY | flags)
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise OSError(errno.EINVAL, "it is no regular file")
        return handle

    def _sign(self, record: bytes) -> None:
        # Another user's file may be held, not written.
        with contextlib.suppress(OSError, errors.LocalError):
            super()._sign(record)
