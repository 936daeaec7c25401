"""A node reached by SSH over one kept connection, directly or through a jump host, by fabric."""

import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fabric
import paramiko

from orchestrator import errors
from orchestrator.deadlines import ANSWER_S, CONNECT_S, LAST_WORDS_S, SHELL_S, SILENCE_S
from orchestrator.model.node import Node
from orchestrator.model.text import parse_endpoint
from orchestrator.retries import CONNECT
from orchestrator.transports import Completed, Stream, Transport, known_hosts
from orchestrator.transports._session import ENDINGS, LOST, ClientTransport, Ending, Session, Wire
from orchestrator.transports._shell import READ_ALL, Marks
from orchestrator.transports.cached import Cached
from orchestrator.transports.failures import make_error
from orchestrator.transports.known_hosts import Entry, HostKey
from orchestrator.words import limit

KEPT_ALIVE = (
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 5),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 2),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
    # Keepalive alone never looks while sent data waits for its acknowledgement.
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(SILENCE_S * 1000)),
)
FORBIDDEN = 1  # RFC 4254, 5.1: administratively prohibited
# sshd refuses unauthenticated connections beyond MaxStartups, 10 by default.
MOST_HANDSHAKES = 8
ECDSA = tuple(f"ecdsa-sha2-nistp{bits}" for bits in (256, 384, 521))
HOST_KEYS = ("ssh-ed25519", *ECDSA, "ssh-rsa")
RSA = ("rsa-sha2-512", "rsa-sha2-256")  # the algorithms of a key of the kind ssh-rsa
# AES-GCM is one call into OpenSSL for a packet; CTR with its MAC is three.
CIPHERS = ("aes128-gcm@openssh.com", "aes256-gcm@openssh.com", "aes128-ctr", "aes256-ctr")
MACS = ("hmac-sha2-256-etm@openssh.com", "hmac-sha2-512-etm@openssh.com", "hmac-sha2-256")
# How long the reader of an idle connection sleeps; data or an end wakes it. paramiko's 0.1 s are
# 10,000 awakenings a second over 1,000 nodes, more than a processor's worth.
IDLE_S = 10.0

# paramiko's errors become ours; without a handler it prints tracebacks.
logging.getLogger("paramiko").addHandler(logging.NullHandler())

Judge = Callable[[HostKey], None]  # raises if a host key is not trusted


class _AnotherKey(Exception):
    """The node shows another host key, the argument, than the pinned one."""


OURS = (errors.DlperfError, _AnotherKey)


class SshTransport(Transport):
    """A node that is reached by SSH: connected at the first call, and again after a loss.

    At most six commands and streams run at once; further ones queue. Limits of time begin once the
    node is connected, which has limits of its own.
    """

    unfit = errors.UnfitError

    def __init__(self, node: Node) -> None:
        super().__init__(node.name)
        self._session = Cached(lambda: connect(node), lambda it: it.is_alive, Session.close)

    def _start(self, argv: tuple[str, ...]) -> Stream:
        marks = Marks()
        return self._session.get().execute(marks, marks.format_open(argv), SHELL_S)

    def close(self) -> None:
        self._session.drop()

    def _execute(
        self, argv: tuple[str, ...], timeout_s: float, doing: str, content: bytes | None = None
    ) -> Completed:
        session, marks = self._session.get(), Marks()
        deadline = time.monotonic() + timeout_s
        is_fed = content is not None
        text = marks.format_run(argv, is_fed=is_fed)
        stream = session.resume(marks, text) if is_fed else None
        stream = stream or session.execute(marks, text, timeout_s)
        answer = None
        try:
            with session.translate_errors(doing):
                try:
                    with suppress(BrokenPipeError):  # its answer says why
                        stream.settimeout(timeout_s)
                        stream.sendall(content or b"")
                    answer = stream.finish(marks, deadline, doing, ANSWER_S if is_fed else 0)
                except TimeoutError as error:
                    stream.close()
                    session.probe()
                    cause = f"{doing} gave no answer in {limit(timeout_s)}"
                    raise make_error("TIMEOUT", cause, node=self.node) from error
        finally:
            if answer and is_fed and answer[0] in READ_ALL:
                session.keep(stream)
            else:
                stream.close()
        if answer is None and session.is_alive:
            cause = f"the shell that ran {doing} was killed; {doing} may still be running"
            raise make_error("SSH-KILLED", cause, node=self.node)
        if answer is None:
            raise session.explain_loss(doing)
        return Completed(*answer)


def fetch_host_key(node: Node) -> HostKey:
    """Return the host key that a node shows, if possible of a kind in known_hosts."""
    name = known_hosts.format_name(node.address, node.port)
    entries = known_hosts.find_entries(node.known_hosts, name)
    try:
        _shake_hands(node, _kinds(entries), partial(_check_fingerprint, None), None)
    except _AnotherKey as shown:
        key: HostKey = shown.args[0]
        return key
    raise AssertionError("no handshake ends without a look at the host key")


