"""A second scheduler, for tests: this machine's nodes, given as a site with a batch system does.

It gives the inventory's nodes in another order and under other addresses each time, sometimes not
now, and has the files of all ranks in one shared folder. What it gave is a job with a handle, told
by a file in that folder, which outlives whoever asked for it.
"""

import contextlib
import fcntl
import json
import os
import random
import secrets
import signal
import socket
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from orchestrator import errors
from orchestrator.fleet import Fleet
from orchestrator.model.attempt import Allocation, Attempt, Limits, Request
from orchestrator.model.cluster import Cluster
from orchestrator.model.plan import Seat
from orchestrator.model.site import Finding
from orchestrator.runtimes.process import ProcessRuntime
from orchestrator.schedulers import addresses, choice
from orchestrator.schedulers.scheduler import Scheduler
from orchestrator.transports.local import LocalTransport
from tests import processes

NOT_NOW = 0.3  # of the requests that could be granted

# By the environment: TINY_LANES, TINY_SEED, TINY_SHARED (the shared folder), and TINY_STUCK, the
# trial of which nothing can be ended.


class Tiny(Scheduler):
    """The local nodes of an inventory as jobs."""

    def __init__(self, cluster: Cluster, stopping: Callable[[], bool]) -> None:
        self._transports = {node.name: LocalTransport(node.name) for node in cluster.members}
        super().__init__(
            Fleet(cluster, self._transports),
            seats(cluster, Path()),
            {name: ProcessRuntime(at) for name, at in self._transports.items()}.__getitem__,
            self._transports.get,
            stopping,
        )
        self._dice = _dice()
        self._jobs_folder = _shared() / "jobs"
        self._jobs_folder.mkdir(parents=True, exist_ok=True)
        self._mine: dict[str, tuple[set[str], int]] = {}  # nodes and port by handle
        self._attempts: dict[str, Attempt] = {}
        self._door = threading.Lock()

    @property
    def lanes(self) -> int:
        """By the environment."""
        return int(os.environ.get("TINY_LANES", "1"))

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """One controller at a time."""
        with open(_shared() / "held", "w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise errors.StoreError("another controller is here", code="LOCKED") from error
            yield

    def others(
        self,
        ours: Collection[str],  # noqa: ARG002 - nobody else runs here
        inventory: str,  # noqa: ARG002 - nobody else runs here
    ) -> tuple[Finding, ...]:
        """Every machine is this one, which tests share."""
        return ()

    def allocate(self, request: Request) -> Allocation | None:
        """A job on any free nodes; None now and then although there are enough."""
        if len(request.seated(self._seats)) < request.nodes:
            raise errors.UnfitError("there are not so many nodes", code="NO-NODES")
        with self._door:
            self._cancel_unknown()
            taken = {node for nodes, _ in self._mine.values() for node in nodes}
            free = [seat for seat in self._seats if seat.node not in taken]
            self._dice.shuffle(free)
            given = request.seated(free)
            if len(given) < request.nodes or self._dice.random() < NOT_NOW:
                return None
            used = {port for _, port in self._mine.values()}
            ports = (port for port in request.ports if port not in used and _is_free(port))
            port = next(ports, None)
            if port is None:
                raise errors.UnfitError("no port is free", code="PORT-BUSY", trial=request.trial)
            handle = f"job-{secrets.token_hex(4)}"
            self._keep(handle, {seat.node for seat in given}, port)
        return Allocation(given, port, handle)

    def reclaim(self, attempt: Attempt) -> Attempt:
        """The job goes on; nodes that are left out this time stay with it."""
        assert attempt.handle.startswith("job-")
        nodes = {seat.node for seat in attempt.seats}
        with contextlib.suppress(FileNotFoundError):  # given back, and its attempt not closed
            nodes = set(json.loads((self._jobs_folder / attempt.handle).read_bytes()))
        names = {seat.node for seat in self._seats}
        tasks = tuple(task for task in attempt.tasks if task.node in names)
        kept = tuple(seat for seat in attempt.seats if seat.node in names)
        with self._door:
            self._keep(attempt.handle, nodes, attempt.port)
        self._attempts[attempt.handle] = attempt
        return replace(attempt, tasks=tasks, seats=kept)

    def release(self, allocation: Allocation) -> None:
        """The job loses these nodes, where nothing may run; it is over with its last one."""
        gone = {seat.node for seat in allocation.seats}
        attempt = self._attempts.pop(allocation.handle, None)
        if attempt is not None:
            mine = {attempt.token(task) for task in attempt.tasks if task.node in gone}
            assert not _running(mine), "nodes are given back while something runs there"
        with self._door:
            nodes, port = self._mine.pop(allocation.handle)
            left = nodes - gone
            if left:
                self._keep(allocation.handle, left, port)
            else:
                (self._jobs_folder / allocation.handle).unlink()

    def launch(self, attempt: Attempt, limits: Limits) -> bool:
        """As any gang; whose nodes they are is known from then on."""
        self._attempts[attempt.handle] = attempt
        return super().launch(attempt, limits)

    def clear(self, attempt: Attempt) -> None:
        """As any gang's, unless it is of the trial whose node is out of order."""
        if attempt.trial == os.environ.get("TINY_STUCK"):
            raise errors.LeftoverError("its node is out of order", code="LEFTOVER")
        super().clear(attempt)

    def strays(self, sweeps: Collection[str]) -> Mapping[str, tuple[str, ...]]:
        """Every process that names such a sweep."""
        found = _running({f"dlp-{sweep}-" for sweep in sweeps})
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return {self._seats[0].node: tuple(sorted({*found.values()}))} if found else {}

    def forget(self, attempt: Attempt, fetched: Collection[int]) -> None:
        """The files of each rank whose log is here or never was; the folder with the last one."""
        folder = Path(
            _shared(), "files", attempt.sweep, "attempts", attempt.trial, f"a{attempt.number}"
        )
        for rank in (task.node_rank for task in attempt.tasks):
            if rank in fetched or not (folder / f"r{rank}.log").exists():
                for path in folder.glob(f"r{rank}.*"):
                    path.unlink()
        if not list(folder.glob("r*")):
            (folder / "supervise.sh").unlink(missing_ok=True)
            for path in (folder, *folder.parents[:3]):
                with contextlib.suppress(OSError):  # others are there
                    path.rmdir()

    def attempts(self, sweep: str) -> set[tuple[str, int]]:
        """That have a folder in the shared one."""
        folders = (_shared() / "files" / sweep / "attempts").glob("*/a*")
        return {(folder.parent.name, int(folder.name[1:])) for folder in folders}

    def _keep(self, handle: str, nodes: set[str], port: int) -> None:
        self._mine[handle] = nodes, port
        aside = self._jobs_folder / f".{handle}"
        aside.write_text(json.dumps(sorted(nodes)))
        aside.rename(self._jobs_folder / handle)

    def _cancel_unknown(self) -> None:
        """Jobs that nobody reclaimed before he asked for more: who had them never wrote so down."""
        for path in self._jobs_folder.glob("job-*"):
            if path.name not in self._mine:
                path.unlink()


def reach(cluster: Cluster, state: Path, stopping: Callable[[], bool]) -> Scheduler:  # noqa: ARG001 - nothing is kept there
    """Stands where ``orchestrator.schedulers.choice.reach`` stood."""
    return Tiny(cluster, stopping)


def seats(cluster: Cluster, state: Path) -> tuple[Seat, ...]:  # noqa: ARG001 - nothing is kept there
    """The inventory's nodes in an order of the moment, under addresses of the moment."""
    dice = _dice()
    last = dice.sample(range(2, 250), len(cluster.members))
    root = str(_shared() / "files")
    found = [
        replace(node.seat(root), address=f"127.0.0.{number}")
        for node, number in zip(cluster.members, last, strict=True)
    ]
    dice.shuffle(found)
    return tuple(found)


def install() -> None:
    """Take the place of what the program reaches nodes by."""
    choice.reach, addresses.seats = reach, seats


def _shared() -> Path:
    return Path(os.environ["TINY_SHARED"])


def _dice() -> random.Random:
    """Others each time, and all of a test the same again for its TINY_SEED."""
    runs = _shared() / "runs"
    with open(runs, "a") as file:
        file.write(".")
    return random.Random(f"{os.environ['TINY_SEED']} {runs.stat().st_size}")


def _is_free(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_server(("", port)):
        return True
    return False


def _running(marks: set[str]) -> dict[int, str]:
    """By pid, what a process says it is of, of those whose word begins so."""
    found: dict[int, str] = {}
    for path in processes.files("environ"):
        with contextlib.suppress(OSError):
            words = path.read_bytes().decode(errors="replace").split("\0")
            said = (word.partition("=")[2] for word in words if word.startswith("DLPERF_"))
            mine = next((word for word in said if word.startswith(tuple(marks))), "")
            if mine:
                found[int(path.parent.name)] = mine
    return found
