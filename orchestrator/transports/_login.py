"""The address of a node's sshd, who logs in there, and with which private key."""

import functools
import os
import socket
from contextlib import closing
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import paramiko

from orchestrator import errors
from orchestrator.model.node import Node
from orchestrator.model.text import parse_endpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class SshTarget:
    """Everything that reaching a node by SSH needs.

    Args:
        identity: path of the one private key that is offered.
        agent: whether ssh-agent signs with it; without an identity, with the one that it holds.
        host_key: fingerprint of the inventory; if given, ``known_hosts`` is not used.
        known_hosts: file to check host keys against; the jump host's always.
        jump: ``[user@]host[:port]`` of the machine in between.
    """

    name: str
    address: str
    port: int = 22
    user: str = "root"
    identity: str | None = None
    host_key: str | None = None
    known_hosts: str = "~/.ssh/known_hosts"
    jump: str | None = None
    agent: bool = False

    @classmethod
    def of(cls, node: Node) -> "SshTarget":
        """Return the target for a node of the inventory."""
        return cls(**node.model_dump(include={field.name for field in fields(cls)}))

    @property
    def gate(self) -> "SshTarget | None":
        """Return the jump host as a target, with the same identity; None without one."""
        if self.jump is None:
            return None
        jump = parse_endpoint(self.jump)
        return replace(
            self,
            name=str(replace(jump, user=None)),
            address=jump.host,
            port=jump.port or 22,
            user=jump.user or self.user,
            host_key=None,
            jump=None,
        )


def private_key(target: SshTarget) -> Any:
    """Return the private key that the inventory names.

    Raises:
        LocalError: none is named, or it cannot be used (SSH-KEY; SSH-AGENT: there is no agent, or
            it does not hold that key).
    """
    if target.agent:
        return _find_agent_key(target)
    try:
        path = Path(target.identity or "").expanduser()
        return _load_key(path, path.stat().st_mtime_ns)
    except (OSError, RuntimeError, ValueError, TypeError, paramiko.SSHException) as error:
        why = getattr(error, "strerror", None) or error
        named = f"cannot use the key {target.identity}: {why}"
        raise errors.LocalError(
            named if target.identity else f"the inventory names no SSH key for {target.address}",
            code="SSH-KEY",
            node=target.name,
            fix="set identity to a private key of ssh-keygen's that is readable and has no"
            " passphrase; for one that has: ssh-add it, and say `agent: true` in the inventory",
        ) from error


@functools.lru_cache(maxsize=64)
def _load_key(path: Path, mtime_ns: int) -> Any:  # noqa: ARG001  # a key that was replaced is another
    return paramiko.PKey.from_path(path)


class _HeldKey(paramiko.AgentKey):  # type: ignore[misc]  # paramiko has no types
    """A key in the agent; each signature has a connection of its own, for threads sign at once."""

    def sign_ssh_data(self, data: bytes, algorithm: str | None = None) -> Any:
        with closing(paramiko.Agent()) as agent:
            return paramiko.AgentKey(agent, self.blob).sign_ssh_data(data, algorithm)


def _find_agent_key(target: SshTarget) -> Any:
    """Return the agent's key that fits the identity's .pub file; without identity, its only key."""
    wanted = None
    try:
        # paramiko does not tell a dead agent from an empty one.
        with socket.socket(socket.AF_UNIX) as knock:
            knock.connect(os.environ.get("SSH_AUTH_SOCK", ""))
        with closing(paramiko.Agent()) as agent:
            keys = [_HeldKey(None, key.blob, key.comment) for key in agent.get_keys()]
        if target.identity is not None:
            path = Path(f"{target.identity.removesuffix('.pub')}.pub").expanduser()
            wanted = paramiko.pkey.PublicBlob.from_file(str(path)).key_blob
        fitting = [key for key in keys if wanted in (None, key.asbytes())]
        if len(fitting) == 1:
            return fitting[0]
        held = ", ".join(f"{key.get_name()} {key.comment}".strip() for key in keys) or "no key"
        cause = f"ssh-agent holds {held}; needed is {target.identity or 'one key alone'}"
    except (OSError, RuntimeError, ValueError, paramiko.SSHException) as error:
        cause = f"cannot ask ssh-agent (SSH_AUTH_SOCK) for {target.identity or 'a key'}: {error}"
    key = target.identity or "~/.ssh/id_ed25519"
    raise errors.LocalError(
        cause,
        code="SSH-AGENT",
        node=target.name,
        fix=f'eval "$(ssh-agent)"; ssh-add {key} (its public half must lie beside it as {key}.pub);'
        " or leave out `agent: true`",
    )
