"""The nodes of a cluster whose inventory lists none: those that Slurm gave."""

from orchestrator.model.cluster import Cluster
from orchestrator.schedulers import slurm_queue


def given(cluster: Cluster) -> Cluster:
    """The cluster with the nodes that Slurm gave the job that this program runs in.

    Outside of one they are stand-ins, for plans alone. Other clusters are as their inventory says.

    Raises:
        LocalError, UnfitError: Slurm does not say which.
    """
    if cluster.slurm is None:
        return cluster
    if slurm_queue.job_id():
        return cluster.given(slurm_queue.allocated())
    return stand_ins(cluster)


def stand_ins(cluster: Cluster) -> Cluster:
    """Return the cluster with as many nodes as Slurm will give, under names of their own."""
    count = cluster.slurm.nodes if cluster.slurm else 0
    return cluster.given({f"node{number}": f"node{number}" for number in range(1, count + 1)})
