"""The plan: every trial in order, bound to no node yet; and what a node starts once it is."""

from collections.abc import Mapping
from dataclasses import dataclass

from orchestrator.model.case import Case
from orchestrator.model.experiment import Method


@dataclass(frozen=True, slots=True)
class Seat:
    """A node that a scheduler can give, or one node's place in a gang.

    Args:
        gpus: indices, in the order in which ranks take them.
        data: data sets by name: paths on the node.
        root: the folder there in which sweeps have theirs; empty where nothing is started.
        gid_index, traffic_class: of RDMA over Ethernet; None leaves NCCL its own.
    """

    node: str
    address: str
    gpus: tuple[int, ...]
    interface: str | None
    hcas: tuple[str, ...]
    data: Mapping[str, str]
    root: str = ""
    gid_index: int | None = None
    traffic_class: int | None = None


@dataclass(frozen=True, slots=True)
class Placement:
    """The nodes of a gang, leader first, its port, and where its program lies on every node."""

    seats: tuple[Seat, ...]
    gpus_per_node: int
    port: int
    code: str
    python: str

    def task(self, node_rank: int, argv: tuple[str, ...]) -> "Task":
        seat = self.seats[node_rank]
        return Task(seat.node, node_rank, argv, {}, (), seat.gpus)


@dataclass(frozen=True, slots=True)
class Command:
    """A program's command line; ``agent``, if any, starts one process per GPU."""

    agent: tuple[str, ...]
    program: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Mount:
    """A folder of the node, seen by the task."""

    source: str
    target: str
    read_only: bool


@dataclass(frozen=True, slots=True)
class Task:
    """The one container or process that a node starts; it may fork many ranks.

    Args:
        service: it serves the other tasks of its gang and is ended when they have ended.
        files: names, in the attempt's folder, of what it needs there before it starts.
        capabilities: of Linux, that its container needs beyond those of the inventory.
    """

    node: str
    node_rank: int
    argv: tuple[str, ...]
    env: Mapping[str, str]
    mounts: tuple[Mount, ...]
    gpus: tuple[int, ...]
    service: bool = False
    files: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Trial:
    """One trial: its case, and where its log will lie.

    Args:
        ordinal: its place among all trials; what its ports begin at is reckoned from it.
        name_of_case: what the benchmark calls the case; empty where it has no name of its own.
        canary: when a canary is measured: start, middle or end; empty for a trial of a median.
    """

    name: str
    repeat: int
    case: Case
    log: str
    ordinal: int
    log_rank: int = 0
    name_of_case: str = ""
    canary: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """Every trial of an experiment on a cluster, in the order in which they begin."""

    experiment: str
    workload: str
    image: str
    image_digest: str
    cluster: str
    method: Method
    trials: tuple[Trial, ...]

    @property
    def by_case(self) -> Mapping[Case, tuple[Trial, ...]]:
        """Return each case's trials by repeat, without canaries."""
        grouped: dict[Case, list[Trial]] = {}
        for trial in self.trials:
            if not trial.canary:
                grouped.setdefault(trial.case, []).append(trial)
        return {
            case: tuple(sorted(trials, key=lambda trial: trial.repeat))
            for case, trials in grouped.items()
        }
