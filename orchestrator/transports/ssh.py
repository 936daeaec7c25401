"""A node reached by SSH, over one kept connection; the home of fabric and paramiko.

Measured: paramiko waits for ever in several of its calls, and returns -1 both for a lost session
and for a missing exit status.
"""

import contextlib
import os
import secrets
import time

from orchestrator import errors
from orchestrator.deadlines import COMMAND_S, SHELL_S
from orchestrator.transports import Completed, Stream, _jump
from orchestrator.transports._session import Session
from orchestrator.transports._sftp import Refused, Sftp
from orchestrator.transports._shell import FEED, Marks
from orchestrator.transports._target import SshTarget
from orchestrator.transports.cached import Cached
from orchestrator.transports.known_hosts import HostKey
from orchestrator.words import limit

__all__ = ["SshTarget", "SshTransport", "offered_key"]

MOST_BYTES = 4 << 20
# SFTP says "Failure" for most errors; a shell names the cause.
WRITE = 'mkdir -p -- "$(dirname -- "$1")" && head -c "$2" /dev/zero >"$1" && rm -- "$1"'
READ = 'head -c 1 -- "$1" >/dev/null'


class SshTransport:
    """A node that is reached by SSH: connected at the first call, and again after a loss.

    At most six commands and streams run at once; further ones queue.
    """

    def __init__(self, target: SshTarget) -> None:
        self.node = target.name
        self._session = Cached(
            lambda: Session(target, _jump.connect(target)),
            lambda session: session.alive,
            Session.close,
        )

    def run(self, argv: tuple[str, ...], *, timeout_s: float) -> Completed:
        """Run ``argv`` with no terminal and no input, by /bin/sh.

        A program that signal n ended has exit code 128 + n.

        Args:
            timeout_s: seconds from its start; connecting has limits of its own.

        Raises:
            NodeError: nothing was run (SSH-SHELL: the login shell starts no command), or
                (SSH-LOST, SSH-RESET) it may still be running.
            CommandTimedOut: it may still be running on the node.
        """
        session, marks = self._session.get(), Marks()
        deadline = time.monotonic() + timeout_s
        stream = session.execute(marks, marks.run(argv), timeout_s)
        with contextlib.closing(stream), session.ours(argv[0]):
            try:
                answer = stream.finish(marks, deadline)
            except TimeoutError as error:
                stream.close()
                session.prove()
                raise errors.CommandTimedOut(
                    f"{argv[0]} gave no answer in {limit(timeout_s)}",
                    code="TIMEOUT",
                    node=self.node,
                ) from error
        if answer is None:
            raise session.explain_loss(argv[0])
        return Completed(*answer)

    def put(self, content: bytes, path: str) -> None:
        """Write a file with mode 0600, aside and then renamed; new folders above it get 0700.

        Raises:
            UnfitError: the node refuses; the old file, if any, is untouched.
            NodeError: the connection is lost; the file is the old or the new one, and whole.
        """
        session = self._session.get()
        aside = f"{path}.{secrets.token_hex(4)}.new"
        try:
            with session.files() as sftp:
                _create(sftp, content, aside)
                sftp.rename(aside, path)
        except Refused as refused:
            why = self._reason(refused, WRITE, aside, str(len(content)))
            raise errors.UnfitError(
                f"cannot write {path}: {why}", code="WRITE", node=self.node
            ) from refused

    def get(self, path: str, offset: int = 0) -> bytes | None:
        """Read a file from ``offset``, at most 4 MiB; return None if there is no file.

        Raises:
            UnfitError: the file is there and cannot be read.
            NodeError: the connection is lost.
        """
        return self._read(path, offset, own=False)

    def get_own(self, path: str, offset: int = 0) -> bytes | None:
        """Read like ``get``; return None unless it is a regular file of the login user.

        Raises:
            UnfitError: the file is there and cannot be read.
            NodeError: the connection is lost.
        """
        return self._read(path, offset, own=True)

    def feed(self, path: str, line: bytes) -> bool:
        """Write a line into a FIFO; False if it has no reader, or is no FIFO.

        Raises:
            NodeError: the connection is lost; the line may or may not have been written.
        """
        words = ("sh", "-c", FEED, "sh", path, line.decode())
        return self.run(words, timeout_s=COMMAND_S).exit_code == 0

    def _read(self, path: str, offset: int, *, own: bool) -> bytes | None:
        session = self._session.get()
        try:
            with session.files() as sftp:
                try:
                    read = sftp.read_own if own else sftp.read
                    return read(path, offset, MOST_BYTES)
                except Refused as refused:
                    # What is under /proc may go away between being opened and being read.
                    if refused.is_absent or not sftp.exists(path):
                        return None
                    raise
        except Refused as refused:
            why = self._reason(refused, READ, path)
            raise errors.UnfitError(
                f"cannot read {path}: {why}", code="READ", node=self.node
            ) from refused

    def open(self, argv: tuple[str, ...]) -> Stream:
        """Start ``argv`` on the node as a byte stream; its standard error is dropped.

        A missing program is a stream that ends at once. A lost connection is no end: ``recv``
        raises NodeUnreachable then.

        Raises:
            NodeError: nothing was started.
        """
        marks = Marks()
        return self._session.get().execute(marks, marks.open(argv), SHELL_S)

    def close(self) -> None:
        """Close the connection; commands that run on the node go on."""
        self._session.drop()

    def _reason(self, refused: Refused, script: str, *words: str) -> str:
        """Find why the node refuses, from the last line of a shell that tries the same."""
        script = f"export LC_ALL=C\n{script}"
        tried = self.run(("sh", "-c", script, "sh", *words), timeout_s=COMMAND_S)
        lines = tried.stderr.decode(errors="replace").strip().splitlines()
        return lines[-1] if tried.exit_code and lines else str(refused)


def offered_key(target: SshTarget) -> HostKey:
    """Return the host key that a node shows, trusted or not; there is no login.

    Raises:
        NodeError: it shows none, or the jump host cannot be passed.
    """
    return _jump.offered_key(target)


def _create(sftp: Sftp, content: bytes, path: str) -> None:
    """Create a file and the folders above it; after ``Refused`` no part of the file is left."""
    try:
        try:
            sftp.create(path, content, 0o600)
        except Refused as refused:
            if not refused.is_absent:
                raise
            _make_folder(sftp, os.path.dirname(path))
            sftp.create(path, content, 0o600)
    except Refused:
        with contextlib.suppress(Refused):
            sftp.remove(path)
        raise


def _make_folder(sftp: Sftp, path: str) -> None:
    """Make a folder, and those above it that are not there."""
    try:
        sftp.make_folder(path, 0o700)
    except Refused as refused:
        if refused.is_absent:
            _make_folder(sftp, os.path.dirname(path))
            sftp.make_folder(path, 0o700)
        elif not sftp.exists(path):
            raise
