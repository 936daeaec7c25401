"""The base class of schedulers: gives nodes, runs gangs on them, moves the files of tasks."""

import posixpath
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Self, TypeVar

from orchestrator import errors, nodeset
from orchestrator.deadlines import COMMAND_S, REMOVE_S
from orchestrator.fleet import Answer, Fleet, ask_all, settled
from orchestrator.model.attempt import Allocation, Attempt, GangEnd, Limits, Request
from orchestrator.model.image import HeldImage, Program
from orchestrator.model.plan import Seat, Task
from orchestrator.model.site import Finding
from orchestrator.retries import REPEATABLE
from orchestrator.runtimes import Runtime
from orchestrator.schedulers import gang, strays
from orchestrator.schedulers.gang import Watch
from orchestrator.transports import Completed, Transport

T = TypeVar("T")
# Prints a port in hexadecimal of each row that listens, such as 0016 of
# `   0: 00000000:0016 00000000:0000 0A 00000000:00000000 ...`, of one node.
LISTENING_ROW = r"s/^ *[0-9]+: [0-9A-F]+:([0-9A-F]{4}) [0-9A-F]+:[0-9A-F]+ 0A .*/\1/p"
LISTENING = ("sed", "-nE", LISTENING_ROW, "/proc/net/tcp", "/proc/net/tcp6")
# $1: a log that is nowhere else, or nothing. A folder or a link in its place is no log.
FORGET = """
[ -f "$1" ] && [ ! -L "$1" ] && exit 0
rm -rf -- "$2" && rmdir -- "$3" "$4" "$5" 2>/dev/null
true
"""


@dataclass(frozen=True, slots=True)
class Seen:
    """A task as its node shows it now."""

    phase: str  # absent, waiting, running, ended or lost
    log_bytes: int  # the size of its raw log
    refusal: errors.DlperfError | None = None  # why it never came into its container


