"""The nodes of a cluster, reached: their transports and runtimes, and answers from all of them."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, TypeVar

from orchestrator import errors
from orchestrator.model.cluster import Cluster, Node
from orchestrator.probes import Probe
from orchestrator.runtimes import Runtime
from orchestrator.runtimes.process import ProcessRuntime
from orchestrator.transports import Transport
from orchestrator.transports.local import LocalTransport

T = TypeVar("T")
MOST_AT_ONCE = 32


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """What one node said, or why it did not; ``at_s`` is this machine's clock when it did."""

    node: str
    value: T | None
    error: errors.DlperfError | None
    at_s: float


def transports(cluster: Cluster) -> dict[str, Transport]:
    """A transport to every node, by node name.

    Raises:
        UnfitError: the inventory asks for a way that this version does not have.
    """
    return {node.name: _transport(node) for node in cluster.members}


def runtimes(cluster: Cluster, reached: dict[str, Transport]) -> dict[str, Runtime]:
    """The runtime of every node, by node name."""
    return {node.name: ProcessRuntime(reached[node.name]) for node in cluster.members}


def each(nodes: Sequence[str], ask: Callable[[str], T]) -> list[Answer[T]]:
    """Every node's answer or error, in order, none lost; at most 32 are asked at once."""

    def answer(node: str) -> Answer[T]:
        try:
            value = ask(node)
        except errors.DlperfError as error:
            error.where.setdefault("node", node)
            return Answer(node, None, error, time.time())
        return Answer(node, value, None, time.time())

    with ThreadPoolExecutor(min(MOST_AT_ONCE, max(len(nodes), 1))) as pool:
        return list(pool.map(answer, nodes))


def ask(transport: Transport, probe: Probe[T], timeout_s: float) -> T:
    """A node's answer to a probe.

    Raises:
        NodeError: it gave none.
        UnfitError: its answer cannot be read.
    """
    done = transport.run(probe.argv, timeout_s=timeout_s)
    text = done.stdout.decode(errors="replace")
    try:
        return probe.parse(text)
    except errors.LogError as error:
        said = done.stderr.decode(errors="replace").strip() or f"exit status {done.exit_code}"
        raise errors.UnfitError(
            f"{error.cause} ({said})", code=error.code, node=transport.node, phase=probe.name
        ) from error


def _transport(node: Node) -> Transport:
    if node.transport != "local" or node.runtime != "process":
        raise errors.UnfitError(
            f"transport {node.transport} and runtime {node.runtime} are not in this version yet,"
            " which runs tasks as processes on this machine",
            code="NOT-YET",
            node=node.name,
            fix="use transport: local and runtime: process, or --dry-run to see the plan",
        )
    return LocalTransport(node.name)
