"""Locks that end with their holder, however that ends, and say who it is."""

import contextlib
import errno
import fcntl
import getpass
import os
import stat
import time
from datetime import UTC, datetime
from pathlib import Path

from orchestrator import errors, processes
from orchestrator.disk import make_folder, on_disk
from orchestrator.model.process import Holder

PATIENCE_S, AGAIN_S = 1.0, 0.02
EVERYBODYS = 0o666


def own(folder: Path) -> Holder:
    """This process as a holder that works in a state folder."""
    since = datetime.now(UTC).isoformat(timespec="milliseconds")
    return Holder(processes.me(), getpass.getuser(), since, str(folder.resolve()))


def refused(what: str, holder: Holder | None, **where: str) -> errors.StoreError:
    """The error that says who holds what is asked for, and how that one is ended.

    Args:
        what: such as ``cluster lab``; empty where ``where`` names a node.
    """
    on, stop = "where it runs", "dlperf-orch stop"
    if holder is not None:
        on, stop = f"on {holder.process.host}", f"{stop} --state {holder.folder}"
    used = f"in use by {holder or 'another dlperf-orch'}"
    return errors.StoreError(
        f"{what} is {used}" if what else used,
        code="LOCKED",
        fix=f"wait for it, or end it {on}: a sweep by `{stop}`, anything else by Ctrl-C",
        **where,
    )


class Lock:
    """An exclusive lock on a file that its holder writes its name into.

    Args:
        folder: the state folder that the holder works in.
    """

    def __init__(self, path: Path, what: str, folder: Path) -> None:
        self._path, self._what, self._folder = path, what, folder
        self._handle = -1

    def __enter__(self) -> "Lock":
        """Take the lock.

        Raises:
            StoreError: LOCKED, by whom and since when.
        """
        with _ours(self._path):
            self._handle = self._opened()
        try:
            self._take()
            self._sign(f"{own(self._folder).record()}\n".encode())
        except BaseException:
            os.close(self._handle)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Give the lock back; the file stays, since removing it could race with the next."""
        with contextlib.suppress(OSError):
            os.ftruncate(self._handle, 0)
        os.close(self._handle)

    def holder(self) -> Holder | None:
        """Who holds it, by the name in the file; whoever wants to take it is not in the way.

        Of a process of another machine it is not known here whether it still runs.
        """
        if not self._path.exists():
            return None
        with _ours(self._path):
            holder = Holder.read(self._path.read_text(errors="replace"))
        gone = holder and processes.is_here(holder.process) and not processes.runs(holder.process)
        return None if gone else holder

    def _opened(self) -> int:
        make_folder(self._path.parent)
        return os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def _sign(self, record: bytes) -> None:
        with _ours(self._path):
            os.ftruncate(self._handle, 0)
            os.pwrite(self._handle, record, 0)

    def _take(self) -> None:
        """Between taking the lock and writing its name a holder is nobody: then look again."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                holder = self.holder()
                if holder is not None or time.monotonic() > deadline:
                    raise refused(self._what, holder) from None
            time.sleep(AGAIN_S)


class MachineLock(Lock):
    """A lock of everybody on this machine, in a folder where others can put files too."""

    def _opened(self) -> int:
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
        with contextlib.suppress(
            OSError, errors.LocalError
        ):  # another user's file may be held, not written
            super()._sign(record)


def _ours(path: Path) -> contextlib.AbstractContextManager[None]:
    return on_disk(path, "STORE-RIGHTS", "choose another folder with --state")
