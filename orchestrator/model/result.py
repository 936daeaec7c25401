"""Measurements of trials, and the result of a case over them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from statistics import median

from orchestrator.model.case import Case
from orchestrator.model.log import TrainingLog
from orchestrator.model.problem import Problem
from orchestrator.model.telemetry import Energy, HeldClocks, MachineState

NOT_NEEDED = "not-needed"
"""The state of a trial that was not run, since its case had settled."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """The result of one trial.

    Args:
        state: valid; else failed, invalid, infra-lost, interrupted, planned or not-needed.
        throughput: samples per second of the gang; None if the log cannot give it.
        marks: what a reader should know although it is valid.
        provenance: must agree within a case before its trials share a median.
        path: of its log, in reports.
        log: as it was read, by the rule that made the number; None if none was.
        transport: what the gang ran over, such as ``IB mlx5_0``; must agree likewise.
        nodes: leader first; empty if unknown.
        machines: the observed state of its nodes meanwhile.
        energy: of its GPUs over the window; None unless it is known of all.
        held: of its nodes, those whose clocks were held down.
        beside: names of the trials that ran on other nodes meanwhile.
    """

    trial: str
    repeat: int
    attempt: int
    state: str
    throughput: float | None
    problems: tuple[Problem, ...]
    marks: tuple[Problem, ...] = ()
    provenance: Mapping[str, str] = field(default_factory=dict)
    path: str = ""
    log: TrainingLog | None = None
    transport: str = "-"
    nodes: tuple[str, ...] = ()
    machines: tuple[MachineState, ...] = ()
    energy: Energy | None = None
    held: tuple[HeldClocks, ...] = ()
    beside: tuple[str, ...] = ()

    @property
    def counts_or_rests(self) -> bool:
        """Return True if the trial is valid, or not needed since its case has settled."""
        return self.state in ("valid", NOT_NEEDED)

    def with_problems(self, problems: Iterable[Problem]) -> "Measurement":
        """Return a copy with these problems too; any problem makes a valid trial invalid."""
        every = (*self.problems, *problems)
        state = "invalid" if every and self.state == "valid" else self.state
        return replace(self, state=state, problems=every)


@dataclass(frozen=True, slots=True)
class Interval:
    """Bounds that contain the true median, speedup or difference with this probability."""

    low: float
    high: float
    coverage: float


@dataclass(frozen=True, slots=True)
class Statistics:
    """The valid trials of a case, summed up; rates in samples per second.

    Args:
        spread: (max - min) / median; like the interval, None of a single trial.
    """

    n: int
    median: float
    mean: float
    low: float
    high: float
    spread: float | None
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class Result:
    """A case and everything measured of it.

    Args:
        statistics: None without a valid trial.
        speedup: over the 1x1 case that is equal in everything but placement; None without it.
        efficiency: speedup / world_size; None likewise.
        settled: True if the interval is as narrow as was requested; None without a request.
        speedup_interval: None where either median has no interval.
    """

    case: Case
    trials: tuple[Measurement, ...]
    statistics: Statistics | None
    speedup: float | None
    efficiency: float | None
    marks: tuple[Problem, ...]
    settled: bool | None = None
    speedup_interval: Interval | None = None

    @property
    def valid(self) -> list[Measurement]:
        return [trial for trial in self.trials if trial.state == "valid"]

    @property
    def median(self) -> float | None:
        return self.statistics.median if self.statistics else None

    @property
    def latency_s(self) -> float | None:
        """Return the median seconds per optimizer step over the valid trials."""
        logs = [trial.log for trial in self.valid if trial.log]
        latencies = [log.latency_s for log in logs if log.latency_s is not None]
        return median(latencies) if latencies else None

    @property
    def energy_per_sample(self) -> float | None:
        """Return the median joules per sample over the valid trials."""
        known = [trial.energy.per_sample for trial in self.valid if trial.energy is not None]
        return median(known) if known else None

    @property
    def energy_source(self) -> str | None:
        """Return the sources of the valid trials' joules: ``counter``, ``power``, or both."""
        sources = {trial.energy.source for trial in self.valid if trial.energy is not None}
        return " ".join(sorted(sources)) or None

    @property
    def memory_mib(self) -> int | None:
        """Return the largest use of a GPU in the valid trials' logs."""
        logs = [trial.log for trial in self.valid if trial.log]
        return max((log.memory_mib for log in logs if log.memory_mib is not None), default=None)

    @property
    def peak_memory_mib(self) -> float | None:
        """Return the largest use of a GPU by the logs, else by the drivers."""
        states = (state for trial in self.valid for state in trial.machines)
        seen = (it.memory_peak_mib for it in states if it.memory_peak_mib is not None)
        return max(seen, default=None) if self.memory_mib is None else self.memory_mib

    @property
    def transport(self) -> str:
        """Return the transports of the valid trials; without a valid one, of all trials."""
        transports = dict.fromkeys(trial.transport for trial in self.valid or self.trials)
        return " or ".join(transport for transport in transports if transport != "-") or "-"


@dataclass(frozen=True, slots=True)
class NodeSpeed:
    """The speed of a node over that of the median node; 0.95 is 5 % slower."""

    node: str
    trials: int
    speed: float
    is_slow: bool = False


@dataclass(frozen=True, slots=True)
class Watched:
    """The canary of a sweep: one case measured now and again, outside of the medians.

    Args:
        places: when each of the trials was measured: start, middle or end.
        drift: (max - min) / median of its valid trials; None with fewer than two.
        bound: the drift from which on it is marked.
    """

    case: Case
    places: tuple[str, ...]
    trials: tuple[Measurement, ...]
    drift: float | None
    bound: float
    marks: tuple[Problem, ...]
