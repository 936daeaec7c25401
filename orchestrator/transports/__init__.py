"""How a node is reached: commands and files, and nothing about what they mean."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Completed:
    """A command that ran to its end; a non-zero exit is an answer, not an error."""

    argv: tuple[str, ...]
    exit_code: int
    stdout: bytes
    stderr: bytes


class Stream(Protocol):
    """A command that runs on the node: what is sent is its input, what comes is its output."""

    def sendall(self, data: bytes, /) -> None:
        """Write to its standard input, all of it."""

    def recv(self, size: int, /) -> bytes:
        """At most so many bytes of its standard output; empty at its end.

        Raises:
            TimeoutError: nothing came within the time set.
            NodeUnreachable: the connection is lost, which is not the output's end.
        """

    def settimeout(self, seconds: float | None, /) -> None:
        """How long one ``recv`` or ``sendall`` may wait."""

    def close(self) -> None:
        """End both directions; the command sees the end of its input."""


class Transport(Protocol):
    """One node, reached."""

    node: str

    def run(self, argv: tuple[str, ...], *, timeout_s: float) -> Completed:
        """Run ``argv`` on the node with no terminal and no input.

        A program that a signal ended has exit status 128 and the signal's number.

        Raises:
            NodeUnreachable: nothing was run, or (SSH-LOST, SSH-RESET) it may still be running.
            CommandTimedOut: it may still be running on the node.
        """

    def put(self, content: bytes, path: str) -> None:
        """Write a file with mode 0600, aside and then renamed; folders on the way get 0700.

        Raises:
            LocalError, UnfitError: the old file, if any, is untouched.
            NodeError: the connection is lost; the file is the old or the new one, and whole.
        """

    def get(self, path: str, offset: int = 0) -> bytes | None:
        """The bytes of a file from ``offset`` on, at most a few MiB; None if there is none.

        Raises:
            LocalError, UnfitError: the file is there and cannot be read.
            NodeError: the connection is lost.
        """

    def get_own(self, path: str, offset: int = 0) -> bytes | None:
        """As ``get``, of a plain file that belongs to us; None for anything else that lies there.

        For folders that a container can write: no link is followed.
        """

    def feed(self, path: str, line: bytes) -> bool:
        """Write a line into a FIFO; False if nobody reads it, or if it is none.

        Raises:
            NodeError: the connection is lost; the line may or may not have been written.
        """

    def open(self, argv: tuple[str, ...]) -> Stream:
        """Start ``argv`` on the node as a byte stream; its standard error is drained.

        Raises:
            NodeUnreachable: nothing was started.
        """

    def close(self) -> None:
        """Give the connection back; commands that run on the node go on."""
