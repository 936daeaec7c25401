"""HTTP to a node's Docker engine over byte streams of the node's one connection."""

import socket
from collections.abc import Callable
from functools import partial
from typing import Any

import urllib3
from docker.transport import UnixHTTPAdapter

from orchestrator import errors
from orchestrator.deadlines import ENGINE_SILENCE_S
from orchestrator.transports import Stream

MOST_STREAMS = 3
Dial = Callable[[], Stream]


class _Socket:
    """A stream with those methods of a socket that an HTTP client uses.

    An answer that is still being read keeps the stream open after the connection is closed.

    Args:
        check: called in each long silence; raises if the engine is the reason.
    """

    makefile = socket.socket.makefile  # counts in _io_refs who still reads

    def __init__(self, stream: Stream, check: Callable[[], None]) -> None:
        self._stream = stream
        self._check = check
        self._limit_s: float | None = None
        self._io_refs = 0
        self._closed = False
        self.sendall = stream.sendall

    def settimeout(self, limit_s: float | None) -> None:
        self._limit_s = limit_s
        self._stream.settimeout(limit_s)

    def recv_into(self, buffer: Any) -> int:
        piece = self._recv(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        self._closed = True
        if self._io_refs == 0:
            self._stream.close()

    def _decref_socketios(self) -> None:  # called by what makefile returns, once it is closed
        self._io_refs -= 1
        if self._closed:
            self.close()

    def idles(self) -> bool:
        """Return whether the stream is still open and holds no unread byte."""
        self._stream.settimeout(0.0)
        try:
            self._stream.recv(1)
        except (BlockingIOError, TimeoutError):
            return True
        except (OSError, errors.NodeError):
            return False
        return False

    def _recv(self, size: int) -> bytes:
        left_s = self._limit_s
        while left_s is not None and left_s > 2 * ENGINE_SILENCE_S:  # no short question's
            self._stream.settimeout(ENGINE_SILENCE_S)
            try:
                return self._stream.recv(size)
            except TimeoutError:
                left_s -= ENGINE_SILENCE_S
                self._check()
        self._stream.settimeout(left_s)
        return self._stream.recv(size)


class _Connection(urllib3.connection.HTTPConnection):
    def __init__(self, dial: Dial, check: Callable[[], None], **of_pool: Any) -> None:
        super().__init__(**of_pool)
        self._dial, self._check = dial, check

    def connect(self) -> None:
        self.sock: Any = _Socket(self._dial(), self._check)
        self.sock.settimeout(self.timeout)

    @property
    def is_connected(self) -> bool:
        return self.sock is not None and self.sock.idles()


class DialAdapter(UnixHTTPAdapter):  # type: ignore[misc] # the library has no types
    """Sends every request down streams that ``dial`` opens, and keeps them for the next."""

    def __init__(self, dial: Dial, check: Callable[[], None]) -> None:
        self._streams = urllib3.HTTPConnectionPool("docker", maxsize=MOST_STREAMS)
        connected = partial(_Connection, dial, check)
        self._streams.ConnectionCls = connected  # type: ignore[assignment] # pools only call it
        super().__init__("")

    def get_connection(self, *_: object) -> urllib3.HTTPConnectionPool:
        """Return the node's own pool, whatever address the request has."""
        return self._streams

    def close(self) -> None:
        """Let go of the streams that wait for a next request."""
        self._streams.close()
        super().close()
