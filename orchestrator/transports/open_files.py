"""The limit of open files of this process, and the errors for too low a limit."""

import errno
import resource

from orchestrator import errors

OF_OUR_OWN = 32
OF_A_NODE = 3  # its connection, and the pipe by which paramiko says that a command has output


def suffice(nodes: int) -> None:
    """Check that this process may open enough files to reach so many nodes at once.

    Raises:
        LocalError: OPEN-FILES, with the limit and what is needed.
    """
    needed = OF_OUR_OWN + OF_A_NODE * nodes
    if 0 <= _allowed() < needed:
        raise errors.LocalError(
            f"this process may have {_allowed()} files open (ulimit -n);"
            f" {nodes} nodes need {needed}",
            code="OPEN-FILES",
            fix=f"ulimit -n {needed}",
        )


def lacking(error: Exception, node: str) -> errors.LocalError | None:
    """Return the error for a call that failed with EMFILE; None for other errors."""
    if not isinstance(error, OSError) or error.errno != errno.EMFILE:
        return None
    return errors.LocalError(
        f"all {_allowed()} files that this process may have open (ulimit -n) are in use;"
        " talking to the node needs more",
        code="OPEN-FILES",
        node=node,
        fix=f"ulimit -n {_allowed() * 2}",
    )


def _allowed() -> int:
    """Return the soft limit of open files; -1 for none."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
