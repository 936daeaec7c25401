"""The state of a node beside a trial: moment by moment, and summed up over what was measured."""

from dataclasses import dataclass
from typing import Literal

Span = Literal["window", "run"]
"""The time that values cover: the measured window, or the whole run if the window is unknown."""
MARKS = frozenset({"THROTTLED", "ALIEN-PROCESS", "CPU-LOADED"})
"""Marks that a trial gets for the state of its nodes."""
# The software power cap is normal under full load, and so are idle clocks and those somebody set.
HARMFUL = frozenset(
    {"hw_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown", "sw_thermal_slowdown"}
)
"""Limits that hold a GPU's clocks down and spoil a number, by NVIDIA's names."""


@dataclass(frozen=True, slots=True)
class GpuMoment:
    """One GPU at one moment, by the node's clock; None where the driver gives no value.

    Args:
        limits: what holds its clocks down, by NVIDIA's names; ``gpu_idle`` and others among them.
        slowed_s, energy_j: under thermal and brake limits, and used, since the driver was loaded.
    """

    at_s: float
    index: int
    sm_mhz: float | None = None
    memory_mhz: float | None = None
    power_w: float | None = None
    temperature_c: float | None = None
    utilisation_pct: float | None = None
    memory_mib: float | None = None
    limits: tuple[str, ...] | None = None
    slowed_s: float | None = None
    energy_j: float | None = None


@dataclass(frozen=True, slots=True)
class HostMoment:
    """A node at one moment; seconds are processor time since it was booted.

    Args:
        all_s: of all kinds, also idle: it grows by one second a second for each processor.
        task_s: of the task's living processes; None where they were not counted.
    """

    at_s: float
    all_s: float
    busy_s: float
    steal_s: float
    task_s: float | None
    load: float | None


@dataclass(frozen=True, slots=True)
class ProcessMoment:
    """A process that is not of the task.

    Args:
        since_s: from when on it was looked at until ``at_s``.
        amount: of kind cpu, how many CPUs it used meanwhile; of kind gpu, MiB it holds.
    """

    since_s: float
    at_s: float
    kind: Literal["cpu", "gpu"]
    pid: int
    amount: float
    name: str


@dataclass(frozen=True, slots=True)
class NodeTelemetry:
    """Everything that was seen of one node beside one attempt, in order of time.

    Args:
        sight: the boot of its kernel, which nodes that are one machine share, and the namespace of
            the processes that it sees; None where it is not known.
    """

    node: str
    cpus: int
    gpus: tuple[GpuMoment, ...]
    hosts: tuple[HostMoment, ...]
    processes: tuple[ProcessMoment, ...]
    sight: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class MachineState:
    """One node over the span of one trial: medians over its moments, None where none is known.

    Args:
        limits: without ``gpu_idle``.
        slowed_s: of the GPU with most, by the driver's counters.
        others_cpus: CPUs that others than the task used, on average.
        steal: share of the CPUs that the hypervisor gave to others.
    """

    node: str
    span: Span
    seconds: float
    moments: int
    sm_mhz: float | None = None
    memory_mhz: float | None = None
    power_w: float | None = None
    temperature_c: float | None = None
    utilisation_pct: float | None = None
    memory_mib: float | None = None
    memory_peak_mib: float | None = None
    limits: tuple[str, ...] | None = None
    slowed_s: float | None = None
    others_cpus: float | None = None
    steal: float | None = None
    load: float | None = None


@dataclass(frozen=True, slots=True)
class Energy:
    """The energy that a gang's GPUs used over the window, by the driver's counter or its power."""

    joules: float
    per_sample: float
    source: Literal["counter", "power"]


@dataclass(frozen=True, slots=True)
class HeldClocks:
    """When the clocks of a node's GPUs were held down over a trial, in seconds after its gate.

    Args:
        limits: what held them; empty where only the driver's counters grew.
        window_s: ends of what was measured; None where it is not placed.
        last_s: when the node's GPUs were seen last.
    """

    node: str
    limits: tuple[str, ...]
    spans: tuple[tuple[float, float], ...]
    window_s: tuple[float, float] | None
    last_s: float
