"""What the schedulers that ship share: the nodes of a fleet, and the files of tasks there."""

import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
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


class OnFleet(Gangs):
    """Runs gangs on the nodes of a fleet; closes its connections with the context."""

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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._fleet.__exit__(*error)

    def release(self, allocation: Allocation) -> None:
        with self._lock:
            for seat in allocation.seats:
                self._taken.pop(seat.node, None)

    def preflight(self, name: str, program: Program) -> None:
        """Check that every node with an engine has the image.

        Raises:
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
        """Look at containers, which outlive a job of Slurm's, and at processes."""
        return strays.others(self._fleet, ours, inventory)

    def strays(self, sweeps: Collection[str]) -> Mapping[str, tuple[str, ...]]:
        return strays.end(self._fleet, self._seats, tuple(sweeps)) if sweeps else {}

    def seen(self, attempt: Attempt) -> list[Answer[Seen]]:
        """Return the states of tasks, by their nodes' runtimes, and the sizes of their logs."""
        return self._ask_all(attempt.tasks, lambda _, task: self._inspect(attempt, task))

    def read(self, attempt: Attempt, task: Task, name: str, offset: int = 0) -> bytes | None:
        """Read a file, again if the connection was lost."""
        path, transport = f"{attempt.folder(task)}/{name}", self._transport(task.node)
        return REPEATABLE.call(lambda: transport.get_own(path, offset))

    def write(self, attempt: Attempt, files: Mapping[int, Mapping[str, bytes]]) -> None:
        """Write files on all nodes at once."""
        tasks = [task for task in attempt.tasks if task.node_rank in files]

        def put(_: Runtime, task: Task) -> None:
            for name, content in files[task.node_rank].items():
                self._transport(task.node).put(content, f"{attempt.folder(task)}/{name}")

        settled(self._ask_all(tasks, put))

    def remove(self, attempt: Attempt, names: Mapping[int, Collection[str]]) -> None:
        """Remove files on all nodes at once."""

        def remove(_: Runtime, task: Task) -> None:
            paths = (f"{attempt.folder(task)}/{name}" for name in names[task.node_rank])
            self._transport(task.node).run(("rm", "-f", "--", *paths), timeout_s=COMMAND_S)

        self._ask_all(
            [task for task in self._reachable(attempt) if names.get(task.node_rank)], remove
        )

    def ask(self, argv: Mapping[str, tuple[str, ...]], timeout_s: float) -> list[Answer[Completed]]:
        return self._fleet.ask(argv, timeout_s)

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
