"""One byte stream to an sshd: dialling it, its greeting, and how it ended."""

import errno
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from typing import Literal, Protocol

from orchestrator.deadlines import CONNECT_S, KNOCK_S, SILENCE_S
from orchestrator.transports._paramiko import wake

KEPT_ALIVE = (
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 5),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 2),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
    # Keepalive alone never looks while sent data waits for its acknowledgement.
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(SILENCE_S * 1000)),
)
PIECE_BYTES = 32 << 10
GREETING_BYTES = 255  # as long as a line of an SSH greeting may be (RFC 4253, 4.2)

Ending = Literal["", "closed", "reset", "silent"]


class Pipe(Protocol):
    """A socket, or a channel through a jump host."""

    def recv(self, size: int, /) -> bytes:
        """Read at most ``size`` bytes; return none at its end."""

    def send(self, data: bytes, /) -> int:
        """Send some of the bytes; return how many."""

    def settimeout(self, seconds: float | None, /) -> None:
        """Limit how long one call may wait."""

    def close(self) -> None:
        """Close it."""


class Wire:
    """A pipe that keeps why the connection ended, which paramiko does not.

    ``reader`` is the thread that reads; it alone closes the descriptor, whose number could
    otherwise belong to another connection by the time it wakes.
    """

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe
        self._closed = False  # paramiko looks at this, as sockets have it
        self.ending: Ending = ""
        self.greeting = b""
        self._rest = b""
        self.reader: threading.Thread | None = None

    def recv(self, size: int) -> bytes:
        """Read at most ``size`` bytes; return none once it ended, for whatever reason.

        Raises:
            TimeoutError: nothing came yet.
        """
        if self._closed:
            return b""
        # paramiko asks twice for each packet; several often come at once.
        data = self._rest or self._received(max(size, PIECE_BYTES))
        self._rest = data[size:]
        return data[:size]

    def _received(self, size: int) -> bytes:
        try:
            if isinstance(self._pipe, socket.socket):
                # sshd begins with Nagle's algorithm on, and would wait 40 ms for our ACK.
                self._pipe.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
            data = self._pipe.recv(size)
        except OSError as error:
            if isinstance(error, TimeoutError) and error.errno != errno.ETIMEDOUT:
                raise
            self.note_end("silent" if isinstance(error, TimeoutError) else "reset")
            return b""
        if not data:
            self.note_end("closed")
        elif len(self.greeting) < GREETING_BYTES:
            self.greeting += data[: GREETING_BYTES - len(self.greeting)]
        return data

    def send(self, data: bytes) -> int:
        """Send some of the bytes; return how many.

        Raises:
            TimeoutError: none could be sent yet.
            OSError: it ended.
        """
        try:
            return self._pipe.send(data)
        except OSError as error:
            if not isinstance(error, TimeoutError):
                self.note_end("reset")
            elif error.errno == errno.ETIMEDOUT:
                self.note_end("silent")
                raise ConnectionResetError(errno.ECONNRESET, "the connection timed out") from error
            raise

    def settimeout(self, seconds: float | None) -> None:
        """Limit how long one call may wait."""
        self._pipe.settimeout(seconds)

    def note_end(self, how: Ending) -> None:
        """Note how it ended; only the first call counts."""
        self.ending = self.ending or how

    def close(self) -> None:
        """End both directions at once; never waits for the other side."""
        self._closed = True
        reader = self.reader
        if reader is None or reader is threading.current_thread() or not reader.is_alive():
            self._pipe.close()
        elif isinstance(self._pipe, socket.socket):
            with suppress(OSError):  # it ended by itself
                self._pipe.shutdown(socket.SHUT_RDWR)
        else:
            wake(self._pipe)


class Slots:
    """Limits how many handshakes with one machine run at once."""

    def __init__(self, most: int) -> None:
        self._free = threading.BoundedSemaphore(most)

    @contextmanager
    def knock(self, address: str, port: int) -> Iterator[socket.socket]:
        """Yield a connected socket while a slot is held; slow TCP connections wait without a slot.

        Raises:
            OSError: no connection; TimeoutError without an answer.
        """
        self._free.acquire()
        try:
            dialled = _dial(address, port)
            if not wait([dialled], KNOCK_S).done:
                self._free.release()
                try:
                    wait([dialled], CONNECT_S - KNOCK_S)
                finally:
                    self._free.acquire()
            yield _connected(dialled)
        finally:
            self._free.release()

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Hold a slot during the block."""
        with self._free:
            yield


def _dial(address: str, port: int) -> "Future[socket.socket]":
    """Connect in a thread: the look-up of the name, too, may hang."""
    future: Future[socket.socket] = Future()

    def dial() -> None:
        try:
            dialled = socket.create_connection((address, port), CONNECT_S)
        except OSError as error:
            future.set_exception(error)
        else:
            future.set_result(dialled)

    threading.Thread(target=dial, name=f"dial {address}", daemon=True).start()
    return future


def _connected(dialled: "Future[socket.socket]") -> socket.socket:
    if not dialled.done():
        dialled.add_done_callback(_hang_up)
        raise TimeoutError(f"no answer in {CONNECT_S:g} s")
    connected = dialled.result()
    for level, option, value in KEPT_ALIVE:
        connected.setsockopt(level, option, value)
    return connected


def _hang_up(late: "Future[socket.socket]") -> None:
    if late.exception() is None:
        late.result().close()
