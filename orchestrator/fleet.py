"""The nodes of a cluster, reached: their transports, engines and runtimes, and their answers."""

import contextlib
import os
import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent import futures
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from orchestrator import errors, nodeset
from orchestrator.deadlines import HEARD_S
from orchestrator.model.cluster import Cluster
from orchestrator.model.node import Node
from orchestrator.retries import REPEATABLE
from orchestrator.runtimes import Runtime
from orchestrator.runtimes.process import ProcessRuntime
from orchestrator.transports import Completed, Transport
from orchestrator.transports.failures import check_open_files
from orchestrator.transports.local import LocalTransport

if TYPE_CHECKING:  # half of a command's start-up time, and not needed on this machine alone
    from orchestrator.runtimes.containers import Containers
    from orchestrator.runtimes.docker import DockerRuntime
    from orchestrator.runtimes.engine import Engine
    from orchestrator.runtimes.images import Images

T = TypeVar("T")
MOST_AT_ONCE = 32


class Pool:
    """At most so many threads, given up when the program ends.

    ``ThreadPoolExecutor`` waits for its threads when the interpreter exits, and so would a
    command that was stopped wait for a node that does not answer.
    """

    def __init__(self, most: int) -> None:
        self._most, self._begun = max(most, 1), 0
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()

    def submit(self, work: Callable[[], T]) -> "Future[T]":
        """Run ``work`` in a thread; the future holds its result or the exception it raised."""
        future: Future[T] = Future()

        def job() -> None:
            try:
                future.set_result(work())
            except BaseException as error:  # noqa: BLE001 - whoever asks for the result gets it
                future.set_exception(error)

        if self._begun < self._most:
            self._begun += 1
            threading.Thread(target=self._serve, daemon=True).start()
        self._jobs.put(job)
        return future

    def close(self) -> None:
        """Take no more work; each thread ends after the work it is at. Does not wait."""
        for _ in range(self._begun):
            self._jobs.put(None)

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """One node's answer, or the error in its place."""

    node: str
    value: T | None
    error: errors.DlperfError | None
    at_s: float  # when it came, by this machine's clock, in seconds since the epoch

    def checked(self) -> T:
        """Return the answer's value, or raise the error in its place."""
        if self.error is not None or self.value is None:
            raise self.error or AssertionError("an answer without a value has an error")
        return self.value


@dataclass(slots=True)
class Fleet:
    """The connections to every node of a cluster: opened at first use, closed with the context.

    Engines, their images and containers are those of nodes with an engine only, by node name.
    """

    cluster: Cluster
    transports: Mapping[str, Transport]
    _engines: "Callable[[], Mapping[str, Engine]]" = dict

    @classmethod
    def of(cls, cluster: Cluster, shared: Path | None = None) -> "Fleet":
        """Return the nodes of a cluster; no packet is sent before the first question to a node.

        Args:
            shared: a folder that Slurm's nodes see at the same path.

        Raises:
            LocalError: OPEN-FILES; this process may open too few files for so many nodes.
        """
        check_open_files(len(cluster.members))
        transports: dict[str, Transport]
        if cluster.slurm is not None:
            from orchestrator.transports.steps import Steps, StepTransport

            steps = Steps(os.environ.get("SLURM_JOB_ID", ""))  # all share those of this job
            transports = {it.name: StepTransport(it.name, steps, shared) for it in cluster.members}
        else:
            transports = {it.name: _connect(it) for it in cluster.members}
        contained = [node for node in cluster.members if node.has_engine]
        if not contained:
            return cls(cluster, transports)

        def load() -> "Mapping[str, Engine]":
            from orchestrator.runtimes.engine import Engine

            return {it.name: Engine(transports[it.name], sudo=it.sudo) for it in contained}

        # Docker's library is loaded while nodes are asked what needs none.
        with contextlib.closing(Pool(1)) as pool:
            return cls(cluster, transports, pool.submit(load).result)

    @property
    def engines(self) -> "Mapping[str, Engine]":
        return self._engines()

    @property
    def images(self) -> "Mapping[str, Images]":
        from orchestrator.runtimes.images import Images

        return {name: Images(engine) for name, engine in self.engines.items()}

    @property
    def containers(self) -> "Mapping[str, Containers]":
        from orchestrator.runtimes.containers import Containers

        return {name: Containers(engine) for name, engine in self.engines.items()}

    def __enter__(self) -> "Fleet":
        return self

    def __exit__(self, *_: object) -> None:
        try:
            for engine in self.engines.values():
                engine.close()
        finally:
            for transport in self.transports.values():
                transport.close()

    def runtime(self, name: str, owner: str) -> Runtime:
        """Return the runtime of a node: containers if it has an engine, else plain processes."""
        if name in self.engines:
            return self.containers_on(name, owner=owner)
        return ProcessRuntime(self.transports[name], owner)

    def containers_on(self, name: str, *, image: str = "", owner: str = "") -> "DockerRuntime":
        """Return the runtime of a node with an engine; arguments are those of ``DockerRuntime``."""
        from orchestrator.runtimes.docker import DockerRuntime

        return DockerRuntime(
            self.transports[name],
            self.engines[name],
            self.cluster.container,
            has_hcas=self.cluster.has_hcas,
            image=image,
            owner=owner,
        )

    def ask(self, argv: Mapping[str, tuple[str, ...]], timeout_s: float) -> list[Answer[Completed]]:
        """Run a command on all nodes at once, by node name; answers in the order of ``argv``."""
        return ask_all(
            list(argv), lambda node: self.transports[node].run(argv[node], timeout_s=timeout_s)
        )


