"""One SSH connection and the channels on it, over paramiko.

Measured: paramiko waits for ever in several of its calls, and returns -1 both for a lost session
and for a missing exit status.
"""

import contextlib
import errno
import queue
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, Literal

import paramiko

from orchestrator import errors
from orchestrator.deadlines import ANSWER_S, LAST_WORDS_S, SESSION_S, SHELL_S
from orchestrator.model.node import Node
from orchestrator.transports._shell import SH, Marks, NoShell
from orchestrator.transports.failures import make_error
from orchestrator.words import limit, printable

CHANNEL_CLOSE = 97  # RFC 4254, 9
PIECE_BYTES = 32 << 10
MOST_OUTPUT_BYTES = 64 << 20
# sshd has MaxSessions 10 by default.
MOST_CHANNELS = 6
PAUSE_S = 0.05
MOST_SHOWN = 200  # characters of a line that a login shell printed
LOST = (OSError, EOFError, paramiko.SSHException)
Ending = Literal["", "closed", "silent"]
ENDINGS = {
    "closed": "the connection was closed or reset",
    "silent": f"nothing was heard for {ANSWER_S:g} s",
    "": "the connection broke",
}


class Wire:
    """A socket, or a channel through a jump host, that keeps why the connection ended.

    ``reader`` is the thread that reads; it alone closes the descriptor, whose number could
    otherwise belong to another connection by the time it wakes.
    """

    def __init__(self, pipe: Any) -> None:
        self._pipe = pipe
        self._closed = False  # paramiko looks at this, as sockets have it
        self.ending: Ending = ""
        self.reader: threading.Thread | None = None

    def recv(self, size: int) -> bytes:
        """Read at most ``size`` bytes, none once it ended; raise TimeoutError if none came yet."""
        if self._closed:
            return b""
        try:
            if isinstance(self._pipe, socket.socket):
                # sshd begins with Nagle's algorithm on, and would wait 40 ms for our ACK.
                self._pipe.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
            data: bytes = self._pipe.recv(size)
        except OSError as error:
            self._note(error)
            return b""
        if not data:
            self.note_end("closed")
        return data

    def send(self, data: bytes) -> int:
        """Send some of the bytes; return how many. Raise TimeoutError if none could be sent yet."""
        try:
            sent: int = self._pipe.send(data)
            return sent
        except OSError as error:
            self._note(error)
            raise ConnectionResetError(errno.ECONNRESET, "the connection ended") from error

    def settimeout(self, seconds: float | None) -> None:
        self._pipe.settimeout(seconds)

    def note_end(self, how: Ending) -> None:
        """Note how it ended; only the first call counts."""
        self.ending = self.ending or how

    def _note(self, error: OSError) -> None:
        """Note how it ended; raise the error again if it is only a pause."""
        if isinstance(error, TimeoutError) and error.errno != errno.ETIMEDOUT:
            raise error
        self.note_end("silent" if isinstance(error, TimeoutError) else "closed")

    def close(self) -> None:
        """End both directions at once; never waits for the other side."""
        self._closed = True
        reader = self.reader
        if reader is None or reader is threading.current_thread() or not reader.is_alive():
            self._pipe.close()
        elif isinstance(self._pipe, socket.socket):
            with contextlib.suppress(OSError):  # it ended by itself
                self._pipe.shutdown(socket.SHUT_RDWR)
        else:  # a channel of paramiko's: its reader sees the end of its input
            self._pipe.in_buffer.close()


def _handle_close(channel: Any, message: Any) -> None:
    """Handle the other side's close of a channel; the owner's ``close`` answers.

    paramiko itself answers at once, while another thread may be about to send on that channel.
    For a message to a channel that is gone sshd ends the whole connection, and by then its
    number may even belong to another command.
    """
    channel._handle_eof(message)
    with channel.lock:
        channel.eof_sent = True  # nothing more is sent, and nobody waits to send
        channel.out_buffer_cv.notify_all()
    channel.event.set()
    channel.status_event.set()


class ClientTransport(paramiko.Transport):  # type: ignore[misc]  # paramiko has no types
    """paramiko's transport, with one bug worked around and the server's last message kept."""

    farewell = ""
    _channel_handler_table = {  # noqa: RUF012  # paramiko's own, never changed
        **paramiko.Transport._channel_handler_table,
        CHANNEL_CLOSE: _handle_close,
    }

    def _parse_disconnect(self, message: Any) -> None:
        message.get_int()
        self.farewell = message.get_text()


