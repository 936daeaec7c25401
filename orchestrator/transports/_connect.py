"""Authenticated SSH connections, directly or through a jump host, by fabric and paramiko."""

import errno
import logging
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import fabric
import paramiko

from orchestrator import errors
from orchestrator.deadlines import ANSWER_S, CONNECT_S, LAST_WORDS_S, SILENCE_S
from orchestrator.retries import CONNECT
from orchestrator.transports import _failures, known_hosts, open_files
from orchestrator.transports._login import SshTarget, private_key
from orchestrator.transports.cached import Cached
from orchestrator.transports.known_hosts import Entry, HostKey

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
CHANNEL_CLOSE = 97  # RFC 4254, 9
FORBIDDEN = 1  # RFC 4254, 5.1: administratively prohibited
# sshd refuses unauthenticated connections beyond MaxStartups, 10 by default.
MOST_HANDSHAKES = 8
HOST_KEYS = {
    "ssh-ed25519": ("ssh-ed25519",),
    "ecdsa-sha2-nistp256": ("ecdsa-sha2-nistp256",),
    "ecdsa-sha2-nistp384": ("ecdsa-sha2-nistp384",),
    "ecdsa-sha2-nistp521": ("ecdsa-sha2-nistp521",),
    "ssh-rsa": ("rsa-sha2-512", "rsa-sha2-256"),
}
# AES-GCM is one call into OpenSSL for a packet; CTR with its MAC is three.
CIPHERS = ("aes128-gcm@openssh.com", "aes256-gcm@openssh.com", "aes128-ctr", "aes256-ctr")
MACS = ("hmac-sha2-256-etm@openssh.com", "hmac-sha2-512-etm@openssh.com", "hmac-sha2-256")
# How long the reader of an idle connection sleeps; data or an end wakes it. paramiko's 0.1 s are
# 10,000 awakenings a second over 1,000 nodes, more than a processor's worth.
IDLE_S = 10.0

Ending = Literal["", "closed", "reset", "silent"]

# paramiko's errors become ours; without a handler it prints tracebacks.
logging.getLogger("paramiko").addHandler(logging.NullHandler())


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


Dial = Callable[[SshTarget], AbstractContextManager[Pipe]]


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
        data = self._rest or self._receive(max(size, PIECE_BYTES))
        self._rest = data[size:]
        return data[:size]

    def _receive(self, size: int) -> bytes:
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
        else:  # a channel: its reader is told that no more comes
            self._pipe.in_buffer.close()  # type: ignore[attr-defined]  # paramiko's


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


class Spoken(paramiko.Transport):  # type: ignore[misc]  # paramiko has no types
    """paramiko's transport, with one bug worked around and the server's last message kept.

    ``farewell`` is the server's message when it disconnects.
    """

    farewell = ""
    _agreed_pubkey_algorithm = ""
    _channel_handler_table = {  # noqa: RUF012  # paramiko's own, never changed
        **paramiko.Transport._channel_handler_table,
        CHANNEL_CLOSE: _handle_close,
    }

    @property
    def signature(self) -> str:
        """The algorithm that an RSA key has signed with; empty for other keys."""
        return self._agreed_pubkey_algorithm

    def _parse_disconnect(self, message: Any) -> None:
        message.get_int()
        self.farewell = message.get_text()


class _AnotherKey(Exception):
    """The node shows another host key than the pinned one."""

    def __init__(self, key: HostKey) -> None:
        super().__init__(key.fingerprint)
        self.key = key


OURS = (errors.DlperfError, _AnotherKey)


@dataclass(frozen=True)
class _Terms:
    """The terms of a handshake.

    Args:
        kinds: of host keys, the preferred first.
        judge: raises if the host key is not trusted.
        identity: our private key; None to look at the host key only.
    """

    kinds: tuple[str, ...]
    judge: Callable[[HostKey], None]
    identity: Any

    def missing_host_key(self, client: Any, name: str, key: Any) -> None:  # noqa: ARG002  # paramiko's own signature
        """Judge the server's key; paramiko is given no known_hosts, so it asks for every key."""
        self.judge(HostKey(key.get_name(), key.asbytes()))

    def transport(self, wire: Wire, **_: object) -> Spoken:
        spoken = Spoken(wire)
        wire.reader = spoken
        spoken.handshake_timeout = ANSWER_S
        options = spoken.get_security_options()
        options.key_types = [name for kind in self.kinds for name in HOST_KEYS[kind]]
        options.ciphers, options.digests = CIPHERS, MACS
        return spoken


