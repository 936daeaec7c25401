"""Rules over facts of nodes, each finding an error or a warning. Pure.

A new check is a function here that yields ``Finding``; its code, severity and remedy belong into
``model/findings.toml``.
"""

from collections.abc import Iterator

from orchestrator.checks.data import digests, states
from orchestrator.checks.fabric import adapters, distances, gids, openable
from orchestrator.checks.gpu import gpus, nvlinks
from orchestrator.checks.health import health
from orchestrator.checks.machine import Demands, container, docker, host
from orchestrator.checks.network import interfaces, reachable
from orchestrator.checks.nodes import alike, since, together
from orchestrator.model.cluster import Cluster
from orchestrator.model.facts import NodeAnswer, Silent
from orchestrator.model.node import Node
from orchestrator.model.site import Finding

__all__ = (
    "Demands",
    "adapters",
    "alike",
    "alone",
    "container",
    "digests",
    "distances",
    "docker",
    "gids",
    "gpus",
    "health",
    "host",
    "interfaces",
    "nvlinks",
    "openable",
    "reachable",
    "since",
    "states",
    "together",
)


def alone(cluster: Cluster, node: Node, answer: NodeAnswer, demands: Demands) -> Iterator[Finding]:
    yield from host(node, answer.host, demands)
    yield from interfaces(cluster, node, answer.host)
    yield from gpus(node, answer.gpu, driver=demands.driver)
    yield from adapters(node, answer.infiniband)
    yield from openable(node, answer.verbs)
    yield from gids(node, answer.gids)
    if not isinstance(answer.gpu, Silent):  # one program that fails is one finding
        yield from distances(node, answer.topology)
        yield from nvlinks(node, answer.gpu, answer.nvlinks, answer.nvlink_errors)
    yield from health(node, answer.health)
    yield from docker(node, answer.docker, cluster.container)
    yield from states(node, answer.data)
