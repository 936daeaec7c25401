"""Rules over facts of nodes, each finding an error or a warning. Pure.

A new check is a function here that yields ``Finding``; its code, severity and remedy belong into
``model/findings.toml``.
"""

from collections.abc import Iterator

from orchestrator.checks import data, fabric, gpu, health, machine, network
from orchestrator.model.cluster import Cluster
from orchestrator.model.facts import NodeAnswer, Silent
from orchestrator.model.node import Node
from orchestrator.model.site import Finding


def alone(
    cluster: Cluster, node: Node, answer: NodeAnswer, demands: machine.Demands
) -> Iterator[Finding]:
    yield from machine.host(node, answer.host, demands)
    yield from network.interfaces(cluster, node, answer.host)
    yield from gpu.gpus(node, answer.gpu, driver=demands.driver)
    yield from fabric.adapters(node, answer.infiniband)
    yield from fabric.openable(node, answer.verbs)
    yield from fabric.gids(node, answer.gids)
    if not isinstance(answer.gpu, Silent):  # report a failing nvidia-smi once
        yield from fabric.distances(node, answer.topology)
        yield from gpu.nvlinks(node, answer.gpu, answer.nvlinks, answer.nvlink_errors)
    yield from health.health(node, answer.health)
    yield from machine.docker(node, answer.docker, cluster.container)
    yield from data.states(node, answer.data)
