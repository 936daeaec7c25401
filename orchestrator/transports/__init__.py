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


class Transport(Protocol):
    """One node, reached."""

    node: str

    def run(self, argv: tuple[str, ...], *, timeout_s: float) -> Completed:
        """Run ``argv`` on the node with no terminal and no input.

        Raises:
            NodeUnreachable: nothing was run.
            CommandTimedOut: it may still be running on the node.
        """

    def put(self, content: bytes, path: str) -> None:
        """Write a file with mode 0600, aside and then renamed; folders on the way are made.

        Raises:
            LocalError, NodeError: the old file, if any, is untouched.
        """

    def get(self, path: str, offset: int = 0) -> bytes | None:
        """The bytes of a file from ``offset`` on, at most a few MiB; None if there is none."""

    def feed(self, path: str, line: bytes) -> bool:
        """Write a line into a FIFO; False if nobody reads it."""

    def close(self) -> None:
        """Give the connection back; commands that run on the node go on."""
