"""Translate errors of paramiko and the kernel."""

import socket
from typing import Any, Literal

import paramiko

from orchestrator import errors
from orchestrator.deadlines import ANSWER_S, CONNECT_S
from orchestrator.transports._login import SshTarget

Ending = Literal["", "closed", "reset", "silent"]
ENDINGS = {
    "closed": "the other side closed the connection",
    "reset": "the connection was reset",
    "silent": f"nothing was heard for {ANSWER_S:g} s",
    "": "the connection broke",
}


def explain_no_connection(target: SshTarget, error: OSError) -> errors.NodeUnreachable:
    """Return the error for a TCP connection that cannot be made."""
    code, cause = "SSH-UNREACHABLE", f"cannot be reached: {error.strerror}"
    fix = "check the address, the machine and the firewall"
    if isinstance(error, ConnectionRefusedError):
        code, cause = "SSH-REFUSED", "refuses the connection"
        fix = "start sshd there, or correct port in the inventory"
    elif isinstance(error, TimeoutError):
        cause = f"does not answer in {CONNECT_S:g} s"
    elif isinstance(error, socket.gaierror):
        cause = f"cannot be reached, the name has no address: {error.strerror}"
        fix = (
            "write a name or number that is known here as address; ~/.ssh/config is not read: of a"
            " name that only it knows, write its HostName"
        )
    return _unreachable(target, f"port {target.port} {cause}", code, fix)


def explain_failure(
    target: SshTarget, ending: Ending, spoken: Any, error: Exception
) -> errors.NodeError:
    """Return the error for a connection on which the handshake or the login failed.

    Args:
        spoken: paramiko's transport.
    """
    where, port = {"node": target.name, "address": target.address}, f"port {target.port}"
    if not spoken.remote_version and ending in ("closed", "reset"):
        cause = f"{port} hangs up before its greeting, as sshd does beyond MaxStartups"
        fix = (
            "raise MaxStartups (and look at PerSourcePenalties) in its sshd_config; correct address"
            " and port if what listens there is no sshd"
        )
        return _unreachable(target, cause, "SSH-THROTTLED", fix)
    if not spoken.remote_version:
        cause = f"{port} accepts connections and sends no greeting of an sshd in {ANSWER_S:g} s"
        fix = "check whether its sshd hangs; correct address and port if it is no sshd"
        return _unreachable(target, cause, "SSH-NO-BANNER", fix)
    if isinstance(error, paramiko.ssh_exception.IncompatiblePeer) or "agree on" in str(error):
        return errors.NodeError(
            f"no SSH algorithm in common: {error}",
            code="SSH-ALGO",
            fix="allow current algorithms in its sshd_config, by KexAlgorithms, HostKeyAlgorithms,"
            " Ciphers, MACs or PubkeyAcceptedAlgorithms",
            **where,
        )
    farewell = f", with the words {spoken.farewell!r}" if spoken.farewell else ""
    login = f"user {target.user} with the key {target.identity}"
    is_answered = isinstance(error, paramiko.AuthenticationException) and (farewell or not ending)
    if is_answered and "timeout" in str(error):
        cause = f"sshd does not answer the login of {login} in {ANSWER_S:g} s"
        fix = "check whether its sshd or its user database hangs"
        return _unreachable(target, cause, "SSH-LOST", fix)
    if is_answered and "Too many" in spoken.farewell:
        return errors.NodeError(
            f"sshd gives up on {login}, the only one offered{farewell}",
            code="SSH-AUTH-TRIES",
            fix="raise MaxAuthTries in its sshd_config",
            **where,
        )
    if is_answered:
        # sshd does not say whether it refuses the user, the key or an RSA key's algorithm.
        return errors.NodeError(
            f"sshd does not let in {login}{farewell}",
            code="SSH-AUTH",
            fix=f"add {target.identity}.pub to {target.user}'s authorized_keys there; an RSA key"
            " needs rsa-sha2-512 among its sshd's PubkeyAcceptedAlgorithms",
            **where,
        )
    cause = f"{port}: {ENDINGS[ending]} during the SSH handshake{farewell} ({error or 'no reason'})"
    code = "SSH-RESET" if ending in ("closed", "reset") else "SSH-LOST"
    return _unreachable(target, cause, code, "check the log of its sshd")


def explain_loss(
    node: str, ending: Ending, farewell: str, doing: str, error: object = None
) -> errors.NodeUnreachable:
    """Return the error for a connection that ended while something was under way."""
    words = f" with the words {farewell!r}" if farewell else ""
    why = f" ({error})" if error and not ending else ""
    return errors.NodeUnreachable(
        f"{ENDINGS[ending]}{words} during {doing}{why}; what was started there may still run",
        code="SSH-RESET" if farewell or ending in ("closed", "reset") else "SSH-LOST",
        node=node,
        fix="check the machine and the network",
    )


def _unreachable(target: SshTarget, cause: str, code: str, fix: str) -> errors.NodeUnreachable:
    return errors.NodeUnreachable(
        cause, code=code, fix=fix, node=target.name, address=target.address
    )
