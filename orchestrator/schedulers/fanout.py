"""The nodes of an inventory, over SSH or on this machine, as a scheduler."""

import contextlib
import posixpath
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from orchestrator import errors, nodeset
from orchestrator.deadlines import COMMAND_S, REMOVE_S
from orchestrator.fleet import Answer, Fleet, ask_all, settled
from orchestrator.model.attempt import Allocation, Attempt, GangEnd, Limits, Request
from orchestrator.model.cluster import Cluster
from orchestrator.model.image import Program
from orchestrator.model.plan import Seat, Task
from orchestrator.model.site import Finding
from orchestrator.retries import REPEATABLE
from orchestrator.schedulers import Seen, Watch, _preflight, addresses, locks, strays
from orchestrator.schedulers.gangs import Gangs
from orchestrator.state import lock
from orchestrator.transports import Completed

# Prints the rows of the kernel's tables, which are long on a busy node, that listen at a port.
LISTENING = "^ *[0-9]+: [0-9A-F]+:{port:04X} [0-9A-F]+:[0-9A-F]+ 0A "
SOCKETS = ("/proc/net/tcp", "/proc/net/tcp6")
# $1: a log that is nowhere else, or nothing. A folder or a link in its place is no log.
FORGET = """
[ -f "$1" ] && [ ! -L "$1" ] && exit 0
rm -rf -- "$2" && rmdir -- "$3" "$4" "$5" 2>/dev/null
true
"""
# $1: the folder of a sweep's attempts. Prints them, such as `1n1g-r50_b256_amp_1/a2`.
ATTEMPTS = (
    'cd -- "$1" 2>/dev/null && for path in */a*; do [ -d "$path" ] && echo "$path"; done; true'
)


