"""What runs over one SSH connection: a few channels at a time, two of them kept open."""

import contextlib
import posixpath
import random
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import paramiko

from orchestrator import errors
from orchestrator.deadlines import ANSWER_S, SESSION_S, SHELL_S
from orchestrator.transports import open_files
from orchestrator.transports._channel import MOST_BYTES, ChannelStream, TooMuch
from orchestrator.transports._link import Link
from orchestrator.transports._paramiko import Answered
from orchestrator.transports._sftp import Lost, Refused, Sftp
from orchestrator.transports._shell import SH, Marks, NoShell
from orchestrator.transports._target import SshTarget
from orchestrator.words import limit, printable

T = TypeVar("T")
# sshd has MaxSessions 10 by default.
MOST_CHANNELS = 6
PAUSE_S = 0.05
GRACE_S = 0.5
MOST_SHOWN = 200  # characters of a line that a login shell printed
# Those that a login shell reads for `ssh NODE COMMAND`, by its name.
START_FILES = {
    "bash": "~/.bashrc",
    "csh": "~/.cshrc",
    "fish": "~/.config/fish/config.fish",
    "tcsh": "~/.tcshrc or ~/.cshrc",
    "zsh": "~/.zshenv",
}


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
        """End the connection; what runs on the node goes on."""
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
            raise self._no_shell(ended, printed) from silent
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
                f"{doing} wrote more than {MOST_BYTES >> 20} MiB",
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

    def _no_shell(self, ended: str, printed: bytes) -> errors.NodeError:
        """Return the error for a login shell that has started no command."""
        self.prove()
        if not self.alive:
            return self._link.explain_loss(self._node, "starting a command")
        if self._has_shell:
            cause = f"{SH} {ended}, though it has run commands before"
            return errors.CommandTimedOut(cause, code="TIMEOUT", node=self._node)
        users = ""
        with contextlib.suppress(errors.DlperfError, Refused), self.files() as sftp:
            users = sftp.read("/etc/passwd", 0, MOST_BYTES).decode(errors="replace")
        entries = [line for line in users.splitlines() if line.startswith(f"{self._user}:")]
        shell = entries[0].rpartition(":")[2] if entries else "(unknown)"
        files = START_FILES.get(posixpath.basename(shell), "its start-up file")
        lines = printed.decode(errors="replace").strip().splitlines()
        said = f' after it printed "{printable(lines[-1][:MOST_SHOWN])}"' if lines else ""
        return errors.NodeError(
            f"login shell {shell} of {self._user} runs no command: it {ended}{said}",
            code="SSH-SHELL",
            node=self._node,
            fix=f"look at {files}, ~/.ssh/rc and /etc/ssh/sshrc of {self._user} there,"
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
