"""A node reached by SSH, over one kept connection; the home of fabric and paramiko.

Measured: paramiko waits for ever in several of its calls, and returns -1 both for a lost session
and for a missing exit status.
"""

import contextlib
import random
import select
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import paramiko

from orchestrator import errors
from orchestrator.deadlines import ANSWER_S, SESSION_S, SHELL_S
from orchestrator.model.node import Node
from orchestrator.transports import Completed, Stream, _shell
from orchestrator.transports._connect import Link, connect, offered_key
from orchestrator.transports._login import jump_host
from orchestrator.transports._sftp import Reader, Refused
from orchestrator.transports._shell import SH, Marks, NoShell
from orchestrator.transports.cached import Cached
from orchestrator.transports.failures import failure
from orchestrator.words import limit, printable

__all__ = ["SshTransport", "jump_host", "offered_key"]

PIECE_BYTES = 32 << 10
MOST_OUTPUT_BYTES = 64 << 20
GLANCE_MS = 200
# sshd has MaxSessions 10 by default.
MOST_CHANNELS = 6
PAUSE_S = 0.05
GRACE_S = 0.5
MOST_SHOWN = 200  # characters of a line that a login shell printed


class ChannelStream:
    """A ``Stream`` over a channel of paramiko's."""

    def __init__(self, node: str, channel: Any, link: Link, give_back: Callable[[], None]) -> None:
        self._node, self._channel, self._link = node, channel, link
        self._give_back = give_back
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
                self._complain()
                raise BrokenPipeError("the command has ended")
            view = view[sent:]

    def recv(self, size: int) -> bytes:
        data: bytes = self._channel.recv(size)
        if not data:
            self._complain()
        return data

    def settimeout(self, seconds: float | None) -> None:
        self._channel.settimeout(seconds)

    def close(self) -> None:
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

    def finish(self, marks: Marks, deadline: float, doing: str) -> tuple[int, bytes, bytes] | None:
        """Return exit status and both outputs of a command whose input is complete.

        They are read in turns: either could fill the channel's window. None if they end without
        the last marks: the connection was lost, or the shell of the command was killed.

        Raises:
            TimeoutError: it has not ended by then.
            UnfitError: OUTPUT; more than 64 MiB came on one of them.
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
            if max(len(stdout), len(stderr)) > MOST_OUTPUT_BYTES:
                cause = f"{doing} wrote more than {MOST_OUTPUT_BYTES >> 20} MiB"
                raise failure("OUTPUT", cause, node=self._node)
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


class Session:
    """The channels of one connection."""

    def __init__(self, node: Node, link: Link) -> None:
        self._node, self._user, self.link = node.name, node.user, link
        self._has_shell = False
        self._slots = threading.BoundedSemaphore(MOST_CHANNELS)
        self._reading = threading.Lock()
        self._reader: Reader | None = None

    def execute(self, marks: Marks, text: bytes, limit_s: float) -> ChannelStream:
        """Have the user's login shell start /bin/sh, which reads ``text``.

        Raises:
            NodeError: nothing of it was run.
        """
        refused = failure("SSH-EXEC", "its sshd refuses to run commands", node=self._node)
        stream = self._open(lambda channel: channel.exec_command(SH), refused)
        limit_s = min(limit_s, SHELL_S)
        stream.settimeout(limit_s)
        try:
            marks.begin(stream, text)
        except NoShell as silent:
            printed = silent.args[0] + stream.complaints()
            stream.close()
            ended = f"gave no answer in {limit(limit_s)}" if silent.__cause__ else "ended"
            raise self._explain_no_shell(ended, printed) from silent
        except BaseException:
            stream.close()
            raise
        stream.settimeout(None)
        self._has_shell = True
        return stream

    @contextmanager
    def reader(self) -> Iterator[Reader]:
        """Yield the SFTP client of the node, for one thread at a time; its channel stays open.

        Raises:
            Refused: the node refuses; the connection is good.
            NodeError: the connection is lost.
        """
        with self.ours("a file transfer"), self._reading:
            try:
                self._reader = self._reader or self._begin_reader()
                yield self._reader
            except Refused:
                raise
            except BaseException:
                self._end_reader()
                raise

    @contextmanager
    def ours(self, doing: str) -> Iterator[None]:
        """Turn errors of the connection into ours; a silent connection is ended.

        Args:
            doing: what is under way, for the message.

        Raises:
            NodeUnreachable: what was under way may or may not be done.
        """
        try:
            yield
        except TimeoutError as error:
            self.link.hang_up()
            raise self.link.explain_loss(self._node, doing) from error
        except LOST as error:
            raise self.link.explain_loss(self._node, doing, error) from error

    def explain_end(self, doing: str) -> errors.DlperfError:
        """Return the error for a command that left no exit status."""
        if not self.link.alive:
            return self.link.explain_loss(self._node, doing)
        cause = f"the shell that ran {doing} was killed; {doing} may still be running"
        return failure("SSH-KILLED", cause, node=self._node)

    def _begin_reader(self) -> Reader:
        missing = failure(
            "SSH-SFTP",
            "its sshd has no SFTP, which reading files needs, or a start-up file of the user's"
            " keeps it from starting",
            node=self._node,
        )
        stream = self._open(lambda channel: channel.invoke_subsystem("sftp"), missing)
        stream.settimeout(ANSWER_S)
        try:
            return Reader(stream)
        except (*LOST, TimeoutError) as error:
            stream.close()
            self.link.prove()
            if self.link.alive:
                raise missing from error
            raise

    def _end_reader(self) -> None:
        if self._reader:
            self._reader.close()
        self._reader = None

    def _explain_no_shell(self, ended: str, printed: bytes) -> errors.DlperfError:
        """Return the error for a login shell that has started no command."""
        self.link.prove()
        if not self.link.alive:
            return self.link.explain_loss(self._node, "starting a command")
        if self._has_shell:
            cause = f"{SH} {ended}, though it has run commands before"
            return failure("TIMEOUT", cause, node=self._node)
        lines = printed.decode(errors="replace").strip().splitlines()
        said = f' after it printed "{printable(lines[-1][:MOST_SHOWN])}"' if lines else ""
        cause = f"the login shell of {self._user} runs no command: it {ended}{said}"
        return failure("SSH-SHELL", cause, node=self._node)

    def _open(self, ask: Callable[[Any], None], refused: errors.DlperfError) -> ChannelStream:
        """Open a channel, once sshd allows one more, and start something on it."""
        until = time.monotonic() + SESSION_S
        if not self._slots.acquire(timeout=SESSION_S):
            raise self._explain_full(f"all {MOST_CHANNELS} channels have been busy")
        try:
            channel = self._open_channel(until)
            try:
                with self.ours("starting a command"), self.link.watched():
                    ask(channel)
            except errors.NodeUnreachable as error:
                if self.link.alive:
                    raise refused from error
                raise
        except BaseException:
            self._slots.release()
            raise
        return ChannelStream(self._node, channel, self.link, self._slots.release)

    def _open_channel(self, until: float) -> Any:
        """Open a channel; end an idle reader, which has one, if sshd allows no more."""
        patient_until = time.monotonic() + GRACE_S  # sshd may only be slow to let go of old ones
        while True:
            with self.ours("opening a channel"), self.link.watched():
                try:
                    return self.link.transport.open_session()
                except paramiko.SSHException:
                    # Threads that fail at once share paramiko's one memory of the reason.
                    if not self.link.alive:
                        raise
            if time.monotonic() > until:
                raise self._explain_full("its sshd has allowed no further session")
            time.sleep(PAUSE_S * random.SystemRandom().uniform(0.5, 1.5))
            if time.monotonic() > patient_until and self._reading.acquire(blocking=False):
                try:
                    self._end_reader()
                finally:
                    self._reading.release()

    def _explain_full(self, cause: str) -> errors.DlperfError:
        return failure("SSH-SESSIONS", f"{cause} for {SESSION_S:g} s", node=self._node)


# struct.error: of an answer that is cut off.
LOST = (paramiko.sftp.SFTPError, struct.error, OSError, EOFError, paramiko.SSHException)


class SshTransport:
    """A node that is reached by SSH: connected at the first call, and again after a loss.

    At most six commands and streams run at once; further ones queue. Limits of time begin once the
    node is connected, which has limits of its own. A login shell that starts no command is
    SSH-SHELL.
    """

    def __init__(self, node: Node) -> None:
        self.node = node.name
        self._session = Cached(
            lambda: Session(node, connect(node)),
            lambda session: session.link.alive,
            lambda session: session.link.close(),
        )

    def run(self, argv: tuple[str, ...], *, timeout_s: float) -> Completed:
        return self._run(argv, timeout_s, argv[0])

    def put(self, content: bytes, path: str) -> None:
        words = _shell.writing(path, len(content))
        done = self._run(words, _shell.time_to_write(content), f"writing {path}", content)
        if done.exit_code != 0:
            raise errors.UnfitError(
                f"cannot write {path}: {_shell.reason(done)}", code="WRITE", node=self.node
            )

    def get(self, path: str, offset: int = 0, *, own: bool = False) -> bytes | None:
        try:
            with self._session.get().reader() as reader:
                return (reader.read_own if own else reader.read)(path, offset)
        except Refused as refused:
            if refused.is_absent:
                return None
            raise errors.UnfitError(
                f"cannot read {path}: {refused}", code="READ", node=self.node
            ) from refused

    def open(self, argv: tuple[str, ...]) -> Stream:
        marks = Marks()
        return self._session.get().execute(marks, marks.open(argv), SHELL_S)

    def close(self) -> None:
        self._session.drop()

    def _run(
        self, argv: tuple[str, ...], timeout_s: float, doing: str, content: bytes | None = None
    ) -> Completed:
        session, marks = self._session.get(), Marks()
        deadline = time.monotonic() + timeout_s
        text = marks.run(argv, is_fed=content is not None)
        stream = session.execute(marks, text, timeout_s)
        with contextlib.closing(stream), session.ours(doing):
            try:
                with contextlib.suppress(BrokenPipeError):  # its answer says why
                    stream.settimeout(timeout_s)
                    stream.sendall(content or b"")
                answer = stream.finish(marks, deadline, doing)
            except TimeoutError as error:
                stream.close()
                session.link.prove()
                cause = f"{doing} gave no answer in {limit(timeout_s)}"
                raise failure("TIMEOUT", cause, node=self.node) from error
        if answer is None:
            raise session.explain_end(doing)
        return Completed(*answer)