class Link:
    """One authenticated connection; ``transport`` is paramiko's."""

    def __init__(self, client: Any, wire: Wire) -> None:
        self._client, self._wire = client, wire
        self.transport = client.get_transport()
        self.parting = ExitStack()

    @property
    def alive(self) -> bool:
        """Return whether the connection is open, as far as is known."""
        return bool(self.transport.is_active()) and not self._wire.ending

    def hang_up(self) -> None:
        """End a silent connection at once, also for every thread that waits for it."""
        self._wire.note_end("silent")
        self._wire.close()

    def explain_loss(self, node: str, doing: str) -> errors.NodeUnreachable:
        """Return the error for what was under way when the connection ended."""
        return _failures.explain_loss(node, self._wire.ending, self.transport.farewell, doing)

    def close(self) -> None:
        """End it, close its descriptor, and leave the jump host."""
        self._client.close()
        self.transport.join(LAST_WORDS_S)
        self.parting.close()


def connect(target: SshTarget) -> Link:
    """Open an authenticated connection to a machine whose host key is trusted.

    Raises:
        NodeError: there is none; nothing was run.
        LocalError: the key or known_hosts cannot be read.
    """
    with ExitStack() as parting:
        link = _log_in(target, _way(target, parting))
        link.parting = parting.pop_all()
        return link


def offered_key(target: SshTarget) -> HostKey:
    """Return the host key that a node shows, trusted or not, if possible of a kind in known_hosts.

    Raises:
        NodeError: it shows none, or the jump host cannot be passed.
    """
    entries = known_hosts.about(target.known_hosts, known_hosts.called(target.address, target.port))

    def judge(key: HostKey) -> None:
        raise _AnotherKey(key)

    with ExitStack() as parting:
        try:
            _shake_hands(target, _way(target, parting), _Terms(_kinds(entries), judge, None))
        except _AnotherKey as shown:
            return shown.key
    raise AssertionError("no handshake ends without a look at the host key")


def _log_in(target: SshTarget, dial: Dial) -> Link:
    identity = private_key(target)
    name = known_hosts.called(target.address, target.port)
    if target.host_key is None:
        entries = known_hosts.about(target.known_hosts, name)

        def judge(key: HostKey) -> None:
            known_hosts.judge(target.name, name, key, entries)

        return _shake_hands(target, dial, _Terms(_kinds(entries), judge, identity))

    def compare(key: HostKey) -> None:
        if key.fingerprint != target.host_key:
            raise _AnotherKey(key)

    # A fingerprint does not tell its key's kind: one after another is requested.
    seen: list[HostKey] = []
    for kinds in (tuple(HOST_KEYS), *((kind,) for kind in HOST_KEYS)):
        if any(kinds == (key.kind,) for key in seen):
            continue
        try:
            return _shake_hands(target, dial, _Terms(kinds, compare, identity))
        except _AnotherKey as other:
            seen.append(other.key)
        except errors.NodeError as error:
            if error.code != "SSH-ALGO" or not seen:
                raise
    raise known_hosts.changed(target.name, name, seen, str(target.host_key))


def _kinds(entries: Sequence[Entry]) -> tuple[str, ...]:
    """Return the kinds of host key to request; those in known_hosts come first."""
    trusted = [
        entry.key.kind for entry in entries if not entry.marker and entry.key.kind in HOST_KEYS
    ]
    return tuple(dict.fromkeys([*trusted, *HOST_KEYS]))


def _shake_hands(target: SshTarget, dial: Dial, terms: _Terms) -> Link:
    """Open a connection; try again if the machine is only busy (``retries.CONNECT``)."""
    return CONNECT.call(lambda: _shake_hands_once(target, dial, terms))


def _shake_hands_once(target: SshTarget, dial: Dial, terms: _Terms) -> Link:
    with dial(target) as pipe:
        wire = Wire(pipe)
        connection = fabric.Connection(
            host=target.address,
            user=target.user,
            port=target.port,
            # Nobody's ssh_config or fabric.yaml changes where, and as whom, we log in. Not shared:
            # a Connection writes into its own, which other threads would see half done.
            config=fabric.Config(lazy=True, overrides={"load_ssh_configs": False}),
            connect_kwargs={
                "sock": wire,
                "transport_factory": terms.transport,
                "pkey": terms.identity,
                "allow_agent": False,
                "look_for_keys": False,
                "banner_timeout": ANSWER_S,
                "auth_timeout": ANSWER_S,
                "channel_timeout": ANSWER_S,
            },
        )
        client = connection.client
        client.set_missing_host_key_policy(terms)
        try:
            connection.open()
        except BaseException as error:
            spoken = client.get_transport()
            why = error
            # paramiko re-raises any exception of its thread here.
            if isinstance(error, Exception) and not isinstance(error, OURS):
                why = _failures.explain_failure(target, wire.greeting, wire.ending, spoken, error)
            wire.close()
            if spoken:
                # Its timer would hold up the end of the process as long as a handshake may take.
                spoken.packetizer.complete_handshake()
                client.close()
                spoken.join(LAST_WORDS_S)
            raise why from error
        wire.settimeout(IDLE_S)
        return Link(client, wire)


