"""Errors of transports: the class and the remedy of each code, and the limit of open files."""

import resource
from collections.abc import Mapping

from orchestrator import errors

OWN_FILES = 32  # open ones of this process, beside one for each node's connection
COMPARE = "compare the fingerprint with the node's own, then: dlperf-orch trust INVENTORY"
FIXES: Mapping[type[errors.DlperfError], Mapping[str, str]] = {
    errors.LocalError: {
        "KNOWN-HOSTS": "",
        "SSH-AGENT": 'eval "$(ssh-agent)"; ssh-add KEY, whose public half must lie beside it as'
        " KEY.pub; or leave out `agent: true`",
        "SSH-KEY": "set identity to a private key of ssh-keygen's that is readable and has no"
        " passphrase; for one that has: ssh-add it, and say `agent: true`",
    },
    errors.NodeUnreachable: {
        "SSH-JUMP": "look at the jump host, and at AllowTcpForwarding and PermitOpen in its"
        " sshd_config",
        "SSH-LOST": "check the machine, its sshd and the network",
        "SSH-NO-BANNER": "check whether its sshd hangs; correct address and port if it is no sshd",
        "SSH-REFUSED": "start sshd there, or correct port in the inventory",
        "SSH-RESET": "check the machine, the log of its sshd and the network",
        "SSH-SESSIONS": "raise MaxSessions in its sshd_config, or end other sessions",
        "SSH-THROTTLED": "raise MaxStartups (and look at PerSourcePenalties) in its sshd_config;"
        " correct address and port if it is no sshd",
        "SSH-UNREACHABLE": "check the address, the machine and the firewall; ~/.ssh/config is not"
        " read: of a name that only it knows, write its HostName",
        "START": "",
        "STEP": "see what `sinfo` and `squeue --me --steps` say of it",
    },
    errors.CommandTimedOut: {"TIMEOUT": ""},
    errors.NodeError: {
        "SSH-ALGO": "allow current algorithms in its sshd_config, by KexAlgorithms,"
        " HostKeyAlgorithms, Ciphers, MACs or PubkeyAcceptedAlgorithms",
        "SSH-AUTH": "add the key's public half to the user's authorized_keys there; an RSA key"
        " needs rsa-sha2-512 among PubkeyAcceptedAlgorithms in its sshd_config",
        "SSH-AUTH-TRIES": "raise MaxAuthTries in its sshd_config",
        "SSH-EXEC": "check ForceCommand and the user's shell there",
        "SSH-HOSTKEY-CHANGED": "find out why; only then remove that line and run: dlperf-orch trust"
        " INVENTORY; or correct host_key in the inventory",
        "SSH-HOSTKEY-REVOKED": "give the node a new host key",
        "SSH-HOSTKEY-TYPE": COMPARE,
        "SSH-HOSTKEY-UNKNOWN": COMPARE,
        "SSH-KILLED": "check the memory and the log of the node",
        "SSH-SHELL": "look at the user's start-up files, ~/.ssh/rc and /etc/ssh/sshrc there, or"
        " `chsh -s /bin/sh USER`",
    },
    errors.UnfitError: {"OUTPUT": ""},
}


def make_error(code: str, cause: str, **where: str) -> errors.DlperfError:
    """Return the error of a code, with its remedy."""
    kind, fixes = next(item for item in FIXES.items() if code in item[1])
    return kind(cause, code=code, fix=fixes[code], **where)


def check_open_files(nodes: int) -> None:
    """Check that this process may open enough files to reach so many nodes at once."""
    needed = OWN_FILES + nodes
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)  # -1: no limit
    if 0 <= allowed < needed:
        raise errors.LocalError(
            f"this process may have {allowed} files open (ulimit -n); {nodes} nodes need {needed}",
            code="OPEN-FILES",
            fix=f"ulimit -n {needed}",
        )
