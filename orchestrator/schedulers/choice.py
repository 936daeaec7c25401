"""Which scheduler a cluster has: the one module that knows them all."""

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from orchestrator.model.attempt import Attempt
from orchestrator.model.cluster import Cluster
from orchestrator.model.node import Node
from orchestrator.model.plan import Seat, Task
from orchestrator.model.site import NodeFacts
from orchestrator.runtimes import docker_run
from orchestrator.runtimes.grants import Grants, pairs, way_of_gpus
from orchestrator.runtimes.settings import ContainerSettings
from orchestrator.schedulers import Scheduler, slurm, slurm_tasks
from orchestrator.schedulers.fanout import Fanout, places
from orchestrator.schedulers.slurm import Slurm

ASKED_USER = "$(id -u):$(id -g)"


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


def pasted(
    cluster: Cluster, attempt: Attempt, facts: Mapping[str, NodeFacts], asking: Sequence[str]
) -> dict[str, list[str]]:
    """Return by node the words of a line that runs its task, each quoted, for --dry-run.

    What runs is the program without its supervisor, and what it runs in is made of the request
    that Docker is sent, or of the words that srun is started with.

    Args:
        facts: by node, as far as nodes were provisioned.
        asking: options of a job, where Slurm is to give the nodes.
    """
    nodes = {node.name: node for node in cluster.members}
    return {
        task.node: _pasted(cluster, nodes[task.node], attempt, task, facts, asking)
        for task in attempt.tasks
    }


def _pasted(
    cluster: Cluster,
    node: Node,
    attempt: Attempt,
    task: Task,
    facts: Mapping[str, NodeFacts],
    asking: Sequence[str],
) -> list[str]:
    folder = shlex.quote(attempt.folder(task))
    before = ["mkdir", "-p", folder, "&&"]
    if node.has_engine:
        known = facts.get(node.name)
        settings = ContainerSettings.of(cluster)
        facts_there = known.docker if known else None
        grants = Grants(
            settings, lambda: _user(node), lambda: way_of_gpus(settings.gpu_access, facts_there)
        )
        image = attempt.images.get(node.name) or attempt.image
        started = {"Cmd": task.argv, "Labels": {}}
        docker = ("sudo", "-n", "docker") if node.sudo else ("docker",)
        program = (*docker, *docker_run.words(*grants.request(attempt, task, image, started)))
    else:
        program = (*(("env", *pairs(task.env)) if task.env else ()), *task.argv)
        if cluster.slurm is None:
            before += ["cd", folder, "&&"]
    if cluster.slurm is not None:
        program = tuple(slurm_tasks.pasted(cluster, attempt, task, program, asking))
    asked = shlex.quote(f"--user={ASKED_USER}")
    quoted = [shlex.quote(word) for word in program]
    return before + [f'--user="{ASKED_USER}"' if word == asked else word for word in quoted]


def _user(node: Node) -> str:
    """Return uid:gid of the user who logs in, or what the node's shell has to find out."""
    if node.shares_files:
        return f"{os.getuid()}:{os.getgid()}"
    return "0:0" if node.user == "root" else ASKED_USER
