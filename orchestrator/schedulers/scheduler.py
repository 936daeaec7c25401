"""The base class of schedulers: gives nodes, runs gangs on them, moves the files of tasks."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Self

from orchestrator import errors, nodeset
from orchestrator.deadlines import COMMAND_S
from orchestrator.fleet import Answer, Fleet, ask_all, settled
from orchestrator.model.attempt import Allocation, Attempt, Request
from orchestrator.model.image import Program
from orchestrator.model.plan import Seat, Task
from orchestrator.model.site import Finding
from orchestrator.retries import REPEATABLE
from orchestrator.runtimes import Runtime
from orchestrator.schedulers import Seen, strays
from orchestrator.schedulers.gangs import Gangs
from orchestrator.transports import Completed, Transport

if TYPE_CHECKING:
    from orchestrator.runtimes.images import ImageFacts

# Prints the rows of the kernel's tables, which are long on a busy node, that listen at a port.
LISTENING = "^ *[0-9]+: [0-9A-F]+:{port:04X} [0-9A-F]+:[0-9A-F]+ 0A "
SOCKETS = ("/proc/net/tcp", "/proc/net/tcp6")


class Scheduler(Gangs, ABC):
    """Gives nodes, runs gangs on them, and knows the way to their files.

    Its methods are called by several threads at once. Those that ask nodes raise a NodeError where
    one does not answer. What is not abstract here holds for nodes of a fleet, ``forget``,
    ``attempts`` and ``push`` for nodes that share the state folder.
    """

    def __init__(
        self,
        fleet: Fleet,
        seats: tuple[Seat, ...],
        runtimes: Mapping[str, Runtime],
        stopping: Callable[[], bool],
    ) -> None:
        super().__init__(runtimes, stopping)
        self._fleet, self._seats = fleet, seats
        self._lock = threading.Lock()
        self._taken: dict[str, int] = {}  # port by node

    @property
    @abstractmethod
    def lanes(self) -> int:
        """Number of attempts that may run at once."""

    @property
    @abstractmethod
    def nodes(self) -> int:
        """Number of nodes, without those lost for good."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Close connections; gangs go on."""
        self._fleet.__exit__(*error)

    @abstractmethod
    def held(self) -> AbstractContextManager[None]:
        """Keep other controllers off the nodes, as long as the context lasts.

        Leaving it ends no gang.

        Raises:
            StoreError: LOCKED, by whom and since when; nothing is held.
        """

    def check(self) -> None:
        """Check that no other controller took a node meanwhile; raise LOCKED or LOCK if one did."""

    @abstractmethod
    def allocate(self, request: Request) -> Allocation | None:
        """Take nodes and a port for an attempt; return None while they are taken.

        After None it is called again several times a second, unless the sweep is stopped. An error
        ends the sweep once the other lanes are done.

        Raises:
            UnfitError: the request can never be met: PORT-BUSY, NO-NODES.
        """

    @abstractmethod
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
        with self._lock:
            for seat in allocation.seats:
                self._taken.pop(seat.node, None)

    def preflight(self, name: str, program: Program) -> None:
        """Check that every node with an engine has the program of an image.

        Args:
            name: of the image, for the message.

        Raises:
            ImageError: a node does not have that image.
            UnfitError: a node's engine does not answer.
        """

        def look(node: str) -> "ImageFacts | None":
            self._fleet.engines[node].check()  # a hung one is given up sooner
            return self._fleet.images[node].find(program.ids.get(node, program.digest))

        answers = ask_all(list(self._fleet.engines), look)
        settled(answers)
        if without := [answer.node for answer in answers if answer.value is None]:
            raise errors.ImageError(
                f"image {name} ({program.digest[:19]}) is no longer there",
                code="IMAGE-MISSING",
                node=nodeset.fold(without),
                fix="provision again",
            )

    def others(self, ours: Collection[str], inventory: str) -> tuple[Finding, ...]:
        """Return a finding per data preparation and gang on the nodes, except of our sweeps.

        Args:
            inventory: as the user names it, for commands to paste.
        """
        return strays.others(self._fleet, ours, inventory)

    def strays(self, sweeps: Collection[str]) -> Mapping[str, tuple[str, ...]]:
        """End what runs for these sweeps, found by name; by node, the tasks that were ended.

        Raises:
            LeftoverError: some processes could not be ended.
        """
        return strays.end(self._fleet, self._seats, tuple(sweeps)) if sweeps else {}

    def seen(self, attempt: Attempt) -> list[Answer[Seen]]:
        """Return each task's present state, leader first; an error where a node does not answer."""
        return self._ask_all(attempt.tasks, lambda _, task: self._inspect(attempt, task))

    def read(self, attempt: Attempt, task: Task, name: str, offset: int = 0) -> bytes | None:
        """Read a file in a task's folder, at most a few MiB from ``offset``; None without one."""
        path, transport = f"{attempt.folder(task)}/{name}", self._transport(task.node)
        return REPEATABLE.call(lambda: transport.get(path, offset, own=True))

    def write(self, attempt: Attempt, files: Mapping[int, Mapping[str, bytes]]) -> None:
        """Put files into the folders of tasks: by node_rank, the contents by name.

        Raises:
            NodeError, LocalError: some files may be written; they are removed with the folders.
        """
        tasks = [task for task in attempt.tasks if task.node_rank in files]

        def put(_: Runtime, task: Task) -> None:
            for name, content in files[task.node_rank].items():
                self._transport(task.node).put(content, f"{attempt.folder(task)}/{name}")

        settled(self._ask_all(tasks, put))

    def remove(self, attempt: Attempt, names: Mapping[int, Collection[str]]) -> None:
        """Remove files from the folders of tasks, by node_rank; a silent node keeps its own."""

        def remove(_: Runtime, task: Task) -> None:
            paths = (f"{attempt.folder(task)}/{name}" for name in names[task.node_rank])
            self._transport(task.node).run(("rm", "-f", "--", *paths), timeout_s=COMMAND_S)

        self._ask_all(
            [task for task in self._reachable(attempt) if names.get(task.node_rank)], remove
        )

    def forget(self, attempt: Attempt, fetched: Collection[int]) -> None:
        """Remove the attempt's folders from other machines, without logs not ``fetched`` yet."""

    def attempts(self, sweep: str) -> set[tuple[str, int]]:  # noqa: ARG002 - no folder is elsewhere
        """List attempts, by trial and number, with folders elsewhere than in the state folder."""
        return set()

    def ask(self, argv: Mapping[str, tuple[str, ...]], timeout_s: float) -> list[Answer[Completed]]:
        """Run a command on nodes, by node name; the answers are in the order of ``argv``."""
        return self._fleet.ask(argv, timeout_s)

    def push(self, files: Mapping[str, bytes], folder: str) -> None:
        """Write files, by path below ``folder``, on nodes that do not share this machine's disk.

        Raises:
            NodeError, LocalError: some nodes may have them.
        """

    def _take(self, seats: Iterable[Seat], port: int) -> None:
        with self._lock:
            self._taken.update((seat.node, port) for seat in seats)

    def _transport(self, node: str) -> Transport:
        """Return the way to the files of a node's tasks."""
        return self._fleet.transports[node]

    def _reachable(self, attempt: Attempt) -> list[Task]:
        """List the tasks whose files can be reached."""
        return [task for task in attempt.tasks if task.node in self._fleet.transports]

    def _inspect(self, attempt: Attempt, task: Task) -> Seen:
        state = self._runtimes[task.node].inspect(attempt, task)
        path = f"{attempt.folder(task)}/r{task.node_rank}.log"
        done = self._transport(task.node).run(("wc", "-c", path), timeout_s=COMMAND_S)
        size = done.stdout.split()[:1]
        return Seen(state.phase, int(size[0]) if size and done.exit_code == 0 else 0)

    def _free_port(self, request: Request, seats: Sequence[Seat], ports: Sequence[int]) -> int:
        """Return the first port that nobody listens at on any node.

        Every node's, since OneFlow and the sshd of mpirun listen at it on all of them.
        """
        busy: list[str] = []
        for port in ports:
            busy = self._busy(seats, port)
            if not busy:
                return port
        raise errors.UnfitError(
            f"port {ports[0]} is taken, and the program can use no other"
            if len(request.ports) == 1
            else f"ports {ports[0]} to {ports[-1]} are all taken",
            code="PORT-BUSY",
            node=nodeset.fold(busy),
            trial=request.trial,
        )

    def _busy(self, seats: Sequence[Seat], port: int) -> list[str]:
        argv = ("grep", "-shE", LISTENING.format(port=port), *SOCKETS)

        def look(node: str) -> bool:
            run = self._fleet.transports[node].run
            return bool(REPEATABLE.call(lambda: run(argv, timeout_s=COMMAND_S)).stdout)

        answers = ask_all([seat.node for seat in seats], look)
        settled(answers)
        return [answer.node for answer in answers if answer.value]
