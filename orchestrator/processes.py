"""Processes of this machine, told apart from others that have had the same pid."""

import contextlib
import getpass
import os
import signal
import socket
from pathlib import Path

from orchestrator import errors
from orchestrator.model.process import ProcessIdentity

BOOT_ID = "/proc/sys/kernel/random/boot_id"


def me() -> ProcessIdentity:
    """Return the identity of this process."""
    started = _stat(os.getpid()).rpartition(b") ")[2].split()[19].decode()
    return ProcessIdentity(socket.gethostname(), os.getpid(), started, _boot())


def user() -> str:
    """Return the user's name, or number where it has none, as in a container with ``--user``."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # the second from Python 3.13 on
        return str(os.getuid())


def is_here(process: ProcessIdentity) -> bool:
    """Return True if a process, running or ended, belongs to this machine, by host name."""
    return process.host == socket.gethostname()


def runs(process: ProcessIdentity) -> bool:
    """Return True if a process runs on this machine; False for those of other machines."""
    return is_here(process) and process.is_shown_by(_stat(process.pid), _boot())


def terminate(process: ProcessIdentity) -> None:
    """Send SIGTERM to this process, never to another one that has been given its pid.

    Raises:
        LocalError: it is another user's.
    """
    with contextlib.suppress(ProcessLookupError), contextlib.ExitStack() as stack:
        handle = os.pidfd_open(process.pid)
        stack.callback(os.close, handle)
        try:
            if runs(process):  # looked at while the handle keeps its pid from being used again
                signal.pidfd_send_signal(handle, signal.SIGTERM)
        except PermissionError as error:
            raise errors.LocalError(
                f"process {process.pid} is another user's", code="RIGHTS", fix="ask that user"
            ) from error


def _stat(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def _boot() -> str:
    return Path(BOOT_ID).read_text().strip()