class ChannelStream:
    """A ``Stream`` over a channel of paramiko's."""

    def __init__(self, channel: Any, session: "Session", give_back: Callable[[], None]) -> None:
        self._channel, self._session, self._give_back = channel, session, give_back
        self._open = True

    def sendall(self, data: bytes) -> None:
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
                self._check_loss()
                raise BrokenPipeError("the command has ended")
            view = view[sent:]

    def recv(self, size: int) -> bytes:
        data: bytes = self._channel.recv(size)
        if not data:
            self._check_loss()
        return data

    def settimeout(self, seconds: float | None) -> None:
        self._channel.settimeout(seconds)

    def close(self) -> None:
        if self._open:
            self._open = False
            with contextlib.suppress(*LOST):
                self._channel.close()  # over a lost connection there is nothing to end
            self._give_back()

    def read_stderr(self) -> bytes:
        data = bytearray()
        while self._channel.recv_stderr_ready():
            data += self._channel.recv_stderr(PIECE_BYTES)
        return bytes(data)

    def finish(
        self, marks: Marks, deadline: float, doing: str, pace_s: float = 0.0
    ) -> tuple[int, bytes, bytes] | None:
        """Return exit status and both outputs of a command whose input is complete.

        They are read in turns: either could fill the channel's window. None if they end without
        the last marks: the connection was lost, or the shell of the command was killed.

        Args:
            pace_s: how long each piece of the output puts the deadline off.
        """
        channel, stdout, stderr = self._channel, bytearray(), bytearray()
        heard = threading.Event()
        # Not cleared by paramiko, which could do so when something has just come to the other.
        only_set = SimpleNamespace(set=heard.set, clear=lambda: None)
        channel.in_buffer.set_event(only_set)
        channel.in_stderr_buffer.set_event(only_set)
        while True:
            heard.clear()
            ended = channel.eof_received or channel.closed
            while channel.recv_ready():
                stdout += channel.recv(PIECE_BYTES)
                deadline = max(deadline, time.monotonic() + pace_s)
            stderr += self.read_stderr()
            if (answer := marks.parse_answer(stdout, stderr)) or ended:
                return answer
            if max(len(stdout), len(stderr)) > MOST_OUTPUT_BYTES:
                cause = f"{doing} wrote more than {MOST_OUTPUT_BYTES >> 20} MiB"
                raise make_error("OUTPUT", cause, node=self._session.node)
            left_s = deadline - time.monotonic()
            if left_s <= 0 or not heard.wait(left_s):
                raise TimeoutError

    def _check_loss(self) -> None:
        if not self._session.is_alive and self._channel.exit_status == -1:
            raise self._session.explain_loss("a transfer")


