"""One attempt of a trial: what it needs and gets of a scheduler, its tasks, and its outcome."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from orchestrator.model.cluster import LOG_BYTES
from orchestrator.model.plan import Seat, Task
from orchestrator.model.problem import Problem


@dataclass(frozen=True, slots=True)
class Request:
    """The resources that one attempt needs."""

    trial: str
    nodes: int
    gpus_per_node: int  # 0 where ranks compute on CPUs
    data: tuple[str, ...]  # names of the data sets that every node must have
    ports: tuple[int, ...]  # candidates for the port at which ranks meet, the best first
    time_s: float  # that the attempt may take, from its start to the end of its program
    prefer: tuple[str, ...] = ()  # names of nodes to take before others, the first ones first

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
    """A trial bound to an allocation: exactly what a gang is started from."""

    sweep: str
    trial: str
    number: int
    folders: Mapping[str, str]  # by node name, the one there with the raw logs of its tasks
    port: int
    tasks: tuple[Task, ...]
    log_rank: int = 0  # the node_rank whose task prints what is measured
    log_bytes: int = LOG_BYTES  # where a task's raw log is cut; no more of one is copied here
    seats: tuple[Seat, ...] = ()
    handle: str = ""
    image: str = ""  # what containers are started from: the id of an image, or its file
    images: Mapping[str, str] = field(default_factory=dict)  # ids by node, where they differ

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
    """Limits on the time and the log size of an attempt."""

    time_s: float  # from the opened gate to the end of the program
    stall_s: float  # without a new byte of any task's log
    grace_s: float  # between asking a program to end and insisting on it
    create_s: float  # until every task waits at its gate
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
    """The ends of all tasks of an attempt, leader first."""

    reason: str  # done, failed, stalled, stopped; else why the task ended that ended the others
    ends: tuple[TaskEnd, ...]
    first: TaskEnd | None = None  # it ended all others; None where they ended well or were told to

    @property
    def start_skew_s(self) -> float | None:
        """Return seconds from the first to the last opened gate; None unless all opened."""
        went = [end.went_at for end in self.ends if end.went_at is not None]
        return max(went) - min(went) if len(went) == len(self.ends) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of an attempt; the fields of its measurement are None where none was made.

    Args:
        lines: the first and the last one of its log that the throughput stands on, from 1.
        observed: by file, the sha256 of what was seen of the nodes meanwhile: r0.state, r0.gpus.
    """

    trial: str
    attempt: int
    state: str  # valid, invalid, failed, infra-lost or interrupted
    problems: tuple[Problem, ...]
    throughput: float | None  # samples per second of the gang
    sha256: str | None  # of the log that was measured
    lines: tuple[int, int] | None
    transport: str | None  # what the gang ran over, such as ``IB mlx5_0``
    provenance: Mapping[str, str]  # must agree within a case before its trials share a median
    port: int
    start_skew_s: float | None
    tasks: tuple[TaskEnd, ...]  # how each ended, with the sha256 of its raw log
    observed: Mapping[str, str] = field(default_factory=dict)
    marks: tuple[Problem, ...] = ()  # of the state of its nodes; it may be valid all the same
    beside: tuple[str, ...] = ()  # names of the trials that ran on other nodes meanwhile
    attempt_sha256: str = ""  # of the bytes of attempt.json; empty if unknown
    code: str = ""  # sha256 over the files of the program that judged it; empty if unknown
