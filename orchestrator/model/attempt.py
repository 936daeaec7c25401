"""One attempt of a trial: what it needs and gets of a scheduler, its tasks, and its outcome."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from orchestrator.model.cluster import LOG_BYTES
from orchestrator.model.plan import Seat, Task
from orchestrator.model.problem import Problem


@dataclass(frozen=True, slots=True)
class Request:
    """The resources that one attempt needs.

    Args:
        gpus_per_node: 0 where ranks compute on CPUs.
        data: names of the data sets that every node must have.
        ports: candidates for the port at which ranks meet, the best first.
        time_s: how long the attempt may take, from its start to the end of its program.
        prefer: names of nodes, those to take first at the beginning; others come after them.
    """

    trial: str
    nodes: int
    gpus_per_node: int
    data: tuple[str, ...]
    ports: tuple[int, ...]
    time_s: float
    prefer: tuple[str, ...] = ()

    def seated(self, seats: Iterable[Seat]) -> tuple[Seat, ...]:
        """Return the first seats that fit, each with the GPUs to use; too few if not enough fit.

        The preferred ones are taken first; they stand in the order of ``seats`` all the same.
        """
        fitting = [
            replace(seat, gpus=seat.gpus[: self.gpus_per_node])
            for seat in seats
            if len(seat.gpus) >= self.gpus_per_node and {*self.data} <= {*seat.data}
        ]
        place = {node: index for index, node in enumerate(self.prefer)}
        by_preference = sorted(fitting, key=lambda seat: place.get(seat.node, len(place)))
        taken = {seat.node for seat in by_preference[: self.nodes]}
        return tuple(seat for seat in fitting if seat.node in taken)


@dataclass(frozen=True, slots=True)
class Allocation:
    """Nodes in rank order, and a port that is free on all of them."""

    seats: tuple[Seat, ...]
    port: int
    handle: str = ""  # the scheduler's own id of it, such as a job id


# Signals that a program's own fault raises. ABORT alone may also follow from a lost peer: NCCL's
# watchdog and a failed CHECK of glog call abort().
CRASHES: Mapping[int, str] = {
    **{4: "SIGILL", 5: "SIGTRAP", 7: "SIGBUS", 8: "SIGFPE", 11: "SIGSEGV", 31: "SIGSYS"},
    6: "SIGABRT",
}
ABORT = 6


@dataclass(frozen=True, slots=True)
class Attempt:
    """A trial bound to an allocation: exactly what a gang is started from.

    Args:
        folders: by node name, the folder there that holds the raw logs of its tasks.
        log_rank: the node_rank whose task prints what is measured.
        log_bytes: at which size a task's raw log is cut; never more of one is copied here.
        image: what containers are started from: the id of an image, or its file.
        images: by node name, its id where the node's engine calls it otherwise.
    """

    sweep: str
    trial: str
    number: int
    folders: Mapping[str, str]
    port: int
    tasks: tuple[Task, ...]
    log_rank: int = 0
    log_bytes: int = LOG_BYTES
    seats: tuple[Seat, ...] = ()
    handle: str = ""
    image: str = ""
    images: Mapping[str, str] = field(default_factory=dict)

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(task.node for task in self.tasks)

    @property
    def allocation(self) -> Allocation:
        return Allocation(self.seats, self.port, self.handle)

    def folder(self, task: Task) -> str:
        return self.folders[task.node]

    def token(self, task: Task) -> str:
        """Return the task's name, unique among all attempts: ``dlp-SWEEP-TRIAL-aN-rRANK``."""
        return f"dlp-{self.sweep}-{self.trial}-a{self.number}-r{task.node_rank}"


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on the time and the log size of an attempt.

    Args:
        time_s: from the opened gate to the end of the program.
        stall_s: without a new byte of any task's log.
        grace_s: between asking a program to end and insisting on it.
        create_s: until every task waits at its gate.
    """

    time_s: float
    stall_s: float
    grace_s: float
    create_s: float
    log_bytes: int = LOG_BYTES


@dataclass(frozen=True, slots=True)
class TaskEnd:
    """The end of one task.

    Args:
        status: the program's exit status, 128 + n for signal n; None if it is not known.
        why: the supervisor's exit reason: exited, deadline, stopped, log-too-large, log-replaced.
            Without one: lost, rebooted, unreachable, of containers killed, oom, docker-... and
            of steps node-down. Preempted: Slurm asked its supervisor to stop, or ended it.
            ``measuring/endings.py`` says what each means for the trial.
        went_at: when its gate opened, in seconds since the epoch; None if it never did.
    """

    node: str
    node_rank: int
    status: int | None
    why: str
    size_bytes: int
    sha256: str
    went_at: float | None


@dataclass(frozen=True, slots=True)
class GangEnd:
    """The ends of all tasks of an attempt, leader first.

    Args:
        reason: done, failed, stalled, stopped; else why the task ended that ended the others.
        first: the end that ended all others; None where they ended well or were told to.
    """

    reason: str
    ends: tuple[TaskEnd, ...]
    first: TaskEnd | None = None

    @property
    def start_skew_s(self) -> float | None:
        """Return seconds from the first to the last opened gate; None unless all opened."""
        went = [end.went_at for end in self.ends if end.went_at is not None]
        return max(went) - min(went) if len(went) == len(self.ends) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of an attempt; the fields of its measurement are None where none was made.

    Args:
        state: valid, invalid, failed, infra-lost or interrupted.
        throughput: samples per second of the gang.
        sha256: of the log that was measured.
        lines: the first and the last one of it that the throughput stands on, counted from 1.
        transport: what the gang ran over, such as ``IB mlx5_0``.
        provenance: must agree within a case before its trials share a median.
        tasks: how each ended, with the sha256 of its raw log.
        observed: by file, the sha256 of what was seen of the nodes meanwhile: r0.state, r0.gpus.
        marks: of the state of its nodes; they do not keep it from being valid.
        beside: names of the trials that ran on other nodes meanwhile.
        attempt_sha256: of the bytes of attempt.json, which says what was started; empty if unknown.
        code: sha256 over the files of the program that judged it; empty if unknown.
    """

    trial: str
    attempt: int
    state: str
    problems: tuple[Problem, ...]
    throughput: float | None
    sha256: str | None
    lines: tuple[int, int] | None
    transport: str | None
    provenance: Mapping[str, str]
    port: int
    start_skew_s: float | None
    tasks: tuple[TaskEnd, ...]
    observed: Mapping[str, str] = field(default_factory=dict)
    marks: tuple[Problem, ...] = ()
    beside: tuple[str, ...] = ()
    attempt_sha256: str = ""
    code: str = ""
