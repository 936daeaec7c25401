"""Schedulers give nodes and run gangs on them; nothing outside this room knows how.

``fanout`` gives nodes over SSH and on this machine, ``slurm`` those of a job; ``on_fleet`` is what
both share, and ``gangs`` runs what was given, under Slurm as a ``gang_step``; ``locks`` keeps other
controllers off. To add one, write a module here that implements ``Scheduler``, and choose it
in ``choice`` by what the inventory says. Nodes have the names of the inventory.
"""

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from orchestrator import errors
from orchestrator.model.attempt import Allocation, Attempt, GangEnd, Limits, Request
from orchestrator.model.image import Program
from orchestrator.model.plan import Task
from orchestrator.model.site import Finding

if TYPE_CHECKING:  # half of what reaches nodes, where only files are read
    from orchestrator.fleet import Answer
    from orchestrator.transports import Completed

Watch = Callable[[bytes], None]
"""Called with every new piece of the raw log that is measured."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A task as its node shows it now.

    Args:
        phase: absent, waiting, running, ended or lost.
        log_bytes: the size of its raw log.
        refusal: why it never came into its container; None unless it is lost by that.
    """

    phase: str
    log_bytes: int
    refusal: errors.DlperfError | None = None


class Scheduler(Protocol):
    """Gives nodes, runs gangs on them, and knows the way to their files.

    Its methods are called by several threads at once. Those that ask nodes raise a NodeError where
    one does not answer.
    """

    @property
    def lanes(self) -> int:
        """Number of attempts that may run at once."""

    @property
    def nodes(self) -> int:
        """Number of nodes, without those lost for good."""

    def __enter__(self) -> "Scheduler":
        """Return itself."""

    def __exit__(self, *_: object) -> None:
        """Close connections; gangs go on."""

    def held(self) -> AbstractContextManager[None]:
        """Keep other controllers off the nodes, as long as the context lasts.

        Leaving it ends no gang.

        Raises:
            StoreError: LOCKED, by whom and since when; nothing is held.
        """

    def check(self) -> None:
        """Check that no other controller took a node meanwhile; raise LOCKED or LOCK if one did."""

    def preflight(self, name: str, program: Program) -> None:
        """Check that the nodes have the program of an image, which the message names.

        Raises:
            ImageError: a node does not have that image.
        """

    def others(self, ours: Collection[str], inventory: str) -> tuple[Finding, ...]:
        """Return a finding per data preparation and gang on the nodes, except of our sweeps.

        Args:
            inventory: as the user names it, for commands to paste.
        """

    def allocate(self, request: Request) -> Allocation | None:
        """Take nodes and a port for an attempt; return None while they are taken.

        After None it is called again several times a second, unless the sweep is stopped. An error
        ends the sweep once the other lanes are done.

        Raises:
            UnfitError: the request can never be met: PORT-BUSY, NO-NODES.
        """

    def reclaim(self, attempt: Attempt) -> Attempt:
        """Mark the nodes of an earlier run's attempt as taken, until they are released.

        Each open attempt of this state folder on the cluster is reclaimed before the first request,
        also one that an earlier run has reclaimed and released. Return the attempt without tasks
        on nodes that the inventory no longer has.

        Raises:
            UnfitError: NODE-MOVED; the inventory gives a node of it another address.
        """

    def release(self, allocation: Allocation) -> None:
        """Take back the nodes of an allocation or of a part of it; no task runs there any more."""

    def launch(self, attempt: Attempt, limits: Limits) -> bool:
        """Bring every task to its gate, then open all gates.

        Returns:
            False if some task did not come to its gate or was stopped there; others may wait at
            theirs or run until ``clear``.

        Raises:
            NodeError, UnfitError, LocalError: tasks may wait at their gates; ``clear`` ends them.
        """

    def wait(self, attempt: Attempt, limits: Limits, watch: Watch) -> GangEnd:
        """Watch the gang until all of it has ended; the first that fails ends the others."""

    def adoptable(self, attempt: Attempt) -> bool:
        """Return whether every task passed its gate, so that the gang is running or has ended."""

    def clear(self, attempt: Attempt) -> None:
        """End every process of the attempt on every node and make sure that none is left.

        Raises:
            LeftoverError: names the tasks that could not be ended, after trying on every node.
        """

    def strays(self, sweeps: Collection[str]) -> Mapping[str, tuple[str, ...]]:
        """End what runs for these sweeps, found by name; by node, the tasks that were ended.

        Raises:
            LeftoverError: some processes could not be ended.
        """

    def seen(self, attempt: Attempt) -> "list[Answer[Seen]]":
        """Return each task's present state, leader first; an error where a node does not answer."""

    def read(self, attempt: Attempt, task: Task, name: str, offset: int = 0) -> bytes | None:
        """Read a file in a task's folder, at most a few MiB from ``offset``; None without one."""

    def write(self, attempt: Attempt, files: Mapping[int, Mapping[str, bytes]]) -> None:
        """Put files into the folders of tasks: by node_rank, the contents by name.

        Raises:
            NodeError, LocalError: some files may be written; they are removed with the folders.
        """

    def remove(self, attempt: Attempt, names: Mapping[int, Collection[str]]) -> None:
        """Remove files from the folders of tasks, by node_rank; a silent node keeps its own."""

    def forget(self, attempt: Attempt, fetched: Collection[int]) -> None:
        """Remove the attempt's folders from other machines, without logs not ``fetched`` yet."""

    def attempts(self, sweep: str) -> set[tuple[str, int]]:
        """List attempts, by trial and number, with folders elsewhere than in the state folder."""

    def ask(
        self, argv: Mapping[str, tuple[str, ...]], timeout_s: float
    ) -> "list[Answer[Completed]]":
        """Run a command on nodes, by node name; the answers are in the order of ``argv``."""

    def push(self, files: Mapping[str, bytes], folder: str) -> None:
        """Write files, by path below ``folder``, on nodes that do not share this machine's disk.

        Raises:
            NodeError, LocalError: some nodes may have them.
        """
