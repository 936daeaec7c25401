"""The one private key that is offered to a machine."""

import functools
from pathlib import Path
from typing import Any

import paramiko

from orchestrator import errors
from orchestrator.transports._agent import agent_key
from orchestrator.transports._target import SshTarget


def private_key(target: SshTarget) -> Any:
    """Return the private key that the inventory names.

    Raises:
        LocalError: none is named, or it cannot be used.
    """
    if target.agent:
        return agent_key(target)
    if target.identity is None:
        raise errors.LocalError(
            f"the inventory names no SSH key for {target.address}, and none is searched for",
            code="SSH-KEY",
            node=target.name,
            fix="set identity in the inventory, such as ~/.ssh/id_ed25519",
        )
    path = Path(target.identity)
    try:
        path = path.expanduser()
        return _key(path, path.stat().st_mtime_ns)
    except (OSError, RuntimeError, ValueError, TypeError, paramiko.SSHException) as error:
        why = getattr(error, "strerror", None) or error
        why = "it is the public one" if path.suffix == ".pub" and path.exists() else why
        raise errors.LocalError(
            f"cannot use the key {target.identity}: {why}",
            code="SSH-KEY",
            node=target.name,
            fix="set identity to a private key of ssh-keygen's that is readable and has no"
            " passphrase; for one that has: ssh-add it, and say `agent: true` in the inventory",
        ) from error


@functools.lru_cache(maxsize=64)
def _key(path: Path, mtime_ns: int) -> Any:  # noqa: ARG001  # a key that was replaced is another
    return paramiko.PKey.from_path(path)