def connect(node: Node) -> Session:
    """Open an authenticated connection to a machine whose host key is trusted."""
    identity = private_key(node)
    name = known_hosts.format_name(node.address, node.port)
    if node.host_key is None:
        entries = known_hosts.find_entries(node.known_hosts, name)
        judge = partial(known_hosts.check_key, node.name, name, entries)
        return _shake_hands(node, _kinds(entries), judge, identity)
    # A fingerprint does not tell its key's kind: one after another is requested.
    seen: list[HostKey] = []
    for kinds in (HOST_KEYS, *((kind,) for kind in HOST_KEYS)):
        if any(kinds == (key.kind,) for key in seen):
            continue
        try:
            return _shake_hands(node, kinds, partial(_check_fingerprint, node.host_key), identity)
        except _AnotherKey as other:
            seen.append(other.args[0])
        except errors.NodeError as error:
            if error.code != "SSH-ALGO" or not seen:
                raise
    cause = f"{name} shows the host key {', '.join(map(str, seen))}"
    pinned = f"the inventory says host_key: {node.host_key}"
    raise make_error("SSH-HOSTKEY-CHANGED", f"{cause}; {pinned}", node=node.name)


def _check_fingerprint(fingerprint: str | None, key: HostKey) -> None:
    if key.fingerprint != fingerprint:
        raise _AnotherKey(key)


def _kinds(entries: Sequence[Entry]) -> tuple[str, ...]:
    """Return the kinds of host key to request; those in known_hosts come first."""
    trusted = [entry.key.kind for entry in entries if not entry.is_revoked]
    return tuple(dict.fromkeys(kind for kind in (*trusted, *HOST_KEYS) if kind in HOST_KEYS))


def _shake_hands(node: Node, kinds: Sequence[str], judge: Judge, identity: Any) -> Session:
    """Open a connection; try again if the machine is only busy (``retries.CONNECT``).

    Args:
        kinds: of host keys, the preferred first.
        identity: our private key; None if ``judge`` refuses every host key.
    """

    def start(wire: Wire, **_: object) -> ClientTransport:
        transport = wire.reader = ClientTransport(wire)
        transport.handshake_timeout = ANSWER_S
        options = transport.get_security_options()
        names = [RSA if kind == "ssh-rsa" else (kind,) for kind in kinds]
        options.key_types = [name for of_kind in names for name in of_kind]
        options.ciphers, options.digests = CIPHERS, MACS
        return transport

    def look(_client: object, _name: str, key: Any) -> None:
        judge(HostKey(key.get_name(), key.asbytes()))

    def try_once() -> Session:
        jump = find_jump_host(node)
        pipe = _pass_through(jump, node) if jump else _dial(node)
        with _handshakes:  # only now: a dead node behind a jump host would keep others waiting
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
                why, transport = error, client.get_transport()
                # paramiko re-raises any exception of its thread.
                if isinstance(error, Exception) and not isinstance(error, OURS):
                    why = _explain_failure(node, wire.ending, transport, error)
                wire.close()
                if transport:
                    # Its timer would hold up the end of the process until it fires.
                    transport.packetizer.complete_handshake()
                    client.close()
                    transport.join(LAST_WORDS_S)
                raise why from error
            wire.settimeout(IDLE_S)
            return Session(node, client, wire)

    return CONNECT.call(try_once)


def _explain_failure(
    node: Node, ending: Ending, transport: ClientTransport, error: Exception
) -> errors.DlperfError:
    said, port = str(error), f"port {node.port}"
    farewell = f", with the words {transport.farewell!r}" if transport.farewell else ""
    login = f"user {node.user} with the key {node.identity}"
    is_refused = isinstance(error, paramiko.AuthenticationException) and "timeout" not in said
    if not transport.remote_version and ending == "closed":
        code = "SSH-THROTTLED"
        cause = f"{port} hangs up before its greeting, as sshd does beyond MaxStartups"
    elif not transport.remote_version:
        code = "SSH-NO-BANNER"
        cause = f"{port} accepts connections and sends no greeting of an sshd in {ANSWER_S:g} s"
    elif isinstance(error, paramiko.ssh_exception.IncompatiblePeer) or "agree on" in said:
        code, cause = "SSH-ALGO", f"no SSH algorithm in common: {said}"
    elif is_refused and "Too many" in farewell:
        code, cause = "SSH-AUTH-TRIES", f"sshd gives up on {login}, the only one offered{farewell}"
    elif is_refused and (farewell or not ending):  # the user or the key: sshd does not say
        code, cause = "SSH-AUTH", f"sshd does not let in {login}{farewell}"
    else:
        code = "SSH-RESET" if ending == "closed" else "SSH-LOST"
        why = f"during the SSH handshake{farewell} ({said or 'no reason'})"
        cause = f"{port}: {ENDINGS[ending]} {why}"
    return make_error(code, cause, node=node.name, address=node.address)


