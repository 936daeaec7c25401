"""Measurements of trials, and the result of a case over them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from statistics import median

from orchestrator.model.case import Case
from orchestrator.model.log import Rule, TracePoint
from orchestrator.model.problem import Problem
from orchestrator.model.telemetry import Energy, HeldClocks, MachineState

NOT_NEEDED = "not-needed"
"""The state of a trial that was not run, since its case had settled."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The bytes that a measurement came from.

    Args:
        lines: first and last one that the number stands on, counted from 1.
        digest: hash over the steps' times.
        words: hashes over losses and rates of steps, whatever times stand beside them.
    """

    log: str
    lines: tuple[int, int] | None
    sha256: str
    digest: str
    words: frozenset[bytes] = frozenset()


@dataclass(frozen=True, slots=True)
class Measurement:
    """The result of one trial.

    Args:
        state: valid; else failed, invalid, infra-lost, interrupted, planned or not-needed.
        throughput: samples per second of the gang; None if the log cannot give it.
        rate: mean of the rates that the log itself prints; None if it prints none.
        marks: what a reader should know although it is valid.
        provenance: must agree within a case before its trials share a median.
        transport: what the gang ran over, such as ``IB mlx5_0``; must agree likewise.
        latency_s: seconds per optimizer step, where the log says them.
        memory_mib: the largest use of any GPU that the log shows, in MiB.
        nodes: that it ran on, leader first; empty where that is not known.
        machines: the state of each of them meanwhile; empty where nothing was seen of it.
        energy: of its GPUs over the window; None where it is not known of all.
        held: of its nodes whose clocks were held down; empty where none were.
        beside: names of the trials that ran on other nodes meanwhile.
        trace: the rates that its log prints, in few points.
        window: first and last iteration that the number was taken from; None where none was.
        rule: how it was taken; None where no log was read.
        measured_s: between both ends of the window, by the log's clock; None without one.
    """

    trial: str
    repeat: int
    attempt: int
    state: str
    throughput: float | None
    rate: float | None
    problems: tuple[Problem, ...]
    marks: tuple[Problem, ...]
    evidence: Evidence | None
    provenance: Mapping[str, str]
    transport: str = "-"
    latency_s: float | None = None
    memory_mib: int | None = None
    nodes: tuple[str, ...] = ()
    machines: tuple[MachineState, ...] = ()
    energy: Energy | None = None
    held: tuple[HeldClocks, ...] = ()
    beside: tuple[str, ...] = ()
    trace: tuple[TracePoint, ...] = ()
    window: tuple[int, int] | None = None
    rule: Rule | None = None
    measured_s: float | None = None

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
    """It covers the true median, speedup or difference with this probability."""

    low: float
    high: float
    coverage: float


@dataclass(frozen=True, slots=True)
class Statistics:
    """The valid trials of a case, summed up; rates in samples per second.

    Args:
        spread: (max - min) / median; None of a single trial, which has none.
        interval: None of a single trial.
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
        settled: whether the interval is as narrow as was asked for; None where nothing was.
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
        """Return the median seconds per optimizer step over the valid trials; None without any."""
        latencies = [trial.latency_s for trial in self.valid if trial.latency_s is not None]
        return median(latencies) if latencies else None

    @property
    def energy_per_sample(self) -> float | None:
        """Return the median joules per sample over the valid trials; None without any."""
        known = [trial.energy.per_sample for trial in self.valid if trial.energy is not None]
        return median(known) if known else None

    @property
    def energy_source(self) -> str | None:
        """Return the sources of the valid trials' joules: ``counter``, ``power``, or both."""
        sources = {trial.energy.source for trial in self.valid if trial.energy is not None}
        return " ".join(sorted(sources)) or None

    @property
    def memory_mib(self) -> int | None:
        """Return the largest use of a GPU in the valid trials' logs, in MiB; None without any."""
        used = [trial.memory_mib for trial in self.valid if trial.memory_mib is not None]
        return max(used, default=None)

    @property
    def peak_memory_mib(self) -> float | None:
        """Return the same, or what the drivers reported if no log shows any."""
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
    """The speed of a node beside others, by the cases that ran on single nodes or pairs.

    Args:
        speed: over that of the median node; 0.95 is 5 % slower.
        is_slow: True if it is slower than the others by more than chance.
    """

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
