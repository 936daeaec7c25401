"""Which scheduler a cluster has: the one module that knows them all."""

from collections.abc import Callable
from pathlib import Path

from orchestrator.model.attempt import Attempt
from orchestrator.model.cluster import Cluster
from orchestrator.model.plan import Seat
from orchestrator.schedulers import Scheduler, slurm, slurm_tasks
from orchestrator.schedulers.fanout import Fanout, places
from orchestrator.schedulers.slurm import Slurm


def reach(cluster: Cluster, state: Path, stopping: Callable[[], bool]) -> Scheduler:
    """The scheduler of a cluster; no packet is sent before its first use.

    Args:
        state: the state folder.
        stopping: polled while a gang runs; once true, the gang is ended.

    Raises:
        LocalError: OPEN-FILES; this process may open too few files for so many nodes.
    """
    if cluster.slurm is not None:
        return Slurm(cluster, state, stopping)
    return Fanout.of(cluster, state, stopping)


def seats(cluster: Cluster, state: Path) -> tuple[Seat, ...]:
    """The seats that a cluster could give, for plans and --dry-run; opens no connection."""
    return slurm.seats(cluster, state) if cluster.slurm else places(cluster, state)


def containers(cluster: Cluster, attempt: Attempt) -> list[str]:
    """The command lines that put an attempt into containers of image files, for --dry-run."""
    return slurm_tasks.shown(cluster, attempt) if cluster.from_files else []
