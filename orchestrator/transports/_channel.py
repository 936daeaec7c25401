"""A command on a node as a byte stream, over one channel of its connection."""

import contextlib
import select
import time
from collections.abc import Callable
from typing import Any

import paramiko

from orchestrator.transports._link import Link
from orchestrator.transports._shell import Marks

PIECE_BYTES = 32 << 10
MOST_BYTES = 64 << 20
GLANCE_MS = 200


class TooMuch(Exception):
    """A command wrote more than 64 MiB."""


class ChannelStream:
    """A ``Stream`` over a channel of paramiko's."""

    def __init__(self, node: str, channel: Any, link: Link, give_back: Callable[[], None]) -> None:
        self._node, self._channel, self._link = node, channel, link
        self._give_back = give_back
        self._open = True

    def sendall(self, data: bytes) -> None:
        """Write to the command's input, all of it.

        Raises:
            TimeoutError: it did not take it in time.
            NodeUnreachable: the connection is lost.
            BrokenPipeError: the command has ended.
        """
        view = memoryview(data)
        while view:
            piece = bytes(view[:PIECE_BYTES])
            try:
                sent = self._channel.send(piece)
            except TimeoutError:
                raise
            except (OSError, EOFError):  # EOFError: paramiko's, while it takes note of the loss
                sent = 0
            if not sent:
                self._complain()
                raise BrokenPipeError("the command has ended")
            view = view[sent:]

    def recv(self, size: int) -> bytes:
        """Read at most ``size`` bytes of the command's output; return none at its end.

        Raises:
            TimeoutError: nothing came within the time set.
            NodeUnreachable: the connection is lost, which is not the output's end.
        """
        data: bytes = self._channel.recv(size)
        if not data:
            self._complain()
        return data

    def settimeout(self, seconds: float | None) -> None:
        """Limit how long one ``recv`` or ``sendall`` may wait."""
        self._channel.settimeout(seconds)

    def close(self) -> None:
        """End both directions; the command sees the end of its input."""
        if self._open:
            self._open = False
            with contextlib.suppress(OSError, EOFError, paramiko.SSHException):
                self._channel.close()  # over a lost connection there is nothing to end
            self._give_back()

    def complaints(self) -> bytes:
        """Return the part of the command's standard error that has come."""
        data = bytearray()
        while self._channel.recv_stderr_ready():
            data += self._channel.recv_stderr(PIECE_BYTES)
        return bytes(data)

    def finish(self, marks: Marks, deadline: float) -> tuple[int, bytes, bytes] | None:
        """Return exit status and both outputs of a command that has no input.

        They are read in turns: either could fill the channel's window. None if they end without
        the last marks: the connection was lost, or the shell of the command was killed.

        Raises:
            TimeoutError: it has not ended by then.
            TooMuch: more than 64 MiB came on one of them.
        """
        channel, stdout, stderr = self._channel, bytearray(), bytearray()
        ready = select.poll()
        ready.register(channel.fileno(), select.POLLIN)
        while True:
            ended = channel.eof_received or channel.closed
            while channel.recv_ready():
                stdout += channel.recv(PIECE_BYTES)
            stderr += self.complaints()
            if (answer := marks.answer(stdout, stderr)) or ended:
                return answer
            if max(len(stdout), len(stderr)) > MOST_BYTES:
                raise TooMuch
            left_ms = (deadline - time.monotonic()) * 1000
            if left_ms <= 0:
                raise TimeoutError
            # paramiko clears its two signals without a lock: one may get lost, hence the glance.
            ready.poll(min(left_ms, GLANCE_MS))

    def _complain(self) -> None:
        """Tell a lost connection from the output's end.

        Raises:
            NodeUnreachable: the connection is lost.
        """
        if not self._link.alive and self._channel.exit_status == -1:
            raise self._link.explain_loss(self._node, "a transfer")
