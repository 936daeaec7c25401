"""What runs over one SSH connection: a few channels at a time, two of them kept open."""

import random
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

import paramiko

from orchestrator import errors
from orchestrator.deadlines import ANSWER_S, SESSION_S
from orchestrator.transports import open_files
from orchestrator.transports._channel import MOST_BYTES, ChannelStream, TooMuch
from orchestrator.transports._feeder import Feeder
from orchestrator.transports._link import Link
from orchestrator.transports._paramiko import Answered
from orchestrator.transports._sftp import Lost, Refused, Sftp

T = TypeVar("T")
# sshd has MaxSessions 10 by default.
MOST_CHANNELS = 6
PAUSE_S = 0.05
GRACE_S = 0.5


class Standing(Generic[T]):
    """A client over a channel that stays open, for one thread at a time."""

    def __init__(self, begin: Callable[[], tuple[T, ChannelStream]]) -> None:
        self._begin = begin
        self._lock = threading.Lock()
        self._now: tuple[T, ChannelStream] | None = None

    @contextmanager
    def use(self) -> Iterator[T]:
        """The client, begun if need be; any error but ``Refused`` ends it."""
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

    def __init__(self, node: str, link: Link) -> None:
        self._node, self._link = node, link
        self._slots = threading.BoundedSemaphore(MOST_CHANNELS)
        self._proving = threading.Lock()
        self._files = Standing(self._begin_files)
        self._feeder = Standing(self._begin_feeder)

    @property
    def alive(self) -> bool:
        """Whether no loss of the connection has been noticed."""
        return self._link.alive

    def close(self) -> None:
        """End the connection; what runs on the node goes on."""
        self._link.close()

    def execute(self, command: str) -> ChannelStream:
        """Start a command by the login user's shell.

        Raises:
            NodeError: it was not started.
        """
        refused = errors.NodeError(
            "its sshd refuses to run commands",
            code="SSH-EXEC",
            node=self._node,
            fix="check ForceCommand and the user's shell there",
        )
        return self._open(lambda channel: channel.exec_command(command), refused)

    @contextmanager
    def files(self) -> Iterator[Sftp]:
        """The SFTP client of the node.

        Raises:
            Refused: the node refuses; the connection is good.
            NodeError: the connection is lost.
        """
        with self.ours("a file transfer"), self._files.use() as sftp:
            yield sftp

    def feed(self, path: str, line: bytes) -> bool:
        """Write a line into a FIFO; False if nobody reads it.

        Raises:
            NodeError: it may or may not have been written.
        """
        with self.ours("feeding a FIFO"), self._feeder.use() as feeder:
            return feeder.feed(path, line)

    def begin(self, argv: tuple[str, ...]) -> None:
        """Start a command in a session of its own.

        Raises:
            NodeError: it may or may not have been started.
        """
        with self.ours(f"starting {argv[0]}"), self._feeder.use() as feeder:
            feeder.begin(argv)

    def make_ready(self) -> None:
        """Begin the shell that feeds FIFOs, so that opening a gate is one round trip."""
        with self.ours("feeding a FIFO"), self._feeder.use():
            return

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
            raise self._link.lost(self._node, doing) from error
        except TooMuch as error:
            raise errors.UnfitError(
                f"{doing} wrote more than {MOST_BYTES >> 20} MiB",
                code="OUTPUT",
                node=self._node,
            ) from error
        except (Lost, struct.error, OSError, EOFError, paramiko.SSHException) as error:
            lacking = open_files.lacking(error, self._node)
            raise lacking or self._link.lost(self._node, doing) from error

    def lost(self, doing: str) -> errors.NodeError:
        """The error for a command that left no exit status."""
        if not self.alive:
            return self._link.lost(self._node, doing)
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
            "its sshd has no SFTP, which reading and writing files needs",
            code="SSH-SFTP",
            node=self._node,
            fix="set Subsystem sftp internal-sftp in its sshd_config",
        )
        stream = self._open(lambda channel: channel.invoke_subsystem("sftp"), missing)
        stream.settimeout(ANSWER_S)
        try:
            return Sftp(stream), stream
        except Lost as error:
            stream.close()
            if self.alive:
                raise missing from error
            raise

    def _begin_feeder(self) -> tuple[Feeder, ChannelStream]:
        stream = self.execute(Feeder.COMMAND)
        stream.settimeout(ANSWER_S)
        return Feeder(stream), stream

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
        """A fresh channel; if sshd allows no more, idle standing channels are closed."""
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
                self._feeder.make_room()

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
