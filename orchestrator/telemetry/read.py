"""The two files of an observer: ``rR.state`` of the node and ``rR.gpus`` of nvidia-smi.

A line that is cut short or unreadable is left out: a killed observer leaves one.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Literal

from orchestrator.model.telemetry import GpuMoment, HostMoment, NodeTelemetry, ProcessMoment

# Source: nvmlClocksEventReasons of NVIDIA's NVML API reference.
LIMITS: Mapping[int, str] = {
    0x1: "gpu_idle",
    0x2: "applications_clocks_setting",
    0x4: "sw_power_cap",
    0x8: "hw_slowdown",
    0x10: "sync_boost",
    0x20: "sw_thermal_slowdown",
    0x40: "hw_thermal_slowdown",
    0x80: "hw_power_brake_slowdown",
    0x100: "display_clock_setting",
}
# Names of columns, as drivers print them, by ours.
_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "sm_mhz": ("clocks.current.sm", "clocks.sm"),
    "memory_mhz": ("clocks.current.memory", "clocks.mem"),
    "power_w": ("power.draw",),
    "temperature_c": ("temperature.gpu",),
    "utilisation_pct": ("utilization.gpu",),
    "memory_mib": ("memory.used",),
}
_REASONS = ("clocks_event_reasons.active", "clocks_throttle_reasons.active")
_COUNTERS = ("clocks_event_reasons_counters.", "clocks_throttle_reasons_counters.")
_MASK = "0x[0-9a-fA-F]{1,16}"
_ENERGY = "total_energy_consumption"
_HOST_FIELDS = 19
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]*)?")


def telemetry(node: str, state: bytes, gpus: bytes) -> NodeTelemetry | None:
    """Parse an observer's two files of a node; return None if it did not even begin."""
    lines = [line.split(",") for line in _whole_lines(state)]
    if not lines or lines[0][:2] != ["node", "1"] or len(lines[0]) not in (6, 8):
        return None
    clock_s, uptime_s, cpus, hz = (_float(word) for word in lines[0][2:6])
    if clock_s is None or uptime_s is None or not cpus or cpus < 1 or not hz:
        return None
    boot_s = clock_s - uptime_s
    hosts = [_host(line, boot_s, hz) for line in lines if line[0] == "host"]
    seen = [_process(line, boot_s) for line in lines if line[0] == "process"]
    return NodeTelemetry(
        node,
        int(cpus),
        tuple(_gpus(_whole_lines(gpus))),
        tuple(moment for moment in hosts if moment is not None),
        tuple(moment for moment in seen if moment is not None),
        (lines[0][6], lines[0][7]) if len(lines[0]) == 8 and lines[0][6] else None,
    )


def limits(mask: int) -> tuple[str, ...]:
    """Return the names of the bits that are set; an unknown bit is its number."""
    bits = [1 << place for place in range(mask.bit_length()) if mask >> place & 1]
    return tuple(LIMITS.get(bit, f"{bit:#x}") for bit in bits)


def _whole_lines(content: bytes) -> list[str]:
    text, newline, _ = content.decode(errors="replace").rpartition("\n")
    return text.split("\n") if newline else []


def _host(line: Sequence[str], boot_s: float, hz: float) -> HostMoment | None:
    at_s, *numbers = (_float(word) for word in line[1:]) if len(line) == _HOST_FIELDS else (None,)
    times = [number for number in numbers[:8] if number is not None]
    if at_s is None or len(times) != 8:
        return None
    user, nice, system, _, _, irq, softirq, steal = times
    task, load = numbers[8], numbers[11]
    return HostMoment(
        at_s=boot_s + at_s,
        all_s=sum(times) / hz,
        busy_s=(user + nice + system + irq + softirq) / hz,
        steal_s=steal / hz,
        task_s=None if task is None else task / hz,
        load=load,
    )


def _process(line: Sequence[str], boot_s: float) -> ProcessMoment | None:
    if len(line) != 7 or line[3] not in ("cpu", "gpu"):
        return None
    since_s, at_s, pid, amount = (_float(line[place]) for place in (1, 2, 4, 5))
    if since_s is None or at_s is None or pid is None or amount is None:
        return None
    kind: Literal["cpu", "gpu"] = "cpu" if line[3] == "cpu" else "gpu"
    return ProcessMoment(boot_s + since_s, boot_s + at_s, kind, int(pid), amount, line[6])


def _gpus(lines: Sequence[str]) -> Iterable[GpuMoment]:
    """Yield the moments of a CSV in UTC; its first line names the columns."""
    head = [name.partition("[")[0].strip() for name in lines[0].split(",")] if lines else []
    for line in lines[1:]:
        words = [word.strip() for word in line.split(",")]
        row = dict(zip(head, words, strict=False))
        numbers = {name: number for name in row if (number := _float(row[name])) is not None}
        at_s = _stamp(row.get("timestamp", ""))
        if len(words) == len(head) and at_s is not None and "index" in numbers:
            yield _gpu(row, numbers, at_s)


def _gpu(row: Mapping[str, str], numbers: Mapping[str, float], at_s: float) -> GpuMoment:
    counters_us = [numbers[name] for name in numbers if name.startswith(_COUNTERS)]
    energy_mj = numbers.get(_ENERGY)
    masks = [row[name] for name in _REASONS if re.fullmatch(_MASK, row.get(name, ""))]
    return GpuMoment(
        at_s,
        int(numbers["index"]),
        **{
            ours: next((numbers[name] for name in names if name in numbers), None)
            for ours, names in _COLUMNS.items()
        },
        limits=limits(int(masks[0], 16)) if masks else None,
        slowed_s=sum(counters_us) / 1e6 if counters_us else None,
        energy_j=None if energy_mj is None else energy_mj / 1e3,
    )


def _stamp(text: str) -> float | None:
    try:
        return datetime.strptime(f"{text}+0000", "%Y/%m/%d %H:%M:%S.%f%z").timestamp()
    except ValueError:
        return None


def _float(text: str) -> float | None:
    """Return a number; None for ``[N/A]``, ``[Not Supported]`` or nothing."""
    return float(text) if _NUMBER.fullmatch(text) else None
