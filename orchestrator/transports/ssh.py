"""A node reached by SSH, over one kept connection; the home of fabric and paramiko.

Measured: paramiko waits for ever in several of its calls, and returns -1 both for a lost session
and for a missing exit status.
"""

import contextlib
import os
import random
import secrets
import select
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import paramiko

from orchestrator import errors
from orchestrator.deadlines import ANSWER_S, COMMAND_S, SESSION_S, SHELL_S
from orchestrator.transports import Completed, Stream, open_files
from orchestrator.transports._connect import PIECE_BYTES, Link, connect, offered_key
from orchestrator.transports._login import SshTarget
from orchestrator.transports._sftp import Lost, Refused, Sftp
from orchestrator.transports._shell import FEED, SH, Marks, NoShell
from orchestrator.transports.cached import Cached
from orchestrator.words import limit, printable

__all__ = ["SshTarget", "SshTransport", "offered_key"]

MOST_READ_BYTES = 4 << 20
MOST_OUTPUT_BYTES = 64 << 20
GLANCE_MS = 200
# sshd has MaxSessions 10 by default.
MOST_CHANNELS = 6
PAUSE_S = 0.05
GRACE_S = 0.5
MOST_SHOWN = 200  # characters of a line that a login shell printed
# SFTP says "Failure" for most errors; a shell names the cause.
WRITE = 'mkdir -p -- "$(dirname -- "$1")" && head -c "$2" /dev/zero >"$1" && rm -- "$1"'
READ = 'head -c 1 -- "$1" >/dev/null'


class Answered(threading.Event):
    """An event set by sshd's answer to a channel request; paramiko alone would wait for ever."""

    def wait(self, timeout: float | None = ANSWER_S) -> bool:
        """Wait for the answer.

        Raises:
            TimeoutError: none came.
        """
        if not super().wait(timeout):
            raise TimeoutError
        return True


class TooMuch(Exception):
    """A command wrote more than 64 MiB."""


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
            if max(len(stdout), len(stderr)) > MOST_OUTPUT_BYTES:
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


class Standing:
    """An SFTP client over a channel that stays open, for one thread at a time."""

    def __init__(self, begin: Callable[[], tuple[Sftp, ChannelStream]]) -> None:
        self._begin = begin
        self._lock = threading.Lock()
        self._now: tuple[Sftp, ChannelStream] | None = None

    @contextmanager
    def use(self) -> Iterator[Sftp]:
        """Yield the client, started if need be; close it on any error but ``Refused``."""
        with self._lock:
            if self._now is None:
                self._now = self._begin()
            try:
                yield self._now[0]
            except Refused:
                raise
            except BaseException:
                self._end()
                raise

    def make_room(self) -> None:
        """End it if it is idle; the next use begins it again."""
        if self._lock.acquire(blocking=False):
            try:
                self._end()
            finally:
                self._lock.release()

    def _end(self) -> None:
        if self._now:
            self._now[1].close()
        self._now = None


