"""From errors of paramiko and the kernel to errors of ours."""

import socket

import paramiko

from orchestrator import errors
from orchestrator.deadlines import ANSWER_S, CONNECT_S
from orchestrator.transports._paramiko import Spoken
from orchestrator.transports._target import SshTarget
from orchestrator.transports._wire import Wire

OURS = ("kex", "ciphers", "macs", "keys")
THEIRS = (
    "kex_algo_list",
    "client_encrypt_algo_list",
    "client_mac_algo_list",
    "server_key_algo_list",
)
RSA = ("rsa-sha2-512", "rsa-sha2-256")
OPTIONS = ("KexAlgorithms", "Ciphers", "MACs", "HostKeyAlgorithms")


def _where(target: SshTarget) -> dict[str, str]:
    return {"node": target.name, "address": target.address}


def unconnected(target: SshTarget, error: OSError) -> errors.NodeUnreachable:
    """Return the error for a TCP connection that cannot be made."""
    if isinstance(error, ConnectionRefusedError):
        cause, code = "refuses the connection", "SSH-REFUSED"
        fix = "start sshd there, or correct port in the inventory"
    elif isinstance(error, TimeoutError):
        cause, code = f"does not answer in {CONNECT_S:g} s", "SSH-UNREACHABLE"
        fix = "check the address, the machine and the firewall"
    elif isinstance(error, socket.gaierror):
        cause, code = (
            f"cannot be reached, the name has no address: {error.strerror}",
            "SSH-UNREACHABLE",
        )
        fix = (
            "write a name or number that is known here as address; ~/.ssh/config is not read: of a"
            " name that only it knows, write its HostName"
        )
    else:
        cause, code = f"cannot be reached: {error.strerror}", "SSH-UNREACHABLE"
        fix = "check the address, the route and the firewall"
    return errors.NodeUnreachable(
        f"port {target.port} {cause}", code=code, fix=fix, **_where(target)
    )


def unspoken(target: SshTarget, wire: Wire, spoken: Spoken, error: Exception) -> errors.NodeError:
    """Return the error for a connection on which the handshake or the login failed."""
    if b"SSH-" not in wire.greeting:
        return _no_banner(target, wire)
    hung_up = wire.ending and not spoken.farewell
    if isinstance(error, paramiko.AuthenticationException) and not hung_up:
        return _not_let_in(target, spoken, error)
    if isinstance(error, paramiko.ssh_exception.IncompatiblePeer):
        return _no_algorithm(target, spoken, error)
    cause = {
        "closed": "hung up",
        "reset": "reset the connection",
        "silent": "went silent",
        "": f"gave no answer in {ANSWER_S:g} s or broke the protocol ({error or 'no reason'})",
    }[wire.ending]
    farewell = f" with the words {spoken.farewell!r}" if spoken.farewell else ""
    return errors.NodeUnreachable(
        f"port {target.port} {cause} during the SSH handshake{farewell}",
        code="SSH-RESET" if wire.ending in ("closed", "reset") else "SSH-LOST",
        fix="check the log of its sshd",
        **_where(target),
    )


def explain_loss(node: str, wire: Wire, spoken: Spoken, doing: str) -> errors.NodeUnreachable:
    """Return the error for a connection that ended while something was under way."""
    cause = {
        "closed": "the node closed the SSH connection",
        "reset": "the SSH connection was reset",
        "silent": f"nothing was heard from the node for {ANSWER_S:g} s",
        "": "the SSH connection broke",
    }[wire.ending]
    farewell = f" with the words {spoken.farewell!r}" if spoken.farewell else ""
    return errors.NodeUnreachable(
        f"{cause}{farewell} during {doing}; what was started there may still run",
        code="SSH-RESET" if spoken.farewell or wire.ending in ("closed", "reset") else "SSH-LOST",
        node=node,
        fix="check the machine and the network",
    )


def _no_banner(target: SshTarget, wire: Wire) -> errors.NodeError:
    place = f"port {target.port}"
    words = wire.greeting.partition(b"\n")[0].strip().decode(errors="replace")
    if words and not words.startswith(("Exceeded", "Not allowed")):
        return errors.NodeUnreachable(
            f"{place} is not an sshd: it sends {words[:60]!r}",
            code="SSH-NO-BANNER",
            **_where(target),
            fix="correct address and port in the inventory",
        )
    if wire.ending in ("", "silent"):
        return errors.NodeUnreachable(
            f"{place} accepts connections and sends nothing for {ANSWER_S:g} s",
            code="SSH-NO-BANNER",
            **_where(target),
            fix="check whether its sshd hangs",
        )
    quoted = f" with the words {words!r}" if words else ""
    return errors.NodeUnreachable(
        f"{place} hangs up before its greeting{quoted}, as sshd does beyond MaxStartups",
        code="SSH-THROTTLED",
        fix="raise MaxStartups (and look at PerSourcePenalties) in its sshd_config",
        **_where(target),
    )


def _not_let_in(
    target: SshTarget, spoken: Spoken, error: paramiko.AuthenticationException
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
        theirs = spoken.server_extensions.get("server-sig-algs", b"").decode(errors="replace")
        return _disagree(target, "PubkeyAcceptedAlgorithms", ", ".join(RSA), theirs)
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


def _no_algorithm(
    target: SshTarget, spoken: Spoken, error: paramiko.ssh_exception.IncompatiblePeer
) -> errors.NodeError:
    for option, ours, theirs in zip(OPTIONS, OURS, THEIRS, strict=True):
        mine = getattr(spoken, f"preferred_{ours}")
        offer = (spoken.offered or {}).get(theirs, [])
        if not set(mine) & set(offer):
            return _disagree(target, option, ", ".join(mine), ", ".join(offer))
    return _disagree(target, "its algorithms", str(error), spoken.remote_version)


def _disagree(target: SshTarget, option: str, ours: str, theirs: str) -> errors.NodeError:
    return errors.NodeError(
        f"no SSH algorithm in common: sshd offers {theirs or 'nothing'}; we accept {ours}",
        code="SSH-ALGO",
        fix=f"allow one of ours by {option} in its sshd_config",
        **_where(target),
    )
