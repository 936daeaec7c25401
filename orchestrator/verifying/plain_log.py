"""A training program's log, read line by line with one pattern per kind of line."""

import re
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from functools import lru_cache
from pathlib import Path

from orchestrator.verifying import plain_kinds, plain_lines
from orchestrator.verifying.plain_kinds import Kind

NO_CLOCK = -(1 << 63)
"""In the place of a time that is not printed."""
_FACT = re.compile(
    r"(?<![\w.])(batch_size|world_size|prof|num_iter|mode|Num GPUs|Per-GPU Batch Size"
    r"|batch_size_per_device|gpu_num_per_node|num_gpus_per_node|num_nodes|iter_num"
    r"|global_batch_size|train_iters)(?: :| =| \.{2,}|:)? +(\w+)"
)
_WORDS = (" Iteration: ", "imgs_per_sec", "train: epoch ", "step: ", ", throughput: ", "busbw=")
"""That a line of a step has."""
_RANKS = re.compile(r"^all-reduce (ranks)=(\d+) ")
_MEMORY = re.compile(r"(?:^|>:)\s*(?:\d+ %|\[[^\]]+\]), (\d{1,15}) MiB\s*$")


@dataclass(frozen=True, slots=True)
class PlainStep:
    """One step that a log prints.

    Args:
        clock_ns: nanoseconds since 1970; None where no time is printed.
        latency: seconds of one step, exact; None likewise.
    """

    line: int
    iteration: int
    clock_ns: int | None
    rate: float
    latency: Fraction | None


@dataclass(slots=True)
class Steps:
    """The steps of a log's first epoch as columns, in a quarter of the room of its lines.

    Args:
        clocks_ns: NO_CLOCK where no time is printed.
        latencies: empty where none are printed.
        later: rates of the epochs after the first.
        series: what the program calls its rates.
    """

    lines: "array[int]" = field(default_factory=lambda: array("q"))
    iterations: "array[int]" = field(default_factory=lambda: array("q"))
    clocks_ns: "array[int]" = field(default_factory=lambda: array("q"))
    rates: "array[float]" = field(default_factory=lambda: array("d"))
    latencies: list[Fraction] = field(default_factory=list)
    later: "array[float]" = field(default_factory=lambda: array("d"))
    series: str = ""
    epoch: int = 0

    def take(self, line: int, kind: str, found: re.Match[str]) -> None:
        """Take the next step of a log."""
        parts = found.groupdict()
        rate, epoch = float(parts["rate"]), int(parts.get("epoch") or 0)
        if not self.lines:
            self.series, self.epoch = parts.get("series") or kind, epoch
        elif epoch != self.epoch:
            self.later.append(rate)
            return
        self.lines.append(line)
        self.iterations.append(int(parts["iteration"]))
        self.clocks_ns.append(_clock(parts.get("stamp"), parts.get("seconds")))
        self.rates.append(rate)
        if latency := parts.get("latency"):
            self.latencies.append(Fraction(latency))

    def __len__(self) -> int:
        return len(self.lines)

    def __getitem__(self, place: int) -> PlainStep:
        clock_ns = self.clocks_ns[place]
        return PlainStep(
            self.lines[place],
            self.iterations[place],
            None if clock_ns == NO_CLOCK else clock_ns,
            self.rates[place],
            self.latencies[place] if self.latencies else None,
        )


@dataclass(slots=True)
class PlainLog:
    """What a log prints.

    Args:
        facts: arguments of the program by its own names, the first value of each.
        reported: the program's own results.
        memory_mib: the largest use of a GPU that it prints.
        garbled: the first line that has words of a step and is none, or that nothing ends; 0
            without one.
    """

    steps: Steps = field(default_factory=Steps)
    facts: dict[str, str] = field(default_factory=dict)
    reported: list[float] = field(default_factory=list)
    memory_mib: int | None = None
    garbled: int = 0


def read(path: Path) -> PlainLog:
    """The log in a file; in a last line that nothing ends counts what cannot go on.

    Raises:
        OSError: it cannot be read.
    """
    log, half, count = PlainLog(), "", 0
    kinds: Sequence[Kind] = plain_kinds.KINDS
    for count, line in plain_lines.lines(path):
        for kind in kinds:
            if kind.mark in line and (found := kind.pattern.search(line)):
                break
        else:
            half = _beside(log, count, line, half)
            continue
        if len(kind.alone.findall(line)) > 1:
            log.garbled = log.garbled or count
        else:
            log.steps.take(count, kind.name, found)
            kinds = (kind,)  # a program prints steps in one way
    if not log.garbled and plain_lines.is_cut(path):
        log.garbled = count + 1
    return log


def _beside(log: PlainLog, count: int, line: str, half: str) -> str:
    """Take a line that is no whole step; the first half of one, for the next line."""
    if " iteration: " in line and plain_kinds.HALF.search(line):
        return line
    if half and plain_kinds.OTHER_HALF.search(line):
        both = plain_kinds.BOTH.search(f"{half.rstrip()}\n{line}")
        if both:
            log.steps.take(count, "tensorflow", both)
        return ""
    if any(word in line for word in _WORDS):
        log.garbled = log.garbled or count
    if found := plain_kinds.REPORTED.search(line):
        log.reported.append(float(found[2] or found[3]))
    elif found := _MEMORY.search(line):
        log.memory_mib = max(log.memory_mib or 0, int(found[1]))
    elif len(line) < 20_000:
        _take_facts(log, count, line)
    return half


def _take_facts(log: PlainLog, count: int, line: str) -> None:
    """Take arguments of the program; behind a step they are garbled, or of another run."""
    for name, value in _FACT.findall(line) + _RANKS.findall(line):
        log.facts.setdefault(name, value)
        if log.steps:
            log.garbled = log.garbled or count


def _clock(stamp: str | None, seconds: str | None) -> int:
    """Nanoseconds since 1970, to the last printed digit; one far off is as far as can be told."""
    whole, _, decimals = (stamp or seconds or "").partition(".")
    minute = 0 if seconds or not whole else _minute(whole[:16])
    if not whole or minute is None:
        return NO_CLOCK
    since = int(whole) if seconds else minute + int(whole[17:])
    clock_ns = since * 10**9 + int(decimals.ljust(9, "0")[:9])
    return min(max(clock_ns, NO_CLOCK + 1), (1 << 63) - 1)


@lru_cache(maxsize=16)
def _minute(text: str) -> int | None:
    """Seconds since 1970 of a date and time; None where there is no such time."""
    try:
        return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())
    except ValueError:
        return None