class Session:
    """The channels of one connection."""

    def __init__(self, target: SshTarget, link: Link) -> None:
        self._node, self._user, self._link = target.name, target.user, link
        self._has_shell = False
        self._slots = threading.BoundedSemaphore(MOST_CHANNELS)
        self._proving = threading.Lock()
        self._files = Standing(self._begin_files)

    @property
    def alive(self) -> bool:
        """Return whether the connection is open, as far as is known."""
        return self._link.alive

    def close(self) -> None:
        self._link.close()

    def execute(self, marks: Marks, text: bytes, limit_s: float) -> ChannelStream:
        """Have the user's login shell start /bin/sh, which reads ``text``.

        Raises:
            NodeError: nothing of it was run.
        """
        refused = errors.NodeError(
            "its sshd refuses to run commands",
            code="SSH-EXEC",
            node=self._node,
            fix="check ForceCommand and the user's shell there",
        )
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
    def files(self) -> Iterator[Sftp]:
        """Yield the SFTP client of the node.

        Raises:
            Refused: the node refuses; the connection is good.
            NodeError: the connection is lost.
        """
        with self.ours("a file transfer"), self._files.use() as sftp:
            yield sftp

    @contextmanager
    def ours(self, doing: str) -> Iterator[None]:
        """Turn errors of the connection into ours; a silent connection is ended.

        Args:
            doing: what is under way, for the message.

        Raises:
            NodeUnreachable: what was under way may or may not be done.
            UnfitError: OUTPUT; a command wrote more than 64 MiB.
        """
        try:
            yield
        except TimeoutError as error:
            self._link.hang_up()
            raise self._link.explain_loss(self._node, doing) from error
        except TooMuch as error:
            raise errors.UnfitError(
                f"{doing} wrote more than {MOST_OUTPUT_BYTES >> 20} MiB",
                code="OUTPUT",
                node=self._node,
            ) from error
        except (Lost, struct.error, OSError, EOFError, paramiko.SSHException) as error:
            lacking = open_files.lacking(error, self._node)
            raise lacking or self._link.explain_loss(self._node, doing) from error

    def explain_loss(self, doing: str) -> errors.NodeError:
        """Return the error for a command that left no exit status."""
        if not self.alive:
            return self._link.explain_loss(self._node, doing)
        return errors.NodeError(
            f"the shell that ran {doing} was killed; {doing} may still be running",
            code="SSH-KILLED",
            node=self._node,
            fix="check the memory and the log of the node",
        )

    def prove(self) -> None:
        """End the connection if sshd does not answer within ``ANSWER_S``."""
        with self._proving:
            watch = threading.Timer(ANSWER_S, self._link.hang_up)  # paramiko would wait for ever
            watch.daemon = True
            watch.start()
            try:
                self._link.transport.global_request("keepalive@openssh.com", wait=True)
            finally:
                watch.cancel()

    def _begin_files(self) -> tuple[Sftp, ChannelStream]:
        missing = errors.NodeError(
            "its sshd has no SFTP, which reading and writing files needs, or a start-up file of the"
            " user's keeps it from starting",
            code="SSH-SFTP",
            node=self._node,
            fix="set Subsystem sftp internal-sftp in its sshd_config",
        )
        stream = self._open(lambda channel: channel.invoke_subsystem("sftp"), missing)
        stream.settimeout(ANSWER_S)
        try:
            return Sftp(stream), stream
        except (Lost, TimeoutError) as error:
            stream.close()
            self.prove()
            if self.alive:
                raise missing from error
            raise

    def _explain_no_shell(self, ended: str, printed: bytes) -> errors.NodeError:
        """Return the error for a login shell that has started no command."""
        self.prove()
        if not self.alive:
            return self._link.explain_loss(self._node, "starting a command")
        if self._has_shell:
            cause = f"{SH} {ended}, though it has run commands before"
            return errors.CommandTimedOut(cause, code="TIMEOUT", node=self._node)
        lines = printed.decode(errors="replace").strip().splitlines()
        said = f' after it printed "{printable(lines[-1][:MOST_SHOWN])}"' if lines else ""
        return errors.NodeError(
            f"the login shell of {self._user} runs no command: it {ended}{said}",
            code="SSH-SHELL",
            node=self._node,
            fix=f"look at its start-up files, ~/.ssh/rc and /etc/ssh/sshrc of {self._user} there,"
            f" or `chsh -s /bin/sh {self._user}`",
        )

    def _open(self, ask: Callable[[Any], None], refused: errors.NodeError) -> ChannelStream:
        began = time.monotonic()
        if not self._slots.acquire(timeout=SESSION_S):
            raise self._too_many(f"all {MOST_CHANNELS} channels have been busy")
        try:
            channel = self._channel(began)
            self._ask(channel, ask, refused)
        except BaseException:
            self._slots.release()
            raise
        return ChannelStream(self._node, channel, self._link, self._slots.release)

    def _channel(self, began: float) -> Any:
        """Open a channel; close idle standing channels if sshd allows no more."""
        while True:
            with self.ours("opening a channel"):
                try:
                    return self._link.transport.open_session(timeout=ANSWER_S)
                except paramiko.SSHException as error:
                    # Threads that fail at once share paramiko's one memory of the reason.
                    if "Timeout" in str(error):
                        self._link.hang_up()
                    if not self.alive:
                        raise
            if time.monotonic() > began + SESSION_S:
                raise self._too_many("its sshd has allowed no further session")
            time.sleep(PAUSE_S * random.SystemRandom().uniform(0.5, 1.5))
            if time.monotonic() > began + GRACE_S:  # it is not only slow to let go of old ones
                self._files.make_room()

    def _ask(self, channel: Any, ask: Callable[[Any], None], refused: errors.NodeError) -> None:
        try:
            with self.ours("starting a command"):
                channel.event = Answered()
                ask(channel)
        except errors.NodeUnreachable as error:
            if self.alive:
                raise refused from error
            raise

    def _too_many(self, cause: str) -> errors.NodeError:
        return errors.NodeUnreachable(
            f"{cause} for {SESSION_S:g} s",
            code="SSH-SESSIONS",
            node=self._node,
            fix="raise MaxSessions in its sshd_config, or end other sessions",
        )


