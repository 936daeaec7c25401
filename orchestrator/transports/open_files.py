"""The limit of open files of this process."""

import resource

from orchestrator import errors

OF_OUR_OWN = 32
OF_A_NODE = 1  # its connection


def suffice(nodes: int) -> None:
    """Check that this process may open enough files to reach so many nodes at once.

    Raises:
        LocalError: OPEN-FILES, with the limit and what is needed.
    """
    needed = OF_OUR_OWN + OF_A_NODE * nodes
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)  # -1: no limit
    if 0 <= allowed < needed:
        raise errors.LocalError(
            f"this process may have {allowed} files open (ulimit -n); {nodes} nodes need {needed}",
            code="OPEN-FILES",
            fix=f"ulimit -n {needed}",
        )
