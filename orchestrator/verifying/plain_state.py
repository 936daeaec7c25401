"""What the observer of a task wrote: the state of its node, and what nvidia-smi printed."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

# Source: nvmlClocksEventReasons of NVIDIA's NVML API reference.
LIMITS = (
    *("gpu_idle", "applications_clocks_setting", "sw_power_cap", "hw_slowdown", "sync_boost"),
    *("sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown"),
    "display_clock_setting",
)
"""By bit."""
HARMFUL = {
    *("hw_slowdown", "sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown"),
}
COLUMNS = {
    "sm_mhz": ("clocks.current.sm", "clocks.sm"),
    "memory_mhz": ("clocks.current.memory", "clocks.mem"),
    "power_w": ("power.draw",),
    "temperature_c": ("temperature.gpu",),
    "utilisation_pct": ("utilization.gpu",),
    "memory_mib": ("memory.used",),
}
"""As drivers call them."""
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]*)?")
_HOST_WORDS, _PROCESS_WORDS = 19, 7


@dataclass(frozen=True, slots=True)
class Host:
    """A node at one moment; processor time in seconds since it was booted."""

    at_s: float
    busy_s: float
    steal_s: float
    task_s: float | None
    load: float | None
    available_kib: float | None


@dataclass(frozen=True, slots=True)
class Process:
    """A process that is not of the task: CPUs that it used, or MiB of a GPU that it holds."""

    since_s: float
    at_s: float
    kind: str
    pid: int
    amount: float
    name: str


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU at one moment.

    Args:
        row: what nvidia-smi printed, by the names of its columns.
    """

    at_s: float
    index: int
    row: Mapping[str, str]

    def number(self, *columns: str) -> float | None:
        """In the first of these columns that has one."""
        values = (_number(self.row.get(column, "")) for column in columns)
        return next((value for value in values if value is not None), None)

    @property
    def harmful(self) -> set[str]:
        """Limits by heat or brakes that hold its clocks down."""
        return HARMFUL & {*(self.limits or ())}

    @property
    def limits(self) -> list[str] | None:
        """What holds its clocks down; None where the driver does not say it."""
        for column in ("clocks_event_reasons.active", "clocks_throttle_reasons.active"):
            word = self.row.get(column, "")
            if re.fullmatch("0x[0-9a-fA-F]{1,16}", word):
                bits = [bit for bit in range(64) if int(word, 16) >> bit & 1]
                return [LIMITS[bit] if bit < len(LIMITS) else f"{1 << bit:#x}" for bit in bits]
        return None

    @property
    def slowed_s(self) -> float | None:
        """Under thermal and brake limits, by all counters of these."""
        starts = ("clocks_event_reasons_counters.", "clocks_throttle_reasons_counters.")
        counted = [_number(word) for name, word in self.row.items() if name.startswith(starts)]
        known = [value for value in counted if value is not None]
        return sum(known) / 1e6 if known else None


@dataclass(slots=True)
class PlainNode:
    """Everything that was seen of one node, in order of time."""

    node: str
    cpus: int
    hosts: list[Host] = field(default_factory=list)
    processes: list[Process] = field(default_factory=list)
    gpus: list[Gpu] = field(default_factory=list)
    boot: str = ""
    namespace: str = ""


def read(node: str, state: Path, gpus: Path) -> PlainNode | None:
    """What an observer saw of a node; None where it did not even begin."""
    lines = [line.split(",") for line in _lines(state)]
    head = lines[0] if lines else []
    if head[:2] != ["node", "1"] or len(head) not in (6, 8):
        return None
    clock_s, uptime_s, cpus, ticks = (_number(word) for word in head[2:6])
    if clock_s is None or uptime_s is None or not cpus or cpus < 1 or not ticks:
        return None
    found, booted_s = PlainNode(node, int(cpus)), clock_s - uptime_s
    found.boot, found.namespace = head[6:] or ("", "")
    for line in lines:
        if line[0] == "host" and len(line) == _HOST_WORDS:
            found.hosts += _host(line, booted_s, ticks)
        elif line[0] == "process" and len(line) == _PROCESS_WORDS:
            found.processes += _process(line, booted_s)
    found.gpus += _gpus(_lines(gpus))
    return found


def _lines(path: Path) -> list[str]:
    """The whole lines of a file; none where it cannot be read."""
    try:
        content = path.read_bytes().decode(errors="replace")
    except OSError:
        return []
    return content.split("\n")[:-1]


def _host(line: Sequence[str], booted_s: float, ticks: float) -> Iterator[Host]:
    at_s, *times = (_number(word) for word in line[1:])
    known = [time for time in times[:8] if time is not None]
    if at_s is None or len(known) < 8:
        return
    user, nice, system, _, _, interrupts, soft, steal = known
    busy, task = user + nice + system + interrupts + soft, times[8]
    task_s = None if task is None else task / ticks
    yield Host(booted_s + at_s, busy / ticks, steal / ticks, task_s, times[11], times[12])


def _process(line: Sequence[str], booted_s: float) -> Iterator[Process]:
    since_s, at_s, pid, amount = (_number(line[place]) for place in (1, 2, 4, 5))
    if None not in (since_s, at_s, pid, amount) and line[3] in ("cpu", "gpu"):
        since_s, at_s = booted_s + (since_s or 0), booted_s + (at_s or 0)
        yield Process(since_s, at_s, line[3], int(pid or 0), amount or 0, line[6])


def _gpus(lines: Sequence[str]) -> Iterator[Gpu]:
    """The rows of a table, whose times are in UTC."""
    head = [name.partition("[")[0].strip() for name in lines[0].split(",")] if lines else []
    for line in lines[1:]:
        words = [word.strip() for word in line.split(",")]
        row = dict(zip(head, words, strict=False))
        at_s, index = _stamp(row.get("timestamp", "")), _number(row.get("index", ""))
        if len(words) != len(head) or at_s is None or index is None:
            continue
        yield Gpu(at_s, int(index), row)


def _stamp(text: str) -> float | None:
    try:
        moment = datetime.strptime(text, "%Y/%m/%d %H:%M:%S.%f")
    except ValueError:
        return None
    return moment.replace(tzinfo=UTC).timestamp()


def _number(word: str) -> float | None:
    return float(word) if _NUMBER.fullmatch(word) else None