_handshakes = threading.BoundedSemaphore(MOST_HANDSHAKES)
# One connection for everybody behind a jump host, until the program ends.
_jump_links: dict[tuple[object, ...], Cached[Session]] = {}


def _dial(node: Node) -> socket.socket:
    try:
        dialled = socket.create_connection((node.address, node.port), CONNECT_S)
        for level, option, value in KEPT_ALIVE:
            dialled.setsockopt(level, option, value)
        return dialled
    except OSError as error:
        code, cause = "SSH-UNREACHABLE", f"cannot be reached: {error.strerror}"
        if isinstance(error, ConnectionRefusedError):
            code, cause = "SSH-REFUSED", "refuses the connection"
        elif isinstance(error, TimeoutError):
            cause = f"does not answer in {CONNECT_S:g} s"
        elif isinstance(error, socket.gaierror):
            cause = f"cannot be reached, the name has no address: {error.strerror}"
        where = {"node": node.name, "address": node.address}
        raise make_error(code, f"port {node.port} {cause}", **where) from error


def find_jump_host(node: Node) -> Node | None:
    """Return the machine through which a node is reached, with the node's own key."""
    if node.jump is None:
        return None
    jump = parse_endpoint(node.jump)
    name, port, user = str(replace(jump, user=None)), jump.port or 22, jump.user or node.user
    changes = {"name": name, "address": jump.host, "port": port, "user": user}
    return node.model_copy(update={**changes, "host_key": None, "jump": None})


def _pass_through(jump: Node, node: Node) -> Any:
    login = (jump.address, jump.port, jump.user, jump.identity, jump.agent, jump.known_hosts)
    shared = Cached(lambda: connect(jump), lambda link: link.is_alive, Session.close)
    where = {"node": node.name, "jump": jump.address}
    try:
        link = _jump_links.setdefault(login, shared).get()
    except errors.NodeError as error:
        code = "SSH-JUMP" if isinstance(error, errors.NodeUnreachable) else error.code
        raise make_error(code, f"by the jump host: {error.cause}", **where) from error
    try:
        return link.transport.open_channel(
            "direct-tcpip", (node.address, node.port), ("127.0.0.1", 0), timeout=CONNECT_S
        )
    except LOST as error:
        link.probe()  # it serves others, who do not wait for this node
        code = "SSH-UNREACHABLE"
        if not link.is_alive or getattr(error, "code", 0) == FORBIDDEN:
            code = "SSH-JUMP"
        cause = f"the jump host does not reach {node.address} port {node.port}: {error}"
        raise make_error(code, cause, **where) from error


def private_key(node: Node) -> Any:
    """Return the private key that the inventory names, or the agent's; raise SSH-KEY, SSH-AGENT."""
    if node.agent:
        return _find_agent_key(node)
    try:
        return paramiko.PKey.from_path(Path(node.identity or "").expanduser())
    except (OSError, RuntimeError, ValueError, TypeError, paramiko.SSHException) as error:
        why = getattr(error, "strerror", None) or error
        if str(node.identity).endswith(".pub") and not isinstance(error, OSError):
            why = "it is the public one"
        named = f"cannot use the key {node.identity}: {why}"
        nothing = f"the inventory names no SSH key for {node.address}"
        raise make_error("SSH-KEY", named if node.identity else nothing, node=node.name) from error


class _HeldKey(paramiko.AgentKey):  # type: ignore[misc]  # paramiko has no types
    """A key in the agent; each signature has a connection of its own, for threads sign at once."""

    def sign_ssh_data(self, data: bytes, algorithm: str | None = None) -> Any:
        with closing(paramiko.Agent()) as agent:
            return paramiko.AgentKey(agent, self.blob).sign_ssh_data(data, algorithm)


def _find_agent_key(node: Node) -> Any:
    """Return the agent's key that fits the identity's .pub file; without identity, its only key."""
    wanted = None
    try:
        # paramiko does not tell a dead agent from an empty one.
        with socket.socket(socket.AF_UNIX) as knock:
            knock.connect(os.environ.get("SSH_AUTH_SOCK", ""))
        with closing(paramiko.Agent()) as agent:
            keys = [_HeldKey(None, key.blob, key.comment) for key in agent.get_keys()]
        if node.identity is not None:
            path = Path(f"{node.identity.removesuffix('.pub')}.pub").expanduser()
            wanted = paramiko.pkey.PublicBlob.from_file(str(path)).key_blob
        fitting = [key for key in keys if wanted in (None, key.asbytes())]
        if len(fitting) == 1:
            return fitting[0]
        held = ", ".join(f"{key.get_name()} {key.comment}".strip() for key in keys) or "no key"
        cause = f"ssh-agent holds {held}; needed is {node.identity or 'one key alone'}"
    except (OSError, RuntimeError, ValueError, paramiko.SSHException) as error:
        cause = f"cannot ask ssh-agent (SSH_AUTH_SOCK) for {node.identity or 'a key'}: {error}"
    raise make_error("SSH-AGENT", cause, node=node.name)
