"""Authenticated SSH connections, directly or through a jump host, by fabric and paramiko."""

import errno
import logging
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import partial
from types import SimpleNamespace
from typing import Any

import fabric
import paramiko

from orchestrator import errors
from orchestrator.deadlines import ANSWER_S, CONNECT_S, LAST_WORDS_S, SILENCE_S
from orchestrator.retries import CONNECT
from orchestrator.transports import _failures, known_hosts
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

# paramiko's errors become ours; without a handler it prints tracebacks.
logging.getLogger("paramiko").addHandler(logging.NullHandler())


Pipe = Any  # a socket, or a channel of paramiko's through a jump host
Dial = Callable[[SshTarget], AbstractContextManager[Pipe]]
Judge = Callable[[HostKey], None]  # raises if a host key is not trusted


class Wire:
    """A pipe that keeps why the connection ended, which paramiko does not.

    ``reader`` is the thread that reads; it alone closes the descriptor, whose number could
    otherwise belong to another connection by the time it wakes.
    """

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe
        self._closed = False  # paramiko looks at this, as sockets have it
        self.ending: _failures.Ending = ""
        self.reader: threading.Thread | None = None

    def recv(self, size: int) -> bytes:
        """Read at most ``size`` bytes; return none once it ended, for whatever reason.

        Raises:
            TimeoutError: nothing came yet.
        """
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
        """Send some of the bytes; return how many.

        Raises:
            TimeoutError: none could be sent yet.
            ConnectionResetError: it ended.
        """
        try:
            sent: int = self._pipe.send(data)
            return sent
        except OSError as error:
            self._note(error)
            raise ConnectionResetError(errno.ECONNRESET, "the connection ended") from error

    def settimeout(self, seconds: float | None) -> None:
        self._pipe.settimeout(seconds)

    def note_end(self, how: _failures.Ending) -> None:
        """Note how it ended; only the first call counts."""
        self.ending = self.ending or how

    def _note(self, error: OSError) -> None:
        """Note how it ended; raise the error again if it is only a pause."""
        if isinstance(error, TimeoutError) and error.errno != errno.ETIMEDOUT:
            raise error
        self.note_end("silent" if isinstance(error, TimeoutError) else "reset")

    def close(self) -> None:
        """End both directions at once; never waits for the other side."""
        self._closed = True
        reader = self.reader
        if reader is None or reader is threading.current_thread() or not reader.is_alive():
            self._pipe.close()
        elif isinstance(self._pipe, socket.socket):
            with suppress(OSError):  # it ended by itself
                self._pipe.shutdown(socket.SHUT_RDWR)
        else:  # a channel of paramiko's: its reader is told that no more comes
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


class Spoken(paramiko.Transport):  # type: ignore[misc]  # paramiko has no types
    """paramiko's transport, with one bug worked around and the server's last message kept.

    ``farewell`` is the server's message when it disconnects.
    """

    farewell = ""
    _channel_handler_table = {  # noqa: RUF012  # paramiko's own, never changed
        **paramiko.Transport._channel_handler_table,
        CHANNEL_CLOSE: _handle_close,
    }

    def _parse_disconnect(self, message: Any) -> None:
        message.get_int()
        self.farewell = message.get_text()


class _AnotherKey(Exception):
    """The node shows another host key than the pinned one."""

    def __init__(self, key: HostKey) -> None:
        super().__init__(key.fingerprint)
        self.key = key


OURS = (errors.DlperfError, _AnotherKey)


class Link:
    """One authenticated connection; ``transport`` is paramiko's."""

    def __init__(self, client: Any, wire: Wire) -> None:
        self._client, self._wire = client, wire
        self.transport = client.get_transport()
        self.parting = ExitStack()
        self._proving = threading.Lock()

    @property
    def alive(self) -> bool:
        """Return whether the connection is open, as far as is known."""
        return bool(self.transport.is_active()) and not self._wire.ending

    def hang_up(self) -> None:
        """End a silent connection at once, also for every thread that waits for it."""
        self._wire.note_end("silent")
        self._wire.close()

    def explain_loss(self, node: str, doing: str, error: object = None) -> errors.NodeUnreachable:
        """Return the error for what was under way when the connection ended."""
        farewell = self.transport.farewell
        return _failures.explain_loss(node, self._wire.ending, farewell, doing, error)

    def prove(self) -> None:
        """End the connection if sshd does not answer within ``ANSWER_S``."""
        with self._proving:
            watch = threading.Timer(ANSWER_S, self.hang_up)  # paramiko would wait for ever
            watch.daemon = True
            watch.start()
            try:
                self.transport.global_request("keepalive@openssh.com", wait=True)
            finally:
                watch.cancel()

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
            _shake_hands(target, _way(target, parting), _kinds(entries), judge, None)
        except _AnotherKey as shown:
            return shown.key
    raise AssertionError("no handshake ends without a look at the host key")


