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
    """Return user and secret for the registry; None where the inventory names no user.

    Raises:
        UsageError: REG-SECRET; a user is named and no secret is given.
        LocalError: REG-SECRET; the secret file cannot be read, or others can read it too.
    """
    if registry is None or registry.user is None:
        return None
    secret = os.environ.get(VARIABLE, "")
    if not secret and registry.secret_file is not None:
        path = Path(registry.secret_file).expanduser()
        try:
            mode = path.stat().st_mode
            secret = path.read_text().partition("\n")[0].strip()
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
    if not secret and sys.stdin.isatty():
        secret = getpass.getpass(f"Secret of {registry.user} at the registry: ")
    if not secret:
        raise errors.UsageError(
            f"the registry wants a secret for user {registry.user} and none is given",
            code="REG-SECRET",
            fix=f"set {VARIABLE}, or name registry.secret_file (mode 0600) in the inventory",
        )
    from orchestrator.runtimes.images import Credentials

    return Credentials(registry.user, secret)