_handshakes = threading.BoundedSemaphore(MOST_HANDSHAKES)
_gates: "dict[SshTarget, _Gate]" = {}
_lock = threading.Lock()


@contextmanager
def _dial(target: SshTarget) -> Iterator[socket.socket]:
    """Yield a connected socket, at the turn of its handshake."""
    try:
        dialled = socket.create_connection((target.address, target.port), CONNECT_S)
        for level, option, value in KEPT_ALIVE:
            dialled.setsockopt(level, option, value)
    except OSError as error:
        lacking = open_files.lacking(error, target.name)
        raise lacking or _failures.explain_no_connection(target, error) from error
    with _handshakes:
        yield dialled


def _way(target: SshTarget, parting: ExitStack) -> Dial:
    """Return how to dial a machine; its jump host, if any, is left by ``parting``."""
    if target.gate is None:
        return _dial
    with _lock:
        gate = _gates.setdefault(target.gate, _Gate(target.gate))
        gate.users += 1
    parting.callback(gate.leave)
    return gate.dial


class _Gate:
    """A jump host: one connection for everybody behind it."""

    def __init__(self, target: SshTarget) -> None:
        self._target = target
        self._handshakes = threading.BoundedSemaphore(MOST_HANDSHAKES)
        self._link = Cached(lambda: _log_in(target, _dial), lambda link: link.alive, Link.close)
        self.users = 0

    @contextmanager
    def dial(self, target: SshTarget) -> Iterator[Pipe]:
        """Yield a byte stream to a machine behind it, at the turn of its handshake.

        Raises:
            NodeError: the jump host cannot be passed, or the machine cannot be reached from it.
        """
        try:
            link = self._link.get()
        except errors.NodeError as error:
            raise self._explain_jump(target, error) from error
        with self._handshakes:
            place = (target.address, target.port)
            try:
                channel: Pipe = link.transport.open_channel(
                    "direct-tcpip", place, ("127.0.0.1", 0), timeout=CONNECT_S
                )
            except paramiko.ChannelException as error:
                raise self._refuse(target, error) from error
            except (paramiko.SSHException, OSError, EOFError) as error:
                if "Timeout" in str(error):
                    link.hang_up()
                lost = link.explain_loss(target.name, "the way through")
                raise self._explain_jump(target, lost) from error
            yield channel

    def leave(self) -> None:
        """Close the connection if nobody else is behind it."""
        with _lock:
            self.users -= 1
            if self.users:
                return
            _gates.pop(self._target, None)
        self._link.drop()

    def _refuse(self, target: SshTarget, error: paramiko.ChannelException) -> errors.NodeError:
        if error.code == FORBIDDEN:
            cause = f"it refuses to forward to {target.address} port {target.port}"
            fix = "set AllowTcpForwarding (and PermitOpen) in its sshd_config"
            refused = errors.NodeUnreachable(cause, code="SSH-JUMP", node=target.name, fix=fix)
            return self._explain_jump(target, refused)
        return errors.NodeUnreachable(
            f"{target.address} port {target.port} cannot be reached from the jump host:"
            f" {error.text}",
            code="SSH-UNREACHABLE",
            node=target.name,
            jump=self._target.address,
            fix="check the address, the machine and its sshd",
        )

    def _explain_jump(self, target: SshTarget, error: errors.NodeError) -> errors.NodeError:
        """Return the jump host's error as an error of the node behind it."""
        where = {"node": target.name, "jump": self._target.address}
        cause = f"by the jump host: {error.cause}"
        if isinstance(error, errors.NodeUnreachable):
            return errors.NodeUnreachable(cause, code="SSH-JUMP", fix=error.fix, **where)
        return errors.NodeError(cause, code=error.code, fix=error.fix, **where)
