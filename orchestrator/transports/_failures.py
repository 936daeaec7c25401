"""Translate errors of paramiko and the kernel."""

import socket
from typing import Any

import paramiko

from orchestrator import errors
from orchestrator.deadlines import ANSWER_S, CONNECT_S
from orchestrator.transports._login import SshTarget

# By the words of paramiko's error, the option of sshd_config and our own offer.
ALGORITHMS = {
    "kex": ("KexAlgorithms", "kex"),
    "cipher": ("Ciphers", "ciphers"),
    "mac": ("MACs", "macs"),
    "host key": ("HostKeyAlgorithms", "keys"),
}


def _where(target: SshTarget) -> dict[str, str]:
    return {"node": target.name, "address": target.address}


def explain_no_connection(target: SshTarget, error: OSError) -> errors.NodeUnreachable:
    """Return the error for a TCP connection that cannot be made."""
    code, fix = "SSH-UNREACHABLE", "check the address, the machine and the firewall"
    if isinstance(error, ConnectionRefusedError):
        cause, code = "refuses the connection", "SSH-REFUSED"
        fix = "start sshd there, or correct port in the inventory"
    elif isinstance(error, TimeoutError):
        cause = f"does not answer in {CONNECT_S:g} s"
    elif isinstance(error, socket.gaierror):
        cause = f"cannot be reached, the name has no address: {error.strerror}"
        fix = (
            "write a name or number that is known here as address; ~/.ssh/config is not read: of a"
            " name that only it knows, write its HostName"
        )
    else:
        cause = f"cannot be reached: {error.strerror}"
    return errors.NodeUnreachable(
        f"port {target.port} {cause}", code=code, fix=fix, **_where(target)
    )


def explain_failure(
    target: SshTarget, greeting: bytes, ending: str, spoken: Any, error: Exception
) -> errors.NodeError:
    """Return the error for a connection on which the handshake or the login failed.

    Args:
        greeting: the first bytes that came.
        ending: how the connection ended: closed, reset, silent or, if it did not, empty.
        spoken: paramiko's transport.
    """
    if b"SSH-" not in greeting:
        return _explain_no_banner(target, greeting, ending)
    farewell = f" with the words {spoken.farewell!r}" if spoken.farewell else ""
    hung_up = ending and not farewell
    if isinstance(error, paramiko.AuthenticationException) and not hung_up:
        return _explain_login(target, spoken, error)
    if isinstance(error, paramiko.ssh_exception.IncompatiblePeer):
        named = [pair for word, pair in ALGORITHMS.items() if word in str(error)]
        option, ours = named[0] if named else ("its algorithms", "kex")
        return _explain_algorithms(target, option, getattr(spoken, f"preferred_{ours}"), error)
    cause = {
        "closed": "hung up",
        "reset": "reset the connection",
        "silent": "went silent",
        "": f"gave no answer in {ANSWER_S:g} s or broke the protocol ({error or 'no reason'})",
    }[ending]
    return errors.NodeUnreachable(
        f"port {target.port} {cause} during the SSH handshake{farewell}",
        code="SSH-RESET" if ending in ("closed", "reset") else "SSH-LOST",
        fix="check the log of its sshd",
        **_where(target),
    )


def explain_loss(node: str, ending: str, farewell: str, doing: str) -> errors.NodeUnreachable:
    """Return the error for a connection that ended while something was under way."""
    cause = {
        "closed": "the node closed the SSH connection",
        "reset": "the SSH connection was reset",
        "silent": f"nothing was heard from the node for {ANSWER_S:g} s",
        "": "the SSH connection broke",
    }[ending]
    words = f" with the words {farewell!r}" if farewell else ""
    return errors.NodeUnreachable(
        f"{cause}{words} during {doing}; what was started there may still run",
        code="SSH-RESET" if farewell or ending in ("closed", "reset") else "SSH-LOST",
        node=node,
        fix="check the machine and the network",
    )


def _explain_no_banner(target: SshTarget, greeting: bytes, ending: str) -> errors.NodeError:
    words = greeting.partition(b"\n")[0].strip().decode(errors="replace")
    code = "SSH-NO-BANNER"
    if words and not words.startswith(("Exceeded", "Not allowed")):
        cause = f"is not an sshd: it sends {words[:60]!r}"
        fix = "correct address and port in the inventory"
    elif ending in ("", "silent"):
        cause = f"accepts connections and sends nothing for {ANSWER_S:g} s"
        fix = "check whether its sshd hangs"
    else:
        code, quoted = "SSH-THROTTLED", f" with the words {words!r}" if words else ""
        cause = f"hangs up before its greeting{quoted}, as sshd does beyond MaxStartups"
        fix = "raise MaxStartups (and look at PerSourcePenalties) in its sshd_config"
    return errors.NodeUnreachable(
        f"port {target.port} {cause}", code=code, fix=fix, **_where(target)
    )


def _explain_login(
    target: SshTarget, spoken: Any, error: paramiko.AuthenticationException
) -> errors.NodeError:
    login = f"user {target.user} with the key {target.identity}"
    if "Too many" in spoken.farewell:
        return errors.NodeError(
            f"sshd gives up on {login}, the only one offered: {spoken.farewell}",
            code="SSH-AUTH-TRIES",
            **_where(target),
            fix="raise MaxAuthTries in its sshd_config",
        )
    if "agree on a pubkey algorithm" in str(error):
        option = "PubkeyAcceptedAlgorithms"
        return _explain_algorithms(target, option, ("rsa-sha2-512", "rsa-sha2-256"), error)
    if "timeout" in str(error):
        return errors.NodeUnreachable(
            f"sshd does not answer the login of {login} in {ANSWER_S:g} s",
            code="SSH-LOST",
            **_where(target),
            fix="check whether its sshd or its user database hangs",
        )
    methods = getattr(error, "allowed_types", ())
    accepted = f"; it takes {', '.join(methods)}" if methods else ""
    farewell = f": {spoken.farewell}" if spoken.farewell else ""
    # sshd does not say whether it refuses the user or the key.
    option = "PubkeyAcceptedAlgorithms in its sshd_config"
    allow = f", or allow {spoken.signature} by {option}" if spoken.signature else ""
    return errors.NodeError(
        f"sshd does not let in {login}{accepted}{farewell}",
        code="SSH-AUTH",
        fix=f"add {target.identity}.pub to {target.user}'s authorized_keys there{allow}",
        **_where(target),
    )


def _explain_algorithms(
    target: SshTarget, option: str, ours: tuple[str, ...], error: Exception
) -> errors.NodeError:
    return errors.NodeError(
        f"no SSH algorithm in common: {error}; we accept {', '.join(ours)}",
        code="SSH-ALGO",
        fix=f"allow one of ours by {option} in its sshd_config",
        **_where(target),
    )