class SshTransport:
    """A node that is reached by SSH: connected at the first call, and again after a loss.

    At most six commands and streams run at once; further ones queue. Limits of time begin once the
    node is connected, which has limits of its own. A login shell that starts no command is
    SSH-SHELL.
    """

    def __init__(self, target: SshTarget) -> None:
        self.node = target.name
        self._session = Cached(
            lambda: Session(target, connect(target)),
            lambda session: session.alive,
            Session.close,
        )

    def run(self, argv: tuple[str, ...], *, timeout_s: float) -> Completed:
        session, marks = self._session.get(), Marks()
        deadline = time.monotonic() + timeout_s
        stream = session.execute(marks, marks.run(argv), timeout_s)
        with contextlib.closing(stream), session.ours(argv[0]):
            try:
                answer = stream.finish(marks, deadline)
            except TimeoutError as error:
                stream.close()
                session.prove()
                raise errors.CommandTimedOut(
                    f"{argv[0]} gave no answer in {limit(timeout_s)}",
                    code="TIMEOUT",
                    node=self.node,
                ) from error
        if answer is None:
            raise session.explain_loss(argv[0])
        return Completed(*answer)

    def put(self, content: bytes, path: str) -> None:
        session = self._session.get()
        aside = f"{path}.{secrets.token_hex(4)}.new"
        try:
            with session.files() as sftp:
                _create(sftp, content, aside)
                sftp.rename(aside, path)
        except Refused as refused:
            why = self._reason(refused, WRITE, aside, str(len(content)))
            raise errors.UnfitError(
                f"cannot write {path}: {why}", code="WRITE", node=self.node
            ) from refused

    def get(self, path: str, offset: int = 0) -> bytes | None:
        return self._read(path, offset, own=False)

    def get_own(self, path: str, offset: int = 0) -> bytes | None:
        return self._read(path, offset, own=True)

    def feed(self, path: str, line: bytes) -> bool:
        words = ("sh", "-c", FEED, "sh", path, line.decode())
        return self.run(words, timeout_s=COMMAND_S).exit_code == 0

    def _read(self, path: str, offset: int, *, own: bool) -> bytes | None:
        session = self._session.get()
        try:
            with session.files() as sftp:
                try:
                    read = sftp.read_own if own else sftp.read
                    return read(path, offset, MOST_READ_BYTES)
                except Refused as refused:
                    # What is under /proc may go away between being opened and being read.
                    if refused.is_absent or not sftp.exists(path):
                        return None
                    raise
        except Refused as refused:
            why = self._reason(refused, READ, path)
            raise errors.UnfitError(
                f"cannot read {path}: {why}", code="READ", node=self.node
            ) from refused

    def open(self, argv: tuple[str, ...]) -> Stream:
        marks = Marks()
        return self._session.get().execute(marks, marks.open(argv), SHELL_S)

    def close(self) -> None:
        self._session.drop()

    def _reason(self, refused: Refused, script: str, *words: str) -> str:
        """Find why the node refuses, from the last line of a shell that tries the same."""
        script = f"export LC_ALL=C\n{script}"
        tried = self.run(("sh", "-c", script, "sh", *words), timeout_s=COMMAND_S)
        lines = tried.stderr.decode(errors="replace").strip().splitlines()
        return lines[-1] if tried.exit_code and lines else str(refused)


def _create(sftp: Sftp, content: bytes, path: str) -> None:
    """Create a file and the folders above it; after ``Refused`` no part of the file is left."""
    try:
        try:
            sftp.create(path, content, 0o600)
        except Refused as refused:
            if not refused.is_absent:
                raise
            _make_folder(sftp, os.path.dirname(path))
            sftp.create(path, content, 0o600)
    except Refused:
        with contextlib.suppress(Refused):
            sftp.remove(path)
        raise


def _make_folder(sftp: Sftp, path: str) -> None:
    try:
        sftp.make_folder(path, 0o700)
    except Refused as refused:
        if refused.is_absent:
            _make_folder(sftp, os.path.dirname(path))
            sftp.make_folder(path, 0o700)
        elif not sftp.exists(path):
            raise
