"""The registry's secret: from the environment, a file of the user's alone, or a prompt."""

import getpass
import os
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator import errors
from orchestrator.model.node import Registry

if TYPE_CHECKING:
    from orchestrator.runtimes.images import Credentials

VARIABLE = "DLPERF_REGISTRY_SECRET"


def credentials(registry: Registry | None) -> "Credentials | None":
    """User and secret for the registry; None where the inventory names no user.

    Raises:
        UsageError: REG-SECRET; a user is named and no secret is given.
        LocalError: REG-SECRET; the secret file cannot be read, or others can read it too.
    """
    if registry is None or registry.user is None:
        return None
    secret = (
        os.environ.get(VARIABLE) or _from_file(registry.secret_file) or _prompted(registry.user)
    )
    if not secret:
        raise errors.UsageError(
            f"the registry wants a secret for user {registry.user} and none is given",
            code="REG-SECRET",
            fix=f"set {VARIABLE}, or name registry.secret_file (mode 0600) in the inventory",
        )
    from orchestrator.runtimes.images import Credentials

    return Credentials(registry.user, secret)


def _from_file(name: str | None) -> str:
    if name is None:
        return ""
    path = Path(name).expanduser()
    try:
        mode = path.stat().st_mode
        lines = path.read_text().splitlines()
    except OSError as error:
        raise errors.LocalError(
            f"cannot read the secret in {path}: {error.strerror}", code="REG-SECRET"
        ) from error
    if mode & 0o077:
        raise errors.LocalError(
            f"others may read the secret in {path} (mode {stat.S_IMODE(mode):04o})",
            code="REG-SECRET",
            fix=f"chmod 600 {path}",
        )
    return lines[0].strip() if lines else ""


def _prompted(user: str) -> str:
    if not sys.stdin.isatty():
        return ""
    return getpass.getpass(f"Secret of {user} at the registry: ")
