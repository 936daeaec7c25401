"""HTTP to a node's Docker engine over byte streams of the node's one connection."""

import io
from collections.abc import Callable
from typing import Any

import requests
import requests.adapters
import urllib3

from orchestrator import errors
from orchestrator.transports import Stream

MOST_STREAMS = 3
Dial = Callable[[], Stream]


class _Wire:
    """A stream, with as much of a socket's face as an HTTP client looks at.

    An answer that is still being read keeps the stream open after the connection let go of it.
    """

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._holders = 1
        self._closed = False
        self.sendall = stream.sendall
        self.recv = stream.recv
        self.settimeout = stream.settimeout

    def makefile(self, *_: object, **__: object) -> io.BufferedReader:
        self._holders += 1
        return io.BufferedReader(_Reader(self))

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self.let_go()

    def let_go(self) -> None:
        self._holders -= 1
        if self._holders == 0:
            self._stream.close()

    def idles(self) -> bool:
        """Whether the other end is still there and has said nothing more."""
        self._stream.settimeout(0.0)
        try:
            self._stream.recv(1)
        except (BlockingIOError, TimeoutError):
            return True
        except (OSError, errors.NodeError):
            return False
        return False


class _Reader(io.RawIOBase):
    def __init__(self, wire: _Wire) -> None:
        self._wire = wire

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self._wire.recv(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        if not self.closed:
            super().close()
            self._wire.let_go()


class _Connection(urllib3.connection.HTTPConnection):
    def __init__(self, dial: Dial) -> None:
        super().__init__("docker")
        self._dial = dial

    def connect(self) -> None:
        self.sock: Any = _Wire(self._dial())
        self.sock.settimeout(self.timeout)

    @property
    def is_connected(self) -> bool:
        return self.sock is not None and self.sock.idles()


class _Pool(urllib3.HTTPConnectionPool):
    def __init__(self, dial: Dial) -> None:
        super().__init__("docker", maxsize=MOST_STREAMS)
        self._dial = dial

    def _new_conn(self) -> Any:
        return _Connection(self._dial)


class DialAdapter(requests.adapters.HTTPAdapter):
    """Sends every request down streams that ``dial`` opens, and keeps them for the next."""

    def __init__(self, dial: Dial) -> None:
        self._streams = _Pool(dial)
        super().__init__()

    def get_connection_with_tls_context(
        self, *_: object, **__: object
    ) -> urllib3.HTTPConnectionPool:
        """The one pool there is, wherever the request says that it goes."""
        return self._streams

    def request_url(self, request: Any, *_: object) -> str:
        """The path alone; there is no proxy on the way."""
        return str(request.path_url)

    def close(self) -> None:
        """Let go of the streams that wait for a next request."""
        self._streams.close()
        super().close()
