"""This machine as a node."""

import contextlib
import errno
import io
import itertools
import os
import secrets
import socket
import stat
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

from orchestrator import errors
from orchestrator.deadlines import SHELL_S, STEP_S, STREAM_END_S
from orchestrator.transports import Completed, Stream, _shell, open_files
from orchestrator.words import limit

MOST_BYTES = 4 << 20
PIECE_BYTES = 64 << 10
RACES = 100  # that are lost to who removes the folders before a file is in them
# ELOOP: a link where none is followed. EISDIR is Python's own for a folder.
NOT_THERE = (errno.ENOENT, errno.ESRCH)
NOT_PLAIN = (*NOT_THERE, errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENXIO)


def _open_without_link(path: str, flags: int) -> int:
    """Open a path without following a link, and without waiting for a FIFO's other end."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


def _read_rest(file: io.FileIO, offset: int) -> bytes:
    """Read up to 4 MiB in small reads: the kernel refuses large reads of /proc/sys."""
    if offset:
        file.seek(offset)
    pieces = iter(lambda: file.read(PIECE_BYTES), b"")
    return b"".join(itertools.islice(pieces, MOST_BYTES // PIECE_BYTES))


def _make_folder(path: Path) -> None:
    """Make a folder, and those above it that are not there, for the user alone."""
    if not path.is_dir():
        _make_folder(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)


def _create(path: Path) -> int:
    """Create a file, with the folders above it; return its descriptor.

    Who forgets an attempt beside it removes folders that are empty, those just made among them.
    """
    lost = 0
    while True:
        try:
            _make_folder(path.parent)
            return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        except (FileNotFoundError, FileExistsError):  # one of the folders just went
            lost += 1
            if lost == RACES:
                raise


class LocalTransport:
    """A node that is this machine: commands are its own processes, killed at their deadline."""

    def __init__(self, node: str) -> None:
        self.node = node
        self._opened: list[tuple[subprocess.Popen[bytes], socket.socket]] = []

    def run(self, argv: tuple[str, ...], *, timeout_s: float) -> Completed:
        is_script = _shell.is_script(argv)
        try:
            done = subprocess.run(
                (_shell.SH,) if is_script else argv,
                input=_shell.whole(argv).encode(errors="surrogateescape") if is_script else b"",
                capture_output=True,
                timeout=timeout_s,
                check=False,
                start_new_session=True,  # out of reach of Ctrl-C and of a terminal that closes
            )
        except subprocess.TimeoutExpired as error:
            raise errors.CommandTimedOut(
                f"{argv[0]} gave no answer in {limit(timeout_s)}",
                code="TIMEOUT",
                node=self.node,
            ) from error
        except FileNotFoundError:
            return Completed(127, b"", f"{argv[0]}: not found".encode())
        except OSError as error:
            raise self._unstarted(argv, error) from error
        status = done.returncode if done.returncode >= 0 else 128 - done.returncode
        return Completed(status, done.stdout, done.stderr)

    def put(self, content: bytes, path: str) -> None:
        target = Path(path)
        aside = target.with_name(f"{target.name}.{secrets.token_hex(4)}.new")
        try:
            with open(_create(aside), "wb") as file:
                file.write(content)
            aside.rename(target)
        except OSError as error:
            raise errors.LocalError(
                f"cannot write {path}: {error.strerror}", code="WRITE", node=self.node
            ) from error

    def get(self, path: str, offset: int = 0) -> bytes | None:
        with self._reading(path, NOT_THERE), open(path, "rb", buffering=0) as file:
            return _read_rest(file, offset)
        return None

    def get_own(self, path: str, offset: int = 0) -> bytes | None:
        reading = self._reading(path, NOT_PLAIN)
        with reading, open(path, "rb", buffering=0, opener=_open_without_link) as file:
            status = os.fstat(file.fileno())
            if stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid():
                return _read_rest(file, offset)
        return None

    def feed(self, path: str, line: bytes) -> bool:
        with contextlib.suppress(OSError):
            gate = _open_without_link(path, os.O_WRONLY)
            try:
                is_gate = stat.S_ISFIFO(os.fstat(gate).st_mode)
                return is_gate and os.write(gate, line) == len(line)
            finally:
                os.close(gate)
        return False

    def open(self, argv: tuple[str, ...], within: tuple[str, ...] = ()) -> Stream:
        """Start ``argv`` with a socket as its input and output.

        Args:
            within: a command that starts ``argv`` elsewhere.

        Raises:
            NodeUnreachable, LocalError: this machine cannot start it.
        """
        is_script = _shell.is_script(argv)
        words = (*within, *((_shell.SH,) if is_script else argv))
        try:
            ours, theirs = socket.socketpair()
        except OSError as error:
            raise self._unstarted(argv, error) from error
        try:
            process = subprocess.Popen(
                words,
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            ours.close()
            raise self._unstarted(words, error) from error
        finally:
            theirs.close()
        self._opened.append((process, ours))
        threading.Thread(target=self._reap, args=(process, ours), daemon=True).start()
        if is_script:
            self._give(ours, argv)
        return ours

    def _reap(self, process: "subprocess.Popen[bytes]", ours: socket.socket) -> None:
        process.wait()
        self._opened.remove((process, ours))

    def _give(self, stream: socket.socket, argv: tuple[str, ...]) -> None:
        """Have a shell that was started read a script."""
        marks = _shell.Marks()
        stream.settimeout(SHELL_S + STEP_S)
        try:
            marks.begin(stream, marks.open(argv))
        except (_shell.NoShell, OSError) as error:
            stream.close()
            raise errors.NodeUnreachable(
                f"no shell starts: {error.args[0]!r}", code="START", node=self.node
            ) from error
        stream.settimeout(None)

    def _unstarted(self, argv: tuple[str, ...], error: OSError) -> errors.DlperfError:
        return open_files.lacking(error, self.node) or errors.NodeUnreachable(
            f"cannot start {argv[0]}: {error.strerror}", code="START", node=self.node
        )

    @contextlib.contextmanager
    def _reading(self, path: str, not_read: tuple[int, ...]) -> Iterator[None]:
        """Suppress errors with these numbers, and turn others into ours."""
        try:
            yield
        except OSError as error:
            if error.errno not in not_read:
                raise errors.LocalError(
                    f"cannot read {path}: {error.strerror}", code="READ", node=self.node
                ) from error

    def close(self) -> None:
        for process, ours in list(self._opened):
            ours.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(STREAM_END_S)
