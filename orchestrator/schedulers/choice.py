"""Which scheduler a cluster has: the one module that knows them all."""

from collections.abc import Callable
from pathlib import Path

from orchestrator.model.cluster import Cluster
from orchestrator.model.plan import Seat
from orchestrator.schedulers import Scheduler
from orchestrator.schedulers.fanout import Fanout, places


def reach(cluster: Cluster, state: Path, stopping: Callable[[], bool]) -> Scheduler:
    """The scheduler of a cluster; no packet is sent before its first use.

    Args:
        state: the state folder.
        stopping: polled while a gang runs; once true, the gang is ended.

    Raises:
        LocalError: OPEN-FILES; this process may open too few files for so many nodes.
    """
    return Fanout.of(cluster, state, stopping)


def seats(cluster: Cluster, state: Path) -> tuple[Seat, ...]:
    """The seats that a cluster could give, for plans and --dry-run; opens no connection."""
    return places(cluster, state)
