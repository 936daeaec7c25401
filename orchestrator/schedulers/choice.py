"""Which scheduler a cluster has: the one module that knows them all."""

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from orchestrator.fleet import Fleet
from orchestrator.model.attempt import Attempt
from orchestrator.model.cluster import Cluster
from orchestrator.model.node import Node
from orchestrator.model.plan import Task
from orchestrator.model.site import NodeFacts
from orchestrator.runtimes import grants
from orchestrator.runtimes.grants import pairs
from orchestrator.schedulers import slurm_tasks
from orchestrator.schedulers.fanout import Fanout
from orchestrator.schedulers.scheduler import Scheduler
from orchestrator.schedulers.slurm import Slurm

_ASKED = "$(id -u):$(id -g)"
_QUOTED, _ASKING = f"'--user={_ASKED}'", f'--user="{_ASKED}"'


def reach(cluster: Cluster, state: Path, stopping: Callable[[], bool]) -> Scheduler:
    """Return the scheduler of a cluster; no packet is sent before its first use."""
    if cluster.slurm is not None:
        return Slurm(cluster, state, stopping)
    return Fanout(Fleet.of(cluster), state, stopping)


def quote_lines(
    cluster: Cluster, attempt: Attempt, facts: Mapping[str, NodeFacts], asking: Sequence[str]
) -> dict[str, list[str]]:
    """Return by node the words of a line that runs its task, each quoted, for --dry-run.

    The program runs without its supervisor, in a container by the request that Docker is sent, or
    by the words that srun is started with.

    Args:
        facts: by node, as far as nodes were provisioned.
        asking: options of a job, where Slurm is to give the nodes.
    """
    nodes, lines = {node.name: node for node in cluster.members}, dict[str, list[str]]()
    for task in attempt.tasks:
        folder, node = shlex.quote(attempt.folder(task)), nodes[task.node]
        before = ["mkdir", "-p", folder, "&&"]
        if node.has_engine:
            program = _docker(cluster, node, attempt, task, facts.get(node.name))
        else:
            program = (*(("env", *pairs(task.env)) if task.env else ()), *task.argv)
            before += [] if cluster.slurm else ["cd", folder, "&&"]
        if cluster.slurm is not None:
            program = slurm_tasks.step_words(cluster, attempt, task, program, asking)
        # What only the node's shell can find out is left to it.
        words = [shlex.quote(word).replace(_QUOTED, _ASKING) for word in program]
        lines[node.name] = before + words
    return lines


def _docker(
    cluster: Cluster, node: Node, attempt: Attempt, task: Task, known: NodeFacts | None
) -> Sequence[str]:
    user = _ASKED if node.user != "root" else "0:0"
    if node.shares_files:
        user = f"{os.getuid()}:{os.getgid()}"
    access = grants.way_of_gpus(cluster.container.gpu_access, known.docker if known else None)
    image = attempt.images.get(node.name) or attempt.image
    request = grants.request(
        cluster.container,
        attempt,
        task,
        {"Image": image, "Cmd": task.argv, "Labels": {}},
        user=user,
        gpu_access=access if task.gpus else "none",
        has_hcas=cluster.has_hcas,
    )
    return (*(("sudo", "-n") if node.sudo else ()), "docker", *grants.run_words(request))