def wait_for_all(pending: Iterable["Future[T]"]) -> None:
    """Wait until all have ended, and handle a signal also if it comes just before a wait."""
    left = set(pending)
    while left:
        left = futures.wait(left, HEARD_S).not_done


def ask_all(
    nodes: Sequence[str],
    ask: Callable[[str], T],
    *,
    at_once: int = MOST_AT_ONCE,
    again: bool = False,
) -> list[Answer[T]]:
    """Return every node's answer or error, in order; ask ``again`` after a lost connection."""

    def answer(node: str) -> Answer[T]:
        try:
            value = REPEATABLE.call(lambda: ask(node)) if again else ask(node)
        except errors.DlperfError as error:
            error.where.setdefault("node", node)
            return Answer(node, None, error, time.time())
        return Answer(node, value, None, time.time())

    with contextlib.closing(Pool(min(at_once, len(nodes)))) as pool:
        asked = [pool.submit(partial(answer, node)) for node in nodes]
        wait_for_all(asked)
        return [future.result() for future in asked]


def folded(failures: Iterable[errors.DlperfError]) -> list[errors.DlperfError]:
    """Merge errors equal in class, code and cause, the node of each such as ``vs[001-004]``."""
    groups: dict[tuple[type, str, str], list[errors.DlperfError]] = {}
    for failure in failures:
        groups.setdefault((type(failure), failure.code, failure.cause), []).append(failure)
    for first, *others in groups.values():
        for key in first.where if others else ():
            first.where[key] = nodeset.fold(
                failure.where.get(key, "?") for failure in (first, *others)
            )
    return [group[0] for group in groups.values()]


def settled(answers: Sequence[Answer[T]]) -> None:
    """Raise the gravest of the answers' errors; its cause names other nodes that failed."""
    failed = folded(answer.error for answer in answers if answer.error is not None)
    if not failed:
        return
    gravest = errors.gravest(failed)
    others = [failure for failure in failed if failure is not gravest]
    if others:
        nodes = ", ".join(other.where.get("node", "?") for other in others)
        gravest.cause += f" (also failed: {nodes})"
        gravest.others = tuple(answer.node for answer in answers if answer.error is not None)
    raise gravest


def _connect(node: Node) -> Transport:
    if node.is_here:
        return LocalTransport(node.name)
    from orchestrator.transports.ssh import SshTransport

    return SshTransport(node)
