"""This machine as a node."""

import contextlib
import io
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from orchestrator import errors
from orchestrator.transports import Completed

MOST_BYTES = 4 << 20
PIECE_BYTES = 64 << 10


def _pieces(file: io.FileIO) -> Iterator[bytes]:
    """Up to 4 MiB in small reads: the kernel refuses to read /proc/sys by the megabyte."""
    for _ in range(MOST_BYTES // PIECE_BYTES):
        piece = file.read(PIECE_BYTES)
        if not piece:
            return
        yield piece


class LocalTransport:
    """A node that is this machine; commands are its own processes."""

    def __init__(self, node: str) -> None:
        self.node = node

    def run(self, argv: tuple[str, ...], *, timeout_s: float) -> Completed:
        """Run ``argv`` with no terminal and no input; at the deadline it is killed.

        Raises:
            NodeUnreachable: this machine cannot start it.
            CommandTimedOut: it was killed; processes that it started may go on.
        """
        try:
            done = subprocess.run(
                argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout_s, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise errors.CommandTimedOut(
                f"{argv[0]} gave no answer in {timeout_s:g} s",
                code="TIMEOUT",
                node=self.node,
            ) from error
        except FileNotFoundError:
            return Completed(argv, 127, b"", f"{argv[0]}: not found".encode())
        except OSError as error:
            raise errors.NodeUnreachable(
                f"cannot start {argv[0]}: {error.strerror}", code="START", node=self.node
            ) from error
        return Completed(argv, done.returncode, done.stdout, done.stderr)

    def put(self, content: bytes, path: str) -> None:
        """Write a file with mode 0600, aside and then renamed; folders on the way are made.

        Raises:
            LocalError: the old file, if any, is untouched.
        """
        target = Path(path)
        aside = target.with_name(f"{target.name}.new")
        try:
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with open(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(content)
            aside.rename(target)
        except OSError as error:
            raise errors.LocalError(
                f"cannot write {path}: {error.strerror}", code="WRITE", node=self.node
            ) from error

    def get(self, path: str, offset: int = 0) -> bytes | None:
        """The bytes of a file from ``offset`` on, at most 4 MiB; None if there is none.

        Raises:
            LocalError: the file is there and cannot be read.
        """
        try:
            with open(path, "rb", buffering=0) as file:
                if offset:
                    file.seek(offset)
                return b"".join(_pieces(file))
        except (FileNotFoundError, ProcessLookupError):
            return None
        except OSError as error:
            raise errors.LocalError(
                f"cannot read {path}: {error.strerror}", code="READ", node=self.node
            ) from error

    def feed(self, path: str, line: bytes) -> bool:
        """Write a line into a FIFO; False if nobody reads it."""
        with contextlib.suppress(OSError):
            gate = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
            try:
                return os.write(gate, line) == len(line)
            finally:
                os.close(gate)
        return False

    def close(self) -> None:
        """Nothing is held."""