def _log_in(target: SshTarget, dial: Dial) -> Link:
    identity = private_key(target)
    name = known_hosts.called(target.address, target.port)
    if target.host_key is None:
        entries = known_hosts.about(target.known_hosts, name)
        judge = partial(known_hosts.judge, target.name, name, entries)
        return _shake_hands(target, dial, _kinds(entries), judge, identity)

    def compare(key: HostKey) -> None:
        if key.fingerprint != target.host_key:
            raise _AnotherKey(key)

    # A fingerprint does not tell its key's kind: one after another is requested.
    seen: list[HostKey] = []
    for kinds in (tuple(HOST_KEYS), *((kind,) for kind in HOST_KEYS)):
        if any(kinds == (key.kind,) for key in seen):
            continue
        try:
            return _shake_hands(target, dial, kinds, compare, identity)
        except _AnotherKey as other:
            seen.append(other.key)
        except errors.NodeError as error:
            if error.code != "SSH-ALGO" or not seen:
                raise
    raise errors.NodeError(
        f"{name} shows the host key {', '.join(map(str, seen))};"
        f" the inventory says host_key: {target.host_key}",
        code="SSH-HOSTKEY-CHANGED",
        node=target.name,
        fix="find out why it changed; only then correct host_key in the inventory",
    )


def _kinds(entries: Sequence[Entry]) -> tuple[str, ...]:
    """Return the kinds of host key to request; those in known_hosts come first."""
    trusted = [entry.key.kind for entry in entries if not entry.is_revoked]
    return tuple(dict.fromkeys(kind for kind in (*trusted, *HOST_KEYS) if kind in HOST_KEYS))


def _shake_hands(
    target: SshTarget, dial: Dial, kinds: Sequence[str], judge: Judge, identity: Any
) -> Link:
    """Open a connection; try again if the machine is only busy (``retries.CONNECT``).

    Args:
        kinds: of host keys, the preferred first.
        identity: our private key; None to look at the host key only.
    """

    def start(wire: Wire, **_: object) -> Spoken:
        spoken = wire.reader = Spoken(wire)
        spoken.handshake_timeout = ANSWER_S
        options = spoken.get_security_options()
        options.key_types = [name for kind in kinds for name in HOST_KEYS[kind]]
        options.ciphers, options.digests = CIPHERS, MACS
        return spoken

    def look(_client: object, _name: str, key: Any) -> None:
        judge(HostKey(key.get_name(), key.asbytes()))

    def try_once() -> Link:
        with dial(target) as pipe:
            wire = Wire(pipe)
            connection = fabric.Connection(
                host=target.address,
                user=target.user,
                port=target.port,
                # Nobody's ssh_config or fabric.yaml changes where, and as whom, we log in. Not
                # shared: a Connection writes into its own, which others would see half done.
                config=fabric.Config(lazy=True, overrides={"load_ssh_configs": False}),
                connect_kwargs={
                    "sock": wire,
                    "transport_factory": start,
                    "pkey": identity,
                    "allow_agent": False,
                    "look_for_keys": False,
                    "banner_timeout": ANSWER_S,
                    "auth_timeout": ANSWER_S,
                    "channel_timeout": ANSWER_S,
                },
            )
            client = connection.client
            # paramiko is given no known_hosts, so it asks for every key.
            client.set_missing_host_key_policy(SimpleNamespace(missing_host_key=look))
            try:
                connection.open()
            except BaseException as error:
                raise _give_up(target, wire, client, error) from error
            wire.settimeout(IDLE_S)
            return Link(client, wire)

    return CONNECT.call(try_once)


def _give_up(target: SshTarget, wire: Wire, client: Any, error: BaseException) -> BaseException:
    """Close a connection that was not made; return the error to raise."""
    spoken = client.get_transport()
    # paramiko re-raises any exception of its thread.
    if isinstance(error, Exception) and not isinstance(error, OURS):
        error = _failures.explain_failure(target, wire.ending, spoken, error)
    wire.close()
    if spoken:
        # Its timer would hold up the end of the process as long as a handshake may take.
        spoken.packetizer.complete_handshake()
        client.close()
        spoken.join(LAST_WORDS_S)
    return error


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
        raise _failures.explain_no_connection(target, error) from error
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
            raise self._explain(target, error) from error
        with _handshakes:
            place = (target.address, target.port)
            try:
                channel = link.transport.open_channel(
                    "direct-tcpip", place, ("127.0.0.1", 0), timeout=CONNECT_S
                )
            except paramiko.ChannelException as error:
                is_forbidden = error.code == FORBIDDEN
                raise errors.NodeUnreachable(
                    f"the jump host cannot reach {place[0]} port {place[1]}: {error.text}",
                    code="SSH-JUMP" if is_forbidden else "SSH-UNREACHABLE",
                    fix="set AllowTcpForwarding (and PermitOpen) in the jump host's sshd_config"
                    if is_forbidden
                    else "check the address, the machine and its sshd",
                    node=target.name,
                    jump=self._target.address,
                ) from error
            except (paramiko.SSHException, OSError, EOFError) as error:
                if "Timeout" in str(error):
                    link.hang_up()
                lost = link.explain_loss(target.name, "the way through", error)
                raise self._explain(target, lost) from error
            yield channel

    def leave(self) -> None:
        """Close the connection if nobody else is behind it."""
        with _lock:
            self.users -= 1
            if self.users:
                return
            _gates.pop(self._target, None)
        self._link.drop()

    def _explain(self, target: SshTarget, error: errors.NodeError) -> errors.NodeError:
        """Return the jump host's error as an error of the node behind it."""
        return type(error)(
            f"by the jump host: {error.cause}",
            code="SSH-JUMP" if isinstance(error, errors.NodeUnreachable) else error.code,
            fix=error.fix,
            node=target.name,
            jump=self._target.address,
        )