class Scheduler(ABC):
    """Gives nodes, runs gangs on them, and knows the way to their files.

    Its methods are called by several threads at once. Those that ask nodes raise a NodeError where
    one does not answer.

    Args:
        runtime: what runs the tasks of a node.
        files: the way to the files of a node's tasks; None where the node cannot be reached.
        stopping: polled while a gang runs; once true, the gang is ended.
    """

    def __init__(
        self,
        fleet: Fleet,
        seats: tuple[Seat, ...],
        runtime: Callable[[str], Runtime],
        files: Callable[[str], Transport | None],
        stopping: Callable[[], bool],
    ) -> None:
        self._fleet, self._seats = fleet, seats
        self._runtime, self._files, self._stopping = runtime, files, stopping
        self._elsewhere = [it.name for it in fleet.cluster.members if not it.shares_files]
        self._lock = threading.Lock()
        self._taken: dict[str, int] = {}  # port by node
        self._intrusions: Sequence[errors.DlperfError] = ()  # locks that were lost for good

    @property
    @abstractmethod
    def lanes(self) -> int:
        """Number of attempts that may run at once."""

    @property
    def nodes(self) -> int:
        """Number of nodes, without those lost for good: one that is silent may be back."""
        return len(self._seats)

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
        if self._intrusions:
            raise self._intrusions[0]

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
        on nodes that the inventory no longer has at the same address.
        """

    def release(self, allocation: Allocation) -> None:
        """Take back the nodes of an allocation or of a part of it; no task runs there any more."""
        with self._lock:
            for seat in allocation.seats:
                self._taken.pop(seat.node, None)

    def preflight(self, name: str, program: Program) -> None:
        """Check that every node with an engine has the program of the image of that name.

        Raises:
            ImageError: a node does not have that image.
        """

        def look(node: str) -> HeldImage | None:
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
        """End what runs for these sweeps, found by name; by node, the tasks that were ended."""
        return strays.end(self._fleet, self._seats, sweeps) if sweeps else {}

    def launch(self, attempt: Attempt, limits: Limits) -> bool:
        """Launch the gang as ``gang.launch`` does; what it leaves, ``clear`` ends."""
        return gang.launch(attempt, limits, self._runtime, self._stopping)

    def wait(self, attempt: Attempt, limits: Limits, watch: Watch) -> GangEnd:
        """Watch the gang to its end as ``gang.Gang`` does."""
        return gang.Gang(attempt, limits, self._runtime).run(watch, self._stopping)

    def adoptable(self, attempt: Attempt) -> bool:
        """Return whether every task passed its gate, so that the gang is running or has ended."""
        states = self._ask_all(
            attempt.tasks, lambda at, task: at.inspect(attempt, task), again=True
        )
        settled(states)
        return all(
            state.phase == "running"
            or (state.phase == "ended" and state.end is not None and state.end.went_at is not None)
            for state in (answer.checked() for answer in states)
        )

    def clear(self, attempt: Attempt) -> None:
        """End every process of the attempt on nodes that can be reached, and see that none is left.

        Raises:
            LeftoverError: names the tasks that could not be ended, after trying on every node.
        """
        answers = self._ask_all(
            self._reachable(attempt), lambda at, task: at.remove(attempt, task), again=True
        )
        left = {answer.node: answer.error for answer in answers if answer.error is not None}
        if not left:
            return
        tasks = [task for task in attempt.tasks if task.node in left]
        names = ", ".join(f"{attempt.token(task)} on {task.node}" for task in tasks)
        causes = "; ".join(f"{node}: {error.cause}" for node, error in left.items())
        fixes = [error.fix for error in left.values() if isinstance(error, errors.LeftoverError)]
        raise errors.LeftoverError(
            f"it is not certain that {names} has ended ({causes})",
            code="LEFTOVER",
            fix="; ".join((*fixes, "`dlperf-orch stop` tries again, and so does the same command")),
            node=",".join(left),
            trial=attempt.trial,
        )

    def seen(self, attempt: Attempt) -> list[Answer[Seen]]:
        """Return each task's present state, leader first; an error where a node does not answer."""
        return self._ask_all(attempt.tasks, lambda _, task: self._inspect(attempt, task))

    def read(self, attempt: Attempt, task: Task, name: str, offset: int = 0) -> bytes | None:
        """Read a file in a task's folder, at most a few MiB from ``offset``; None without one."""
        path, transport = f"{attempt.folder(task)}/{name}", self._way(task)
        return REPEATABLE.call(lambda: transport.get(path, offset, own=True))

    def write(self, attempt: Attempt, files: Mapping[int, Mapping[str, bytes]]) -> None:
        """Put files into the folders of tasks: by node_rank, the contents by name."""
        tasks = [task for task in attempt.tasks if task.node_rank in files]

        def put(_: Runtime, task: Task) -> None:
            for name, content in files[task.node_rank].items():
                self._way(task).put(content, f"{attempt.folder(task)}/{name}")

        settled(self._ask_all(tasks, put))

    def remove(self, attempt: Attempt, names: Mapping[int, Collection[str]]) -> None:
        """Remove files from the folders of tasks, by node_rank; a silent node keeps its own."""

        def remove(_: Runtime, task: Task) -> None:
            paths = (f"{attempt.folder(task)}/{name}" for name in names[task.node_rank])
            self._way(task).run(("rm", "-f", "--", *paths), timeout_s=COMMAND_S)

        self._ask_all(
            [task for task in self._reachable(attempt) if names.get(task.node_rank)], remove
        )

    def forget(self, attempt: Attempt, fetched: Collection[int]) -> None:
        """Remove the attempt's folders from other machines, without logs not ``fetched`` yet.

        All nodes are asked at once; where one is silent, `clean` does it later.
        """
        argv: dict[str, tuple[str, ...]] = {}
        for task in self._reachable(attempt):
            if task.node in self._elsewhere:
                folder, log = attempt.folder(task), f"r{task.node_rank}.log"
                only = "" if task.node_rank in fetched else f"{folder}/{log}"
                trial = posixpath.dirname(folder)
                above = (trial, attempts := posixpath.dirname(trial), posixpath.dirname(attempts))
                argv[task.node] = ("sh", "-c", FORGET, "sh", only, folder, *above)
        self._fleet.ask(argv, REMOVE_S)

    def attempts(self, sweep: str) -> set[tuple[str, int]]:  # noqa: ARG002 - no folder is elsewhere
        """List attempts, by trial and number, with folders elsewhere than in the state folder."""
        return set()

    def ask(self, argv: Mapping[str, tuple[str, ...]], timeout_s: float) -> list[Answer[Completed]]:
        """Run a command on nodes, by node name; the answers are in the order of ``argv``."""
        return self._fleet.ask(argv, timeout_s)

    def push(self, files: Mapping[str, bytes], folder: str) -> None:
        """Write files, by path below ``folder``, on nodes that do not share this machine's disk."""

        def send(node: str) -> None:
            for name, content in files.items():
                self._fleet.transports[node].put(content, f"{folder}/{name}")

        settled(ask_all(self._elsewhere, send))

    def _take(self, seats: Iterable[Seat], port: int) -> None:
        with self._lock:
            self._taken.update((seat.node, port) for seat in seats)

    def _ask_all(
        self, tasks: Sequence[Task], ask: Callable[[Runtime, Task], T], *, again: bool = False
    ) -> list[Answer[T]]:
        return gang.ask_tasks(self._runtime, tasks, ask, again=again)

    def _way(self, task: Task) -> Transport:
        transport = self._files(task.node)
        assert transport is not None, f"no way to {task.node}"
        return transport

    def _reachable(self, attempt: Attempt) -> list[Task]:
        return [task for task in attempt.tasks if self._files(task.node) is not None]

    def _inspect(self, attempt: Attempt, task: Task) -> Seen:
        state = self._runtime(task.node).inspect(attempt, task)
        path = f"{attempt.folder(task)}/r{task.node_rank}.log"
        done = self._way(task).run(("wc", "-c", path), timeout_s=COMMAND_S)
        size = done.stdout.split()[:1]
        return Seen(state.phase, int(size[0]) if size and done.exit_code == 0 else 0)

    def _listening(self, nodes: Sequence[str]) -> dict[str, frozenset[int]]:
        def look(node: str) -> frozenset[int]:
            done = self._fleet.transports[node].run(LISTENING, timeout_s=COMMAND_S)
            return frozenset(int(port, 16) for port in done.stdout.split())

        answers = ask_all(nodes, look, again=True)
        settled(answers)
        return {answer.node: answer.checked() for answer in answers}


def choose_port(
    request: Request, ports: Sequence[int], listening: Mapping[str, Collection[int]]
) -> int:
    """Return the first of the ports that nobody listens at on any node, or raise PORT-BUSY.

    Every node counts, since OneFlow and the sshd of mpirun listen at it on all of them.
    """
    busy: list[str] = []
    for port in ports:
        busy = [node for node, taken in listening.items() if port in taken]
        if not busy:
            return port
    raise errors.UnfitError(
        f"every port that the program can use is taken, from {ports[0]} to {ports[-1]}",
        code="PORT-BUSY",
        node=nodeset.fold(busy),
        trial=request.trial,
    )
