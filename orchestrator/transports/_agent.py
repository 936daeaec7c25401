"""A key that ssh-agent holds: the inventory's, or the only one."""

import os
import socket
from contextlib import closing
from pathlib import Path
from typing import Any

import paramiko

from orchestrator import errors
from orchestrator.transports._target import SshTarget


class _Held(paramiko.AgentKey):  # type: ignore[misc]  # paramiko has no types
    """A key in the agent; each signature has a connection of its own, for threads sign at once."""

    def sign_ssh_data(self, data: bytes, algorithm: str | None = None) -> Any:
        with closing(paramiko.Agent()) as agent:
            key = paramiko.AgentKey(agent, self.blob)
            return key.sign_ssh_data(data, algorithm)


def agent_key(target: SshTarget) -> Any:
    """Return the agent's key that matches the identity's .pub file; without identity, its only key.

    Raises:
        LocalError: SSH-AGENT; there is no agent, or it does not hold that key.
    """
    place = os.environ.get("SSH_AUTH_SOCK", "")
    if not place:
        raise _refusal(target, "SSH_AUTH_SOCK is not set, so there is no ssh-agent")
    try:
        with socket.socket(
            socket.AF_UNIX
        ) as knock:  # paramiko tells no dead agent from an empty one
            knock.connect(place)
        with closing(paramiko.Agent()) as agent:
            keys = [_Held(None, key.blob, key.comment) for key in agent.get_keys()]
    except (OSError, paramiko.SSHException) as error:
        raise _refusal(target, f"the agent at {place} does not answer: {error}") from error
    wanted = _public(target) if target.identity else None
    fitting = [key for key in keys if wanted in (None, key.asbytes())]
    if len(fitting) == 1:
        return fitting[0]
    if wanted is None:
        raise _refusal(target, f"ssh-agent holds {len(keys)} keys and the inventory names none")
    held = ", ".join(f"{key.get_name()} {key.comment}".strip() for key in keys) or "no key"
    raise _refusal(target, f"ssh-agent holds {held}, not {target.identity}")


def _public(target: SshTarget) -> bytes:
    path = Path(f"{str(target.identity).removesuffix('.pub')}.pub")
    try:
        blob = paramiko.pkey.PublicBlob.from_file(str(path.expanduser()))
    except (OSError, RuntimeError, ValueError, paramiko.SSHException) as error:
        cause = f"cannot read {path}: {getattr(error, 'strerror', None) or error}"
        fix = f"ssh-keygen -y -f {target.identity} > {path}"
        raise errors.LocalError(cause, code="SSH-AGENT", node=target.name, fix=fix) from error
    return bytes(blob.key_blob)


def _refusal(target: SshTarget, cause: str) -> errors.LocalError:
    key = target.identity or "~/.ssh/id_ed25519"
    fix = f'eval "$(ssh-agent)"; ssh-add {key}; or leave out `agent: true`'
    return errors.LocalError(cause, code="SSH-AGENT", node=target.name, fix=fix)
