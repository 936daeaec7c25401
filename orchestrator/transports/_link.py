"""Authenticated SSH connections, by fabric and paramiko, with the check of host keys."""

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import Any

import fabric

from orchestrator import errors
from orchestrator.deadlines import ANSWER_S, LAST_WORDS_S
from orchestrator.retries import CONNECT
from orchestrator.transports import known_hosts
from orchestrator.transports._failures import explain_loss, unspoken
from orchestrator.transports._identity import private_key
from orchestrator.transports._paramiko import Spoken
from orchestrator.transports._target import SshTarget
from orchestrator.transports._wire import Pipe, Wire
from orchestrator.transports.known_hosts import Entry, HostKey

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

IDLE_S = 10.0
"""How long the reader of a connection sleeps where nothing comes; what comes, or an end, wakes it.

paramiko's 0.1 s are 10,000 awakenings a second over 1,000 nodes, more than a processor's worth.
"""

Dial = Callable[[SshTarget], AbstractContextManager[Pipe]]

# paramiko's errors become ours; without a handler it prints tracebacks.
logging.getLogger("paramiko").addHandler(logging.NullHandler())
# Nobody's ssh_config or fabric.yaml changes where, and as whom, we log in.
_SETTINGS = {"load_ssh_configs": False}


class _AnotherKey(Exception):
    """The node shows another host key than the pinned one."""

    def __init__(self, key: HostKey) -> None:
        super().__init__(key.fingerprint)
        self.key = key


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
        """Make paramiko's transport with these terms."""
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
        return explain_loss(node, self._wire, self.transport, doing)

    def close(self) -> None:
        """End it, close its descriptor, and leave the jump host."""
        self._client.close()
        self.transport.join(LAST_WORDS_S)
        self.parting.close()


def connect(target: SshTarget, dial: Dial) -> Link:
    """Open an authenticated connection to a machine whose host key is trusted.

    Raises:
        NodeError: there is none; nothing was run.
        LocalError: the key or known_hosts cannot be read.
    """
    identity = private_key(target)
    if target.host_key is not None:
        return _pinned(target, dial, identity)
    name = known_hosts.called(target.address, target.port)
    entries = known_hosts.about(target.known_hosts, name)

    def judge(key: HostKey) -> None:
        known_hosts.judge(target.name, name, key, entries)

    return _patiently(target, dial, _Terms(_kinds(entries), judge, identity))


def offered_key(target: SshTarget, dial: Dial) -> HostKey:
    """Return a machine's host key, requested before login, if possible of a kind in known_hosts.

    Raises:
        NodeError: it shows none.
    """
    entries = known_hosts.about(target.known_hosts, known_hosts.called(target.address, target.port))

    def judge(key: HostKey) -> None:
        raise _AnotherKey(key)

    try:
        _patiently(target, dial, _Terms(_kinds(entries), judge, None))
    except _AnotherKey as shown:
        return shown.key
    raise AssertionError("no handshake ends without a look at the host key")


def _kinds(entries: Sequence[Entry]) -> tuple[str, ...]:
    """Return the kinds of host key to request; those in known_hosts come first."""
    trusted = [
        entry.key.kind for entry in entries if not entry.marker and entry.key.kind in HOST_KEYS
    ]
    return tuple(dict.fromkeys([*trusted, *HOST_KEYS]))


def _pinned(target: SshTarget, dial: Dial, identity: Any) -> Link:
    """Open a connection whose host key, of any kind, has the inventory's fingerprint."""

    def judge(key: HostKey) -> None:
        if key.fingerprint != target.host_key:
            raise _AnotherKey(key)

    seen: list[HostKey] = []
    for kinds in (tuple(HOST_KEYS), *((kind,) for kind in HOST_KEYS)):
        if any(kinds == (key.kind,) for key in seen):
            continue
        try:
            return _patiently(target, dial, _Terms(kinds, judge, identity))
        except _AnotherKey as other:
            seen.append(other.key)
        except errors.NodeError as error:
            if error.code != "SSH-ALGO" or not seen:
                raise
    name = known_hosts.called(target.address, target.port)
    raise known_hosts.changed(target.name, name, seen, str(target.host_key))


def _patiently(target: SshTarget, dial: Dial, terms: _Terms) -> Link:
    """Open a connection; try again if the machine is only busy (``retries.CONNECT``)."""
    return CONNECT.call(lambda: _once(target, dial, terms))


def _once(target: SshTarget, dial: Dial, terms: _Terms) -> Link:
    with dial(target) as pipe:
        wire = Wire(pipe)
        connection = fabric.Connection(
            host=target.address,
            user=target.user,
            port=target.port,
            # Not shared: a Connection writes into its own, which other threads would see half done.
            config=fabric.Config(lazy=True, overrides=_SETTINGS),
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
        with ExitStack() as undo:
            undo.callback(_give_up, client, wire)
            try:
                connection.open()
            except (errors.DlperfError, _AnotherKey):
                raise
            except Exception as error:  # paramiko re-raises any exception of its thread here
                raise unspoken(target, wire, client.get_transport(), error) from error
            undo.pop_all()
        wire.settimeout(IDLE_S)
        return Link(client, wire)


def _give_up(client: Any, wire: Wire) -> None:
    wire.close()
    spoken = client.get_transport()
    if spoken:
        # Its timer would hold up the end of the process for as long as a handshake may take.
        spoken.packetizer.complete_handshake()
        client.close()
        spoken.join(LAST_WORDS_S)