class Fanout:
    """Nodes in the inventory's order; a node runs one attempt at a time.

    Args:
        state: the state folder.
        stopping: polled while a gang runs; once true, the gang is ended.
    """

    def __init__(self, fleet: Fleet, state: Path, stopping: Callable[[], bool]) -> None:
        self._fleet, self._state = fleet, state
        self._here = frozenset(node.name for node in fleet.cluster.members if node.is_here)
        self._seats = places(fleet.cluster, state)
        owner = lock.own(state).record()
        runtimes = {name: fleet.runtime(name, owner) for name in fleet.transports}
        self._stopping = stopping
        self._gangs = Gangs(runtimes, self.is_ending)
        self._runtimes = runtimes
        self._locks: locks.Locks | None = None
        self._lock, self._searching = threading.Lock(), threading.Lock()
        self._taken: dict[str, int] = {}  # port by node

    @classmethod
    def of(cls, cluster: Cluster, state: Path, stopping: Callable[[], bool]) -> "Fanout":
        return cls(Fleet.of(cluster), state, stopping)

    def __enter__(self) -> "Fanout":
        return self

    def __exit__(self, *error: object) -> None:
        self._gangs.close()
        self._fleet.__exit__(*error)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        with locks.held(self._fleet, self._state) as self._locks:
            yield

    def is_ending(self) -> bool:
        """Return True if gangs are to be ended: on request, or since a lock is lost."""
        return self._stopping() or (self._locks is not None and self._locks.are_lost)

    def check(self) -> None:
        if self._locks is not None:
            self._locks.check()

    def preflight(self, name: str, program: Program) -> None:
        """Check that every node with an engine has the image."""
        _preflight.same_image(self._fleet, name, program)

    def others(self, ours: Collection[str], inventory: str) -> tuple[Finding, ...]:
        """Look at containers and processes."""
        return strays.others(self._fleet, ours, inventory)

    @property
    def lanes(self) -> int:
        """Number of machines; nodes that are this machine count once."""
        return len(self._seats) - max(len(self._here) - 1, 0)

    @property
    def nodes(self) -> int:
        """Number of nodes in the inventory: a silent node may be back for the next attempt."""
        return len(self._seats)

    def allocate(self, request: Request) -> Allocation | None:
        """Take the first free nodes that fit, and a port that is free on all of them."""
        if len(request.seated(self._seats)) < request.nodes:
            raise errors.UnfitError(
                f"{request.nodes} nodes with {request.gpus_per_node} GPUs are needed;"
                f" {len(request.seated(self._seats))} fit",
                code="NO-NODES",
                trial=request.trial,
                fix="leave out fewer nodes with --nodes",
            )
        with self._searching:
            with self._lock:
                gone = {*self._taken, *(self._here if self._here & {*self._taken} else ())}
                free = [seat for seat in self._seats if seat.node not in gone]
                ours = {self._taken[node] for node in self._here & {*self._taken}}  # one machine
            given = request.seated(free)
            ports = [port for port in request.ports if port not in ours]
            if len(given) < request.nodes or not ports:
                return None
            port = self._free_port(request, given, ports)
            self._take(given, port)
        return Allocation(given, port)

    def reclaim(self, attempt: Attempt) -> Attempt:
        """Take the attempt's nodes again, without those left out by the inventory or --nodes."""
        known = {seat.node: seat.address for seat in self._seats}
        for seat in attempt.seats:
            now = known.get(seat.node, seat.address)
            if now != seat.address:
                raise errors.UnfitError(
                    f"it was started on node {seat.node} at {seat.address}; the inventory gives"
                    f" that node the address {now}",
                    code="NODE-MOVED",
                    node=seat.node,
                    trial=attempt.trial,
                    fix="restore the node's name or address until `dlperf-orch stop` has ended what"
                    " it runs",
                )
        tasks = tuple(task for task in attempt.tasks if task.node in known)
        kept = tuple(seat for seat in attempt.seats if seat.node in known)
        self._take(kept, attempt.port)
        return replace(attempt, tasks=tasks, seats=kept)

    def release(self, allocation: Allocation) -> None:
        with self._lock:
            for seat in allocation.seats:
                self._taken.pop(seat.node, None)

    def launch(self, attempt: Attempt, limits: Limits) -> bool:
        return self._gangs.launch(attempt, limits)

    def wait(self, attempt: Attempt, limits: Limits, watch: Watch) -> GangEnd:
        """Wait for the gang; give up a node after 12 s of silence; see ``Gangs.wait``."""
        return self._gangs.wait(attempt, limits, watch)

    def adoptable(self, attempt: Attempt) -> bool:
        return self._gangs.adoptable(attempt)

    def clear(self, attempt: Attempt) -> None:
        """End every process of the attempt on nodes that the inventory has."""
        self._gangs.clear(replace(attempt, tasks=tuple(self._reachable(attempt))))

    def strays(self, sweeps: Collection[str]) -> Mapping[str, tuple[str, ...]]:
        """End what runs for these sweeps on any node, found by their ids."""
        return strays.end(self._fleet, self._seats, tuple(sweeps)) if sweeps else {}

    def seen(self, attempt: Attempt) -> list[Answer[Seen]]:
        """Return the states of tasks, by their nodes' runtimes, and the sizes of their logs."""
        tasks = {task.node: task for task in attempt.tasks}
        return ask_all(list(tasks), lambda node: self._inspect(attempt, tasks[node]))

    def read(self, attempt: Attempt, task: Task, name: str, offset: int = 0) -> bytes | None:
        """Read a file, again if the connection was lost."""
        path = f"{attempt.folder(task)}/{name}"
        transport = self._fleet.transports[task.node]
        return REPEATABLE.call(lambda: transport.get(path, offset, own=True))

    def write(self, attempt: Attempt, files: Mapping[int, Mapping[str, bytes]]) -> None:
        """Write files on all nodes at once."""
        tasks = {task.node: task for task in attempt.tasks if task.node_rank in files}

        def put(node: str) -> bool:
            for name, content in files[tasks[node].node_rank].items():
                path = f"{attempt.folder(tasks[node])}/{name}"
                self._fleet.transports[node].put(content, path)
            return True

        settled(ask_all(list(tasks), put))

    def remove(self, attempt: Attempt, names: Mapping[int, Collection[str]]) -> None:
        """Remove files on all nodes at once."""
        argv = {
            task.node: (
                *("rm", "-f", "--"),
                *(f"{attempt.folder(task)}/{name}" for name in names[task.node_rank]),
            )
            for task in self._reachable(attempt)
            if names.get(task.node_rank)
        }
        self._fleet.ask(argv, COMMAND_S)

    def forget(self, attempt: Attempt, fetched: Collection[int]) -> None:
        """Remove folders on all nodes at once; where a node is silent, `clean` does it later."""
        tasks = [task for task in self._reachable(attempt) if task.node not in self._here]
        self._fleet.ask({task.node: _forget(attempt, task, fetched) for task in tasks}, REMOVE_S)

    def attempts(self, sweep: str) -> set[tuple[str, int]]:
        """List attempts with a folder or a container on any node that answers."""
        argv = {
            seat.node: ("sh", "-c", ATTEMPTS, "sh", f"{seat.root}/{sweep}/attempts")
            for seat in self._seats
            if seat.node not in self._here
        }
        answers = self._fleet.ask(argv, COMMAND_S)
        names = [
            name
            for answer in answers
            if answer.value
            for name in answer.value.stdout.decode(errors="replace").split()
        ]
        label = f"{strays.LABEL}={sweep}"
        looks = ask_all(
            [*self._fleet.engines], lambda at: self._fleet.containers[at].labelled(label)
        )
        labels = (container.labels for look in looks for container in look.value or ())
        names += [f"{of.get('dlperf.trial')}/a{of.get('dlperf.attempt')}" for of in labels]
        pairs = (name.rpartition("/a") for name in names)
        return {(trial, int(number)) for trial, _, number in pairs if number.isdecimal()}

    def ask(self, argv: Mapping[str, tuple[str, ...]], timeout_s: float) -> list[Answer[Completed]]:
        return self._fleet.ask(argv, timeout_s)

    def push(self, files: Mapping[str, bytes], folder: str) -> None:
        """Write the files on every node that is not this machine."""

        def send(node: str) -> bool:
            for name, content in files.items():
                self._fleet.transports[node].put(content, f"{folder}/{name}")
            return True

        settled(ask_all([name for name in self._fleet.transports if name not in self._here], send))

    def _reachable(self, attempt: Attempt) -> list[Task]:
        return [task for task in attempt.tasks if task.node in self._fleet.transports]

    def _take(self, seats: Iterable[Seat], port: int) -> None:
        with self._lock:
            self._taken.update((seat.node, port) for seat in seats)

    def _inspect(self, attempt: Attempt, task: Task) -> Seen:
        state = self._runtimes[task.node].inspect(attempt, task)
        path = f"{attempt.folder(task)}/r{task.node_rank}.log"
        done = self._fleet.transports[task.node].run(("wc", "-c", path), timeout_s=COMMAND_S)
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


def places(cluster: Cluster, state: Path) -> tuple[Seat, ...]:
    """Return the nodes of an inventory as seats, with the folder that sweeps have there."""
    here, at = str((state / "sweeps").resolve()), addresses.numbers(cluster.members)
    return tuple(
        node.seat(here if node.is_here else node.folder, at[node.name]) for node in cluster.members
    )


def _forget(attempt: Attempt, task: Task, fetched: Collection[int]) -> tuple[str, ...]:
    folder, log = attempt.folder(task), f"r{task.node_rank}.log"
    only = "" if task.node_rank in fetched else f"{folder}/{log}"
    trial = posixpath.dirname(folder)
    above = (trial, posixpath.dirname(trial), posixpath.dirname(posixpath.dirname(trial)))
    return ("sh", "-c", FORGET, "sh", only, folder, *above)
