"""Connecting to a machine, directly or through a jump host that all nodes behind it share."""

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import paramiko

from orchestrator import errors
from orchestrator.deadlines import CONNECT_S
from orchestrator.transports import _link, open_files
from orchestrator.transports._failures import unconnected
from orchestrator.transports._link import Link
from orchestrator.transports._target import SshTarget
from orchestrator.transports._wire import Pipe, Slots
from orchestrator.transports.cached import Cached
from orchestrator.transports.known_hosts import HostKey

# sshd refuses unauthenticated connections beyond MaxStartups, 10 by default.
MOST_AT_ONCE = 8
FORBIDDEN = 1  # RFC 4254, 5.1: administratively prohibited


def connect(target: SshTarget) -> Link:
    """Open an authenticated connection to a machine.

    Raises:
        NodeError: it cannot be made; nothing was run.
        LocalError: the key or known_hosts cannot be read.
    """
    with ExitStack() as parting:
        if target.gate is None:
            return _link.connect(target, _straight)
        gate = _enter(target.gate, parting)
        link = _link.connect(target, gate.dial)
        link.parting = parting.pop_all()
        return link


def offered_key(target: SshTarget) -> HostKey:
    """Return the host key that a machine shows before a login.

    Raises:
        NodeError: it shows none, or the jump host cannot be passed.
    """
    with ExitStack() as parting:
        if target.gate is None:
            return _link.offered_key(target, _straight)
        return _link.offered_key(target, _enter(target.gate, parting).dial)


_slots = Slots(MOST_AT_ONCE)
_gates: "dict[SshTarget, _Gate]" = {}
_lock = threading.Lock()


@contextmanager
def _straight(target: SshTarget) -> Iterator[socket.socket]:
    with ExitStack() as stack:
        try:
            dialled = stack.enter_context(_slots.knock(target.address, target.port))
        except OSError as error:
            lacking = open_files.lacking(error, target.name)
            raise lacking or unconnected(target, error) from error
        yield dialled


class _Gate:
    """A jump host: one connection for everybody behind it."""

    def __init__(self, target: SshTarget) -> None:
        self._target = target
        self._slots = Slots(MOST_AT_ONCE)
        self._link = Cached(
            lambda: _link.connect(target, _straight), lambda link: link.alive, Link.close
        )
        self.users = 0

    @contextmanager
    def dial(self, target: SshTarget) -> Iterator[Pipe]:
        """Yield a byte stream to a machine behind it, while one of its slots is held.

        Raises:
            NodeError: the jump host cannot be passed, or the machine cannot be reached from it.
        """
        try:
            link = self._link.get()
        except errors.NodeError as error:
            raise self._stopped(target, error) from error
        with self._slots.turn():
            yield self._channel(target, link)

    def close(self) -> None:
        """Close the connection."""
        self._link.drop()

    def _channel(self, target: SshTarget, link: Link) -> Pipe:
        place = (target.address, target.port)
        try:
            channel: Pipe = link.transport.open_channel(
                "direct-tcpip", place, ("127.0.0.1", 0), timeout=CONNECT_S
            )
        except paramiko.ChannelException as error:
            raise self._refused(target, error) from error
        except (paramiko.SSHException, OSError, EOFError) as error:
            if "Timeout" in str(error):
                link.hang_up()
            lost = link.explain_loss(target.name, "the way through")
            raise self._stopped(target, lost) from error
        return channel

    def _refused(self, target: SshTarget, error: paramiko.ChannelException) -> errors.NodeError:
        if error.code == FORBIDDEN:
            cause = f"it refuses to forward to {target.address} port {target.port}"
            fix = "set AllowTcpForwarding (and PermitOpen) in its sshd_config"
            refused = errors.NodeUnreachable(cause, code="SSH-JUMP", node=target.name, fix=fix)
            return self._stopped(target, refused)
        return errors.NodeUnreachable(
            f"{target.address} port {target.port} cannot be reached from the jump host:"
            f" {error.text}",
            code="SSH-UNREACHABLE",
            node=target.name,
            jump=self._target.address,
            fix="check the address, the machine and its sshd",
        )

    def _stopped(self, target: SshTarget, error: errors.NodeError) -> errors.NodeError:
        """Return the jump host's error as an error of the node behind it."""
        where = {"node": target.name, "jump": self._target.address}
        cause = f"by the jump host: {error.cause}"
        if isinstance(error, errors.NodeUnreachable):
            return errors.NodeUnreachable(cause, code="SSH-JUMP", fix=error.fix, **where)
        return errors.NodeError(cause, code=error.code, fix=error.fix, **where)


def _enter(target: SshTarget, parting: ExitStack) -> _Gate:
    """Return the jump host's gate, used until ``parting``; its last user closes it."""
    with _lock:
        gate = _gates.setdefault(target, _Gate(target))
        gate.users += 1
    parting.callback(_leave, target, gate)
    return gate


def _leave(target: SshTarget, gate: _Gate) -> None:
    with _lock:
        gate.users -= 1
        if gate.users:
            return
        _gates.pop(target, None)
    gate.close()
