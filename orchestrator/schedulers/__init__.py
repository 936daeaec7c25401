"""Schedulers give nodes and run gangs on them; nothing outside this room knows how.

Whoever adds one writes a module here that keeps to ``Scheduler``, and chooses it in ``reach`` and
``seats`` by what the inventory says. Nodes are called as the inventory calls them.
"""

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Protocol

from orchestrator.fleet import Answer
from orchestrator.model.allocation import Allocation, Request
from orchestrator.model.attempt import Attempt, GangEnd, Limits
from orchestrator.model.cluster import Cluster
from orchestrator.model.plan import Seat, Task
from orchestrator.transports import Completed

Watch = Callable[[bytes], None]
"""Given the raw log that is measured, piece by piece as it grows."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A task as its node shows it now.

    Args:
        phase: absent, waiting, running, ended or lost.
        log_bytes: the size of its raw log.
    """

    phase: str
    log_bytes: int


class Scheduler(Protocol):
    """Gives nodes, runs gangs on them, and knows the way to their files.

    Its methods are called by several threads at once.
    """

    @property
    def lanes(self) -> int:
        """How many attempts may run at once."""

    def __enter__(self) -> "Scheduler":
        """Itself."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give up connections; what runs goes on."""

    def held(self) -> AbstractContextManager[None]:
        """Keep other controllers off the nodes, as long as the context lasts.

        Leaving it ends nothing that runs.

        Raises:
            StoreError: LOCKED, by whom and since when; nothing is held.
            NodeError: a node does not answer.
        """

    def check(self) -> None:
        """Nothing, unless another controller came in meanwhile.

        Raises:
            StoreError: LOCKED; what was measured meanwhile may be disturbed.
        """

    def preflight(self, name: str, image: str, ours: Collection[str]) -> None:
        """Nothing, if the nodes have what attempts are started from and run nobody else's gang.

        Args:
            name: of the image.
            image: digest of the program; of containers, the id of their image.
            ours: ids of the sweeps whose gangs may run.

        Raises:
            ImageError, UnfitError, NodeError: they do not.
        """

    def allocate(self, request: Request) -> Allocation | None:
        """Nodes and a port for an attempt; None while they are taken.

        It is asked again several times a second while it answers None, and then perhaps no more.
        An error ends the sweep once the other lanes are done.

        Raises:
            UnfitError: they can never be had: PORT-BUSY, NO-NODES.
            NodeError: a node does not answer.
        """

    def reclaim(self, attempt: Attempt) -> Attempt:
        """An attempt of an earlier run, with those of its tasks that can be reached.

        Its nodes count as taken until it is released; an earlier run may have done both already.
        Each open attempt of this state folder on the cluster is reclaimed before the first request.

        Raises:
            UnfitError: NODE-MOVED; the inventory gives a node of it another address.
        """

    def release(self, allocation: Allocation) -> None:
        """Take the nodes back, of all of it or a part; nothing of the attempt runs there."""

    def launch(self, attempt: Attempt, limits: Limits) -> bool:
        """Bring every task to its gate, then open all gates.

        Returns:
            False if some task did not come to its gate or was stopped there; none is running.

        Raises:
            NodeError, UnfitError, LocalError: tasks may wait at their gates; ``clear`` ends them.
        """

    def wait(self, attempt: Attempt, limits: Limits, watch: Watch) -> GangEnd:
        """Watch the gang until all of it has ended; the first that fails ends the others."""

    def adoptable(self, attempt: Attempt) -> bool:
        """Whether every task was let through its gate: then the gang may go on or has ended.

        Raises:
            NodeError: a node does not answer; what it runs is not known.
        """

    def clear(self, attempt: Attempt) -> None:
        """End every process of the attempt on every node and make sure that none is left.

        Raises:
            LeftoverError: names what would not go, after trying everywhere.
        """

    def strays(self, sweeps: Collection[str]) -> Mapping[str, tuple[str, ...]]:
        """End what runs for these sweeps, found by name; by node, the tasks that were ended.

        Raises:
            NodeError: a node does not answer.
            LeftoverError: some processes would not go.
        """

    def seen(self, attempt: Attempt) -> list[Answer[Seen]]:
        """Every task as its node shows it, leader first."""

    def read(self, attempt: Attempt, task: Task, name: str, offset: int = 0) -> bytes | None:
        """A file in a task's folder from ``offset`` on, at most a few MiB; None if there is none.

        Raises:
            NodeError: the node does not answer.
        """

    def write(self, attempt: Attempt, files: Mapping[int, Mapping[str, bytes]]) -> None:
        """Put files into the folders of tasks.

        Args:
            files: by node_rank, the content of each file by its name.

        Raises:
            NodeError, LocalError: some may be there; they go with the folders.
        """

    def remove(self, attempt: Attempt, names: Mapping[int, Collection[str]]) -> None:
        """Remove files from the folders of tasks, by node_rank; a silent node keeps its own."""

    def forget(self, attempt: Attempt, fetched: Collection[int]) -> None:
        """Remove the attempt's folders where they are not in the state folder.

        A folder whose log is nowhere else stays.

        Args:
            fetched: the node_ranks whose log is here.
        """

    def attempts(self, sweep: str) -> set[tuple[str, int]]:
        """Trial and number of each attempt that has a folder elsewhere than in the state folder."""

    def ask(self, argv: Mapping[str, tuple[str, ...]], timeout_s: float) -> list[Answer[Completed]]:
        """What a command came to on each node, by the names of nodes in order."""

    def push(self, files: Mapping[str, bytes], folder: str) -> None:
        """Bring a program's files to every node that does not see this machine's.

        Raises:
            NodeError, LocalError: some nodes may have them.
        """


def reach(cluster: Cluster, state: Path, stopping: Callable[[], bool]) -> Scheduler:
    """The scheduler of a cluster; no packet is sent before it is asked.

    Args:
        state: the state folder that is worked in.
        stopping: asked now and then; true ends gangs.

    Raises:
        ConfigError, LocalError: something about how to reach a node does not hold.
    """
    from orchestrator.schedulers.fanout import Fanout

    return Fanout.of(cluster, state, stopping)


def seats(cluster: Cluster, state: Path) -> tuple[Seat, ...]:
    """What could be had of a cluster; nothing is opened."""
    from orchestrator.schedulers.fanout import places

    return places(cluster, state)
