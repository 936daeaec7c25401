"""The private key that logs in to a node, and the machine in between."""

import functools
import os
import socket
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import paramiko

from orchestrator.model.node import Node
from orchestrator.model.text import parse_endpoint
from orchestrator.transports.failures import failure


def jump_host(node: Node) -> Node | None:
    """Return the machine through which a node is reached, with the node's own key."""
    if node.jump is None:
        return None
    jump = parse_endpoint(node.jump)
    name, port, user = str(replace(jump, user=None)), jump.port or 22, jump.user or node.user
    changes = {"name": name, "address": jump.host, "port": port, "user": user}
    return node.model_copy(update={**changes, "host_key": None, "jump": None})


def private_key(node: Node) -> Any:
    """Return the private key that the inventory names.

    Raises:
        LocalError: none is named, or it cannot be used (SSH-KEY; SSH-AGENT: there is no agent, or
            it does not hold that key).
    """
    if node.agent:
        return _find_agent_key(node)
    try:
        path = Path(node.identity or "").expanduser()
        return _load_key(path, path.stat().st_mtime_ns)
    except (OSError, RuntimeError, ValueError, TypeError, paramiko.SSHException) as error:
        why = getattr(error, "strerror", None) or error
        named = f"cannot use the key {node.identity}: {why}"
        nothing = f"the inventory names no SSH key for {node.address}"
        raise failure("SSH-KEY", named if node.identity else nothing, node=node.name) from error


@functools.lru_cache(maxsize=64)
def _load_key(path: Path, mtime_ns: int) -> Any:  # noqa: ARG001  # a key that was replaced is another
    return paramiko.PKey.from_path(path)


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
    raise failure("SSH-AGENT", cause, node=node.name)
