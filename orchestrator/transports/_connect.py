"""Authenticated SSH connections, directly or through a jump host, by fabric and paramiko."""

import errno
import logging
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from types import SimpleNamespace
from typing import Any, Literal

import fabric
import paramiko

from orchestrator import errors
from orchestrator.deadlines import ANSWER_S, CONNECT_S, LAST_WORDS_S, SILENCE_S
from orchestrator.model.node import Node
from orchestrator.retries import CONNECT
from orchestrator.transports import known_hosts
from orchestrator.transports._login import jump_host, private_key
from orchestrator.transports.cached import Cached
from orchestrator.transports.failures import failure
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

Judge = Callable[[HostKey], None]  # raises if a host key is not trusted
Ending = Literal["", "closed", "reset", "silent"]
ENDINGS = {
    "closed": "the other side closed the connection",
    "reset": "the connection was reset",
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

    def note_end(self, how: Ending) -> None:
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
    """The node shows another host key, the argument, than the pinned one."""


OURS = (errors.DlperfError, _AnotherKey)


class Link:
    """One authenticated connection; ``transport`` is paramiko's."""

    def __init__(self, client: Any, wire: Wire) -> None:
        self._client, self._wire = client, wire
        self.transport = client.get_transport()
        self._proving = threading.Lock()

    @property
    def alive(self) -> bool:
        """Return whether the connection is open, as far as is known."""
        return bool(self.transport.is_active()) and not self._wire.ending

    def hang_up(self) -> None:
        """End a silent connection at once, also for every thread that waits for it."""
        self._wire.note_end("silent")
        self._wire.close()

    def explain_loss(self, node: str, doing: str, error: object = None) -> errors.DlperfError:
        """Return the error for what was under way when the connection ended."""
        ending, farewell = self._wire.ending, self.transport.farewell
        words = f" with the words {farewell!r}" if farewell else ""
        why = f" ({error})" if error and not ending else ""
        return failure(
            "SSH-RESET" if farewell or ending in ("closed", "reset") else "SSH-LOST",
            f"{ENDINGS[ending]}{words} during {doing}{why}; what was started there may still run",
            node=node,
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

    def prove(self) -> None:
        """End the connection if sshd does not answer."""
        with self._proving, self.watched():
            self.transport.global_request("keepalive@openssh.com", wait=True)

    def close(self) -> None:
        """End it, and close its descriptor."""
        self._client.close()
        self.transport.join(LAST_WORDS_S)


def offered_key(node: Node) -> HostKey:
    """Return the host key that a node shows, trusted or not, if possible of a kind in known_hosts.

    Raises:
        NodeError: it shows none, or the jump host cannot be passed.
    """
    entries = known_hosts.about(node.known_hosts, known_hosts.called(node.address, node.port))
    try:
        _shake_hands(node, _kinds(entries), partial(_insist, None), None)
    except _AnotherKey as shown:
        key: HostKey = shown.args[0]
        return key
    raise AssertionError("no handshake ends without a look at the host key")


def connect(node: Node) -> Link:
    """Open an authenticated connection to a machine whose host key is trusted.

    Raises:
        NodeError: there is none; nothing was run.
        LocalError: the key or known_hosts cannot be read.
    """
    identity = private_key(node)
    name = known_hosts.called(node.address, node.port)
    if node.host_key is None:
        entries = known_hosts.about(node.known_hosts, name)
        judge = partial(known_hosts.judge, node.name, name, entries)
        return _shake_hands(node, _kinds(entries), judge, identity)
    # A fingerprint does not tell its key's kind: one after another is requested.
    seen: list[HostKey] = []
    for kinds in (tuple(HOST_KEYS), *((kind,) for kind in HOST_KEYS)):
        if any(kinds == (key.kind,) for key in seen):
            continue
        try:
            return _shake_hands(node, kinds, partial(_insist, node.host_key), identity)
        except _AnotherKey as other:
            seen.append(other.args[0])
        except errors.NodeError as error:
            if error.code != "SSH-ALGO" or not seen:
                raise
    cause = f"{name} shows the host key {', '.join(map(str, seen))}"
    pinned = f"the inventory says host_key: {node.host_key}"
    raise failure("SSH-HOSTKEY-CHANGED", f"{cause}; {pinned}", node=node.name)


def _insist(fingerprint: str | None, key: HostKey) -> None:
    if key.fingerprint != fingerprint:
        raise _AnotherKey(key)


def _kinds(entries: Sequence[Entry]) -> tuple[str, ...]:
    """Return the kinds of host key to request; those in known_hosts come first."""
    trusted = [entry.key.kind for entry in entries if not entry.is_revoked]
    return tuple(dict.fromkeys(kind for kind in (*trusted, *HOST_KEYS) if kind in HOST_KEYS))


def _shake_hands(node: Node, kinds: Sequence[str], judge: Judge, identity: Any) -> Link:
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
        with _dial(node) as pipe:
            wire = Wire(pipe)
            connection = fabric.Connection(
                host=node.address,
                user=node.user,
                port=node.port,
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
                },
            )
            client = connection.client
            # paramiko is given no known_hosts, so it asks for every key.
            client.set_missing_host_key_policy(SimpleNamespace(missing_host_key=look))
            try:
                connection.open()
            except BaseException as error:
                why, spoken = error, client.get_transport()
                # paramiko re-raises any exception of its thread.
                if isinstance(error, Exception) and not isinstance(error, OURS):
                    why = _explain_failure(node, wire.ending, spoken, error)
                wire.close()
                if spoken:
                    # Its timer would hold up the end of the process until it fires.
                    spoken.packetizer.complete_handshake()
                    client.close()
                    spoken.join(LAST_WORDS_S)
                raise why from error
            wire.settimeout(IDLE_S)
            return Link(client, wire)

    return CONNECT.call(try_once)


def _explain_failure(
    node: Node, ending: Ending, spoken: Spoken, error: Exception
) -> errors.DlperfError:
    """Return the error for a connection on which the handshake or the login failed."""
    said, port = str(error), f"port {node.port}"
    farewell = f", with the words {spoken.farewell!r}" if spoken.farewell else ""
    login = f"user {node.user} with the key {node.identity}"
    is_refused = isinstance(error, paramiko.AuthenticationException) and "timeout" not in said
    if not spoken.remote_version and ending in ("closed", "reset"):
        code = "SSH-THROTTLED"
        cause = f"{port} hangs up before its greeting, as sshd does beyond MaxStartups"
    elif not spoken.remote_version:
        code = "SSH-NO-BANNER"
        cause = f"{port} accepts connections and sends no greeting of an sshd in {ANSWER_S:g} s"
    elif isinstance(error, paramiko.ssh_exception.IncompatiblePeer) or "agree on" in said:
        code, cause = "SSH-ALGO", f"no SSH algorithm in common: {said}"
    elif is_refused and "Too many" in farewell:
        code, cause = "SSH-AUTH-TRIES", f"sshd gives up on {login}, the only one offered{farewell}"
    elif is_refused and (farewell or not ending):  # the user or the key: sshd does not say
        code, cause = "SSH-AUTH", f"sshd does not let in {login}{farewell}"
    else:
        code = "SSH-RESET" if ending in ("closed", "reset") else "SSH-LOST"
        why = f"during the SSH handshake{farewell} ({said or 'no reason'})"
        cause = f"{port}: {ENDINGS[ending]} {why}"
    return failure(code, cause, node=node.name, address=node.address)


_handshakes = threading.BoundedSemaphore(MOST_HANDSHAKES)
# One connection for everybody behind a jump host, until the program ends.
_jump_links: dict[tuple[object, ...], Cached[Link]] = {}


@contextmanager
def _dial(node: Node) -> Iterator[Any]:
    """Yield a byte stream to a node, at the turn of its handshake.

    Raises:
        NodeError: the node or its jump host cannot be reached or passed.
    """
    if jump := jump_host(node):
        with _pass_through(jump, node) as channel:
            yield channel
        return
    try:
        dialled = socket.create_connection((node.address, node.port), CONNECT_S)
        for level, option, value in KEPT_ALIVE:
            dialled.setsockopt(level, option, value)
    except OSError as error:
        code, cause = "SSH-UNREACHABLE", f"cannot be reached: {error.strerror}"
        if isinstance(error, ConnectionRefusedError):
            code, cause = "SSH-REFUSED", "refuses the connection"
        elif isinstance(error, TimeoutError):
            cause = f"does not answer in {CONNECT_S:g} s"
        elif isinstance(error, socket.gaierror):
            cause = f"cannot be reached, the name has no address: {error.strerror}"
        where = {"node": node.name, "address": node.address}
        raise failure(code, f"port {node.port} {cause}", **where) from error
    with _handshakes:
        yield dialled


@contextmanager
def _pass_through(jump: Node, node: Node) -> Iterator[Any]:
    login = (jump.address, jump.port, jump.user, jump.identity, jump.agent, jump.known_hosts)
    shared = Cached(lambda: connect(jump), lambda link: link.alive, Link.close)
    where = {"node": node.name, "jump": jump.address}
    try:
        link = _jump_links.setdefault(login, shared).get()
    except errors.NodeError as error:
        code = "SSH-JUMP" if isinstance(error, errors.NodeUnreachable) else error.code
        raise failure(code, f"by the jump host: {error.cause}", **where) from error
    with _handshakes:
        try:
            channel = link.transport.open_channel(
                "direct-tcpip", (node.address, node.port), ("127.0.0.1", 0), timeout=CONNECT_S
            )
        except (paramiko.SSHException, OSError, EOFError) as error:
            link.prove()  # it serves others, who do not wait for this node
            code = "SSH-UNREACHABLE"
            if not link.alive or getattr(error, "code", 0) == FORBIDDEN:
                code = "SSH-JUMP"
            cause = f"the jump host does not reach {node.address} port {node.port}: {error}"
            raise failure(code, cause, **where) from error
        yield channel
