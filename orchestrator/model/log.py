"""Types for a training log: steps, header, rates, transport and problems."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Literal

from orchestrator.model.problem import Problem

Rule = Literal["clock", "rates", "arithmetic", "reported", "latency"]
"""The rule that computes throughput from a log.

clock: samples between two iterations, divided by the time between their lines. rates: the
harmonic mean of the rates printed in the window, which is samples over time. arithmetic: their
arithmetic mean, as in DLPerf's extract_tensorflow_logs.py. reported: what the program itself
reports at its end. latency: global batch size / mean seconds per step in the window.
"""

SECOND_NS = 1_000_000_000
RATE_TOLERANCE = 0.03
"""Largest difference between the clock and the printed rates of a window: the nine recorded logs
in tests/samples agree within 0.5 %, a log of another world size is off by a factor of 2 or more.
"""


@dataclass(frozen=True, slots=True)
class Moment:
    """When an iteration was printed.

    Args:
        clock_ns: nanoseconds since the first step that the log prints, by its own clock and to its
            last digit.
        line: counts from 1, by line feeds.
    """

    iteration: int
    clock_ns: int
    line: int


@dataclass(frozen=True, slots=True)
class Rate:
    """The per-step rates that a log itself prints, summed up."""

    count: int
    mean: float
    median: float


@dataclass(frozen=True, slots=True)
class Port:
    """A port of an HCA; ``link`` is IB or RoCE."""

    hca: str
    number: int
    link: str

    def __str__(self) -> str:
        return self.hca if self.number == 1 else f"{self.hca}:{self.number}"


@dataclass(frozen=True, slots=True)
class Fabric:
    """The transport of one task's communication, as NCCL and other libraries log it.

    Args:
        networks: what NCCL used between nodes, by its own names and sorted: IB, IBext_v8, Socket.
        no_device: the line that reports that NCCL found no HCA.
        lines: numbers, from 1, of the first line of each kind of evidence.
        problems: errors that libraries log; a trial is invalid by them only if it needs what is
            missing.
    """

    networks: tuple[str, ...] = ()
    ports: tuple[Port, ...] = ()
    interfaces: tuple[str, ...] = ()
    no_device: int | None = None
    lines: tuple[int, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def over_verbs(self) -> bool:
        """Return True if all traffic between nodes used InfiniBand or RoCE, never sockets."""
        return bool(self.networks) and all(is_verbs(network) for network in self.networks)

    @property
    def label(self) -> str:
        """Return ``IB mlx5_0``, ``RoCE mlx5_0 (IBext_v8)``, ``Socket ib0``, or ``-`` for none."""
        links: dict[str, list[str]] = {}
        for port in self.ports:
            links.setdefault(port.link, []).append(str(port))
        hcas = " + ".join(f"{link} {','.join(ports)}" for link, ports in sorted(links.items()))
        labels = []
        for network in self.networks:
            if network == "Socket":
                labels.append(f"Socket {','.join(self.interfaces)}".strip())
            elif is_verbs(network):
                plugin = "" if network == "IB" else f" ({network})"
                labels.append(f"{hcas or 'IB'}{plugin}")
            else:
                labels.append(network)
        return " + ".join(labels) or "-"


def is_verbs(network: str) -> bool:
    """Return True if NCCL's network name means its own or a plugin's transport over HCAs."""
    return re.fullmatch(r"IB(?:ext(?:_v[0-9]{1,3})?)?", network) is not None


POINTS = 120  # maximum of a trace; a figure has about as many pixels
TracePoint = tuple[int, int, float, float, float]
"""First and last iteration, and of the rates between them the lowest, the mean, the highest."""


def reduce_rates(first: int, stride: int, rates: Sequence[float]) -> tuple[TracePoint, ...]:
    """Return at most ``POINTS`` points of equally many steps; the last point may have fewer.

    Args:
        stride: iterations from one step to the next.
    """
    width = -(-len(rates) // POINTS)
    points = []
    for at in range(0, len(rates), width):
        piece = rates[at : at + width]
        begin, end = first + at * stride, first + (at + len(piece) - 1) * stride
        points.append((begin, end, min(piece), fsum(piece) / len(piece), max(piece)))
    return tuple(points)


@dataclass(frozen=True, slots=True)
class TrainingLog:
    """One log, read for one window.

    What the log lacks is None or empty. With several runs in a file, steps, iterations, config and
    rate are the last run's, and it has no window.

    Args:
        steps: step lines of all epochs, repeated ones not counted.
        config: values of the header; one that it contradicts is absent.
        start, end: of the window, in the first epoch.
        rate: over all steps; None if any rate is not a positive number.
        window_rate: samples / sum of times, from the rates printed after the window's first
            iteration up to its last. By the rule ``latency`` the first iteration counts too.
            None unless the log has both ends.
        reported: the numbers of the log's own summary, ``train_throughput`` among them.
        digest: hash over the iterations of the window with their timestamps, or with their text
            where they have none; equal for copies of the same evidence.
        fabric: of the task that wrote this log; other nodes' ranks have logs of their own.
        window: as it was requested, or as the reader chose.
        window_mean: arithmetic mean of the rates printed inside the window, both ends included;
            None unless the log has both ends.
        window_weighed: their harmonic mean, without the first where a rate is the mean since the
            line before; None likewise.
        agreement: how far clock and printed rates may differ over the window, as a share.
        samples: per iteration, as the clock and the printed rates give it.
        latency_s: mean seconds per optimizer step over the window, where the program prints them.
        memory_mib: the largest use of any GPU of the node that the program prints.
        lines: of the first and the last record of the window; None unless the log has both.
        result_line: of the program's own result.
        origin_ns: when the first step was printed, by the log's own clock read as UTC, in
            nanoseconds since 1970.
        tells: keys of ``config`` that every whole header of this program has.
        trace: the rates of the first epoch; empty where iterations are skipped, or a rate is not a
            positive number.
    """

    runs: int
    steps: int
    first_iteration: int | None
    last_iteration: int | None
    config: Mapping[str, str | int | float | bool]
    unit: str
    reported: Mapping[str, float]
    sha256: str
    fabric: Fabric
    problems: tuple[Problem, ...] = ()
    rate: Rate | None = None
    rule: Rule = "clock"
    start: Moment | None = None
    end: Moment | None = None
    digest: str = ""
    window_rate: float | None = None
    window: tuple[int, int] | None = None
    window_mean: float | None = None
    window_weighed: float | None = None
    samples: float | None = None
    agreement: float = RATE_TOLERANCE
    latency_s: float | None = None
    memory_mib: int | None = None
    lines: tuple[int, int] | None = None
    result_line: int | None = None
    origin_ns: int | None = None
    tells: frozenset[str] = frozenset({"micro_batch_size", "precision", "world_size"})
    trace: tuple[TracePoint, ...] = ()

    @property
    def measured_s(self) -> float | None:
        """Return the seconds between both ends of the window, None without both or a clock."""
        if self.start is None or self.end is None or self.origin_ns is None:
            return None
        return (self.end.clock_ns - self.start.clock_ns) / SECOND_NS

    @property
    def evidence(self) -> tuple[int, int] | None:
        """Return the first and last line that the number of its rule is computed from."""
        if self.rule != "reported":
            return self.lines
        return None if self.result_line is None else (self.result_line, self.result_line)


def global_batch_size(config: Mapping[str, str | int | float | bool]) -> int | None:
    """Return the samples of one optimizer step by a log's header, None if it lacks them."""
    whole = config.get("global_batch_size")
    if isinstance(whole, int):
        return whole
    micro, world = config.get("micro_batch_size"), config.get("world_size")
    steps = config.get("accumulation_steps", 1)
    if isinstance(micro, int) and isinstance(world, int) and isinstance(steps, int):
        return micro * world * steps
    return None