class Session:
    """One authenticated connection and its channels; ``transport`` is paramiko's."""

    def __init__(self, node: Node, client: Any, wire: Wire) -> None:
        self.node, self._user = node.name, node.user
        self._client, self._wire = client, wire
        self.transport = client.get_transport()
        self._probing = threading.Lock()
        self._has_shell = False
        self._slots = threading.BoundedSemaphore(MOST_CHANNELS)
        self._idle: queue.LifoQueue[ChannelStream] = queue.LifoQueue(1)

    @property
    def is_alive(self) -> bool:
        return bool(self.transport.is_active()) and not self._wire.ending

    def hang_up(self) -> None:
        """End a silent connection at once, also for every thread that waits for it."""
        self._wire.note_end("silent")
        self._wire.close()

    def explain_loss(self, doing: str, error: object = None) -> errors.DlperfError:
        """Return the error for what was under way when the connection ended."""
        ending, farewell = self._wire.ending, self.transport.farewell
        words = f" with the words {farewell!r}" if farewell else ""
        why = f" ({error})" if error and not ending else ""
        return make_error(
            "SSH-RESET" if farewell or ending == "closed" else "SSH-LOST",
            f"{ENDINGS[ending]}{words} during {doing}{why}; what was started there may still run",
            node=self.node,
        )

    @contextmanager
    def watched(self) -> Iterator[None]:
        """End the connection if a block waits ``ANSWER_S`` for sshd; paramiko waits for ever."""
        watch = threading.Timer(ANSWER_S, self.hang_up)
        watch.daemon = True
        watch.start()
        try:
            yield
        finally:
            watch.cancel()

    def probe(self) -> None:
        """End the connection if sshd does not answer."""
        with self._probing, self.watched():
            self.transport.global_request("keepalive@openssh.com", wait=True)

    def close(self) -> None:
        self._client.close()
        self.transport.join(LAST_WORDS_S)

    def execute(self, marks: Marks, text: bytes, limit_s: float) -> ChannelStream:
        """Have the user's login shell start /bin/sh, which reads ``text``."""
        stream = self._open()
        limit_s = min(limit_s, SHELL_S)
        stream.settimeout(limit_s)
        try:
            marks.begin(stream, text)
        except NoShell as silent:
            printed = silent.args[0] + stream.read_stderr()
            stream.close()
            ended = f"gave no answer in {limit(limit_s)}" if silent.__cause__ else "ended"
            raise self._explain_no_shell(ended, printed) from silent
        except BaseException:
            stream.close()
            raise
        stream.settimeout(None)
        self._has_shell = True
        return stream

    def resume(self, marks: Marks, text: bytes) -> ChannelStream | None:
        """Have the shell that was kept read ``text``; return None if it has ended or there is none.

        A login shell takes several times as long as most scripts.
        """
        try:
            stream = self._idle.get_nowait()
        except queue.Empty:
            return None
        stream.settimeout(ANSWER_S)
        try:
            marks.begin(stream, text)
        except NoShell as silent:
            stream.close()
            if isinstance(silent.__cause__, TimeoutError):
                self.hang_up()
                raise self.explain_loss("starting a command") from silent
            return None
        except BaseException:
            stream.close()
            raise
        return stream

    def keep(self, stream: ChannelStream) -> None:
        """Keep a shell that has answered for ``resume``; one is enough."""
        try:
            self._idle.put_nowait(stream)
        except queue.Full:
            stream.close()

    def _make_room(self, until: float) -> None:
        """End the idle shell, which has a channel, also if it was kept only now."""
        with contextlib.suppress(queue.Empty):
            self._idle.get_nowait().close()
        if time.monotonic() > until:
            cause = f"no further session has been possible for {SESSION_S:g} s"
            raise make_error("SSH-SESSIONS", cause, node=self.node)

    @contextmanager
    def translate_errors(self, doing: str) -> Iterator[None]:
        """Turn errors of the connection into ours; a silent connection is ended."""
        try:
            yield
        except TimeoutError as error:
            self.hang_up()
            raise self.explain_loss(doing) from error
        except LOST as error:
            raise self.explain_loss(doing, error) from error

    def _explain_no_shell(self, ended: str, printed: bytes) -> errors.DlperfError:
        self.probe()
        if not self.is_alive:
            return self.explain_loss("starting a command")
        if self._has_shell:
            cause = f"{SH} {ended}, though it has run commands before"
            return make_error("TIMEOUT", cause, node=self.node)
        lines = printed.decode(errors="replace").strip().splitlines()
        said = f' after it printed "{printable(lines[-1][:MOST_SHOWN])}"' if lines else ""
        cause = f"the login shell of {self._user} runs no command: it {ended}{said}"
        return make_error("SSH-SHELL", cause, node=self.node)

    def _open(self) -> ChannelStream:
        """Open a channel, once sshd allows one more, and start /bin/sh on it."""
        until = time.monotonic() + SESSION_S
        while not self._slots.acquire(timeout=PAUSE_S):
            self._make_room(until)
        try:
            channel = self._open_channel(until)
            try:
                with self.translate_errors("starting a command"), self.watched():
                    channel.exec_command(SH)
            except errors.NodeUnreachable as error:
                if self.is_alive:
                    cause = "its sshd refuses to run commands"
                    raise make_error("SSH-EXEC", cause, node=self.node) from error
                raise
        except BaseException:
            self._slots.release()
            raise
        return ChannelStream(channel, self, self._slots.release)

    def _open_channel(self, until: float) -> Any:
        while True:
            with self.translate_errors("opening a channel"), self.watched():
                try:
                    return self.transport.open_session()
                except paramiko.SSHException:
                    # Threads that fail at once share paramiko's one memory of the reason.
                    if not self.is_alive:
                        raise
            time.sleep(PAUSE_S * random.SystemRandom().uniform(0.5, 1.5))
            self._make_room(until)
