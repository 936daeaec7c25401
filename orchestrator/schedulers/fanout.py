"""The nodes of an inventory, over SSH or on this machine, as a scheduler."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from orchestrator import errors
from orchestrator.deadlines import COMMAND_S
from orchestrator.fleet import Fleet, ask_all
from orchestrator.model.attempt import Allocation, Attempt, Request
from orchestrator.schedulers import addresses, locks, strays
from orchestrator.schedulers.scheduler import Scheduler, choose_port
from orchestrator.state import lock

# $1: the folder of a sweep's attempts. Prints them, such as `1n1g-r50_b256_amp_1/a2`.
ATTEMPTS = (
    'cd -- "$1" 2>/dev/null && for path in */a*; do [ -d "$path" ] && echo "$path"; done; true'
)


class Fanout(Scheduler):
    """Nodes in the inventory's order; a node runs one attempt at a time."""

    def __init__(self, fleet: Fleet, state: Path, stopping: Callable[[], bool]) -> None:
        owner = lock.own(state).record()
        runtimes = {name: fleet.runtime(name, owner) for name in fleet.transports}
        seats = addresses.seats(fleet.cluster, state)
        super().__init__(fleet, seats, runtimes.__getitem__, fleet.transports.get, self.is_ending)
        self._state, self._is_stopped = state, stopping
        self._here = frozenset(node.name for node in fleet.cluster.members if node.is_here)
        self._searching = threading.Lock()

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        with locks.held(self._fleet, self._state) as self._intrusions:
            yield

    def is_ending(self) -> bool:
        """Return True if gangs are to be ended: on request, or since a lock is lost."""
        return self._is_stopped() or bool(self._intrusions)

    @property
    def lanes(self) -> int:
        """Number of machines; nodes that are this machine count once."""
        return len(self._seats) - max(len(self._here) - 1, 0)

    def allocate(self, request: Request) -> Allocation | None:
        """Take the first free nodes that fit, and a port that is free on all of them."""
        if (fit := len(request.seated(self._seats))) < request.nodes:
            raise errors.UnfitError(
                f"{request.nodes} nodes with {request.gpus_per_node} GPUs are needed; {fit} fit",
                code="NO-NODES",
                trial=request.trial,
                fix="leave out fewer nodes with --nodes",
            )
        with self._searching:
            with self._lock:
                ours = {self._taken[node] for node in self._here & {*self._taken}}  # one machine
                gone = {*self._taken, *(self._here if ours else ())}
            given = request.seated(seat for seat in self._seats if seat.node not in gone)
            ports = [port for port in request.ports if port not in ours]
            if len(given) < request.nodes or not ports:
                return None
            port = choose_port(request, ports, self._listening([seat.node for seat in given]))
            self._take(given, port)
        return Allocation(given, port)

    def reclaim(self, attempt: Attempt) -> Attempt:
        """Take the attempt's nodes again, without those left out by the inventory or --nodes.

        A node that the inventory gives another address now is left out too.
        """
        known = {(seat.node, seat.address) for seat in self._seats}
        kept = tuple(seat for seat in attempt.seats if (seat.node, seat.address) in known)
        nodes = {seat.node for seat in kept}
        tasks = tuple(task for task in attempt.tasks if task.node in nodes)
        self._take(kept, attempt.port)
        return replace(attempt, tasks=tasks, seats=kept)

    def attempts(self, sweep: str) -> set[tuple[str, int]]:
        """List attempts with a folder or a container on any node that answers."""
        argv = {
            seat.node: ("sh", "-c", ATTEMPTS, "sh", f"{seat.root}/{sweep}/attempts")
            for seat in self._seats
            if seat.node in self._elsewhere
        }
        names: list[str] = []
        for answer in self._fleet.ask(argv, COMMAND_S):
            if answer.value:
                names += answer.value.stdout.decode(errors="replace").split()
        label, containers = f"{strays.LABEL}={sweep}", self._fleet.containers
        for look in ask_all(list(containers), lambda at: containers[at].labelled(label)):
            labels = [container.labels for container in look.value or ()]
            names += [f"{of.get('dlperf.trial')}/a{of.get('dlperf.attempt')}" for of in labels]
        pairs = (name.rpartition("/a") for name in names)
        return {(trial, int(number)) for trial, _, number in pairs if number.isdecimal()}
