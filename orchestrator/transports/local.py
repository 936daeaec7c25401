"""This machine as a node."""

import contextlib
import errno
import itertools
import os
import socket
import stat
import subprocess
import threading

from orchestrator import errors
from orchestrator.deadlines import SHELL_S, STEP_S, STREAM_END_S
from orchestrator.transports import MOST_BYTES, Completed, Stream, Transport, _shell
from orchestrator.transports.failures import make_error
from orchestrator.words import limit

PIECE_BYTES = 64 << 10
# ELOOP: a link where none is followed. EISDIR is Python's own for a folder.
NOT_THERE = (errno.ENOENT, errno.ESRCH)
NOT_PLAIN = (*NOT_THERE, errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENXIO)


def _open_without_link(path: str, flags: int) -> int:
    """Open a path without following a link, and without waiting for a FIFO's other end."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


class LocalTransport(Transport):
    """A node that is this machine: commands are its own processes, killed at their deadline.

    Args:
        within: a command that starts streams elsewhere.
    """

    def __init__(self, node: str, within: tuple[str, ...] = ()) -> None:
        super().__init__(node)
        self._within = within
        self._opened: list[tuple[subprocess.Popen[bytes], socket.socket]] = []

    def get(self, path: str, offset: int = 0, *, own: bool = False) -> bytes | None:
        try:
            opener = _open_without_link if own else None
            with open(path, "rb", buffering=0, opener=opener) as file:
                status = os.fstat(file.fileno())
                is_own = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
                if own and not is_own:
                    return None
                if offset:
                    file.seek(offset)
                # In small reads: the kernel refuses large reads of /proc/sys.
                pieces = iter(lambda: file.read(PIECE_BYTES), b"")
                return b"".join(itertools.islice(pieces, MOST_BYTES // PIECE_BYTES))
        except OSError as error:
            if error.errno in (NOT_PLAIN if own else NOT_THERE):
                return None
            cause = f"cannot read {path}: {error.strerror}"
            raise self.unfit(cause, code="READ", node=self.node) from error

    def _start(self, argv: tuple[str, ...]) -> Stream:
        is_script = _shell.is_script(argv)
        words = (*self._within, *((_shell.SH,) if is_script else argv))
        try:
            ours, theirs = socket.socketpair()
            try:
                process = subprocess.Popen(
                    words,
                    stdin=theirs.fileno(),
                    stdout=theirs.fileno(),
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
            except OSError:
                ours.close()
                raise
            finally:
                theirs.close()
        except OSError as error:
            raise self._explain_start(words, error) from error
        self._opened.append((process, ours))
        threading.Thread(target=self._reap, args=(process, ours), daemon=True).start()
        if is_script:
            marks = _shell.Marks()
            ours.settimeout(SHELL_S + STEP_S)
            try:
                marks.begin(ours, marks.format_open(argv))
            except (_shell.NoShell, OSError) as error:
                ours.close()
                cause = f"no shell starts: {error.args[0]!r}"
                raise make_error("START", cause, node=self.node) from error
            ours.settimeout(None)
        return ours

    def _reap(self, process: "subprocess.Popen[bytes]", ours: socket.socket) -> None:
        process.wait()
        self._opened.remove((process, ours))

    def _execute(
        self, argv: tuple[str, ...], timeout_s: float, doing: str, content: bytes | None = None
    ) -> Completed:
        words = argv
        if content is None and _shell.is_script(argv):
            words = (_shell.SH,)
            content = _shell.format_script(argv).encode(errors="surrogateescape")
        try:
            done = subprocess.run(
                words,
                input=content or b"",
                capture_output=True,
                timeout=timeout_s,
                check=False,
                start_new_session=True,  # out of reach of Ctrl-C and of a terminal that closes
            )
        except subprocess.TimeoutExpired as error:
            cause = f"{doing} gave no answer in {limit(timeout_s)}"
            raise make_error("TIMEOUT", cause, node=self.node) from error
        except FileNotFoundError:
            return Completed(127, b"", f"{words[0]}: not found".encode())
        except OSError as error:
            raise self._explain_start(words, error) from error
        status = done.returncode if done.returncode >= 0 else 128 - done.returncode
        return Completed(status, done.stdout, done.stderr)

    def _explain_start(self, words: tuple[str, ...], error: OSError) -> errors.DlperfError:
        cause = f"cannot start {words[0]}: {error.strerror}"
        return make_error("START", cause, node=self.node)

    def close(self) -> None:
        for process, ours in list(self._opened):
            ours.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(STREAM_END_S)
