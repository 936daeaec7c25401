"""A training program's log, read line by line with one pattern per kind of line."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from functools import lru_cache
from math import nan
from pathlib import Path

from orchestrator.verifying import plain_kinds, plain_lines
from orchestrator.verifying.plain_kinds import Kind
from orchestrator.verifying.plain_steps import PlainStep, Steps

_FACT = re.compile(
    r"(?<![\w.])(batch_size|world_size|prof|num_iter|mode|Num GPUs|Per-GPU Batch Size"
    r"|batch_size_per_device|gpu_num_per_node|num_gpus_per_node|num_nodes|iter_num"
    r"|global_batch_size|train_iters)(?: :| =| \.{2,}|:)? +(\w+)"
)
_WORDS = (" Iteration: ", "imgs_per_sec", "train: epoch ", "step: ", ", throughput: ", "busbw=")
"""That a line of a step has."""
_RANKS = re.compile(r"^all-reduce (ranks)=(\d+) ")
_MEMORY = re.compile(r"(?:^|>:)\s*(?:\d+ %|\[[^\]]+\]), (\d{1,15}) MiB\s*$")


@dataclass(slots=True)
class PlainLog:
    """What a log prints.

    Args:
        facts: arguments of the program by its own names, the first value of each.
        reported: the program's own results, each with its line.
        memory_mib: the largest use of a GPU that it prints.
        ended_after: steps before the words with which the program ends.
        garbled: the first line that has words of a step and is none, or that nothing ends; 0
            without one.
    """

    steps: Steps
    facts: dict[str, str] = field(default_factory=dict)
    reported: list[tuple[int, float]] = field(default_factory=list)
    memory_mib: int | None = None
    garbled: int = 0
    ended_after: int = 0


def read(path: Path, window: tuple[int, int] | None) -> PlainLog:
    """The log in a file; in a last line that nothing ends counts what cannot go on.

    Args:
        window: between which iterations its steps are looked at one by one.

    Raises:
        OSError: it cannot be read.
    """
    log, half, count = PlainLog(Steps(window)), "", 0
    kinds: Sequence[Kind] = plain_kinds.KINDS
    for count, line in plain_lines.lines(path):
        for kind in kinds:
            if kind.mark in line and (found := kind.pattern.search(line)):
                break
        else:
            half = _beside(log, count, line, half)
            if plain_kinds.ENDS.search(line) and log.steps.series != "bert":  # saves in between
                log.ended_after = log.steps.count + log.steps.later
            continue
        if len(kind.alone.findall(line)) > 1:
            log.garbled = log.garbled or count
        else:
            _take_step(log, count, kind.name, found)
            kinds = (kind,)  # a program prints steps in one way
    if not log.garbled and plain_lines.is_cut(path):
        log.garbled = count + 1
    return log


def _take_step(log: PlainLog, line: int, kind: str, found: re.Match[str]) -> None:
    parts = found.groupdict()
    latency, us = parts.get("latency"), parts.get("us")
    printed = parts.get("stamp") or parts.get("seconds") or ""
    said = parts["iteration"] + parts["rate"] if "\n" in found[0].rstrip() else found[0]
    step = PlainStep(
        line,
        int(parts["iteration"]),
        _clock(parts.get("stamp"), parts.get("seconds")),
        _number(parts["rate"]),
        Fraction(latency) if latency else None,
        _number(latency) if latency else _number(us) / 1e6 if us else None,
        said.replace(printed, "", 1).strip(),
        len(printed.partition(".")[2]),
    )
    log.steps.take(step, parts.get("series") or kind, int(parts.get("epoch") or 0))


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:  # nan(ind), as some C libraries print it
        return nan


def _beside(log: PlainLog, count: int, line: str, half: str) -> str:
    """Take a line that is no whole step; the first half of one, for the next line."""
    if " iteration: " in line and plain_kinds.HALF.search(line):
        return line
    if half and plain_kinds.OTHER_HALF.search(line):
        both = plain_kinds.BOTH.search(f"{half.rstrip()}\n{line}")
        if both:
            _take_step(log, count, "tensorflow", both)
        return ""
    if any(word in line for word in _WORDS):
        log.garbled = log.garbled or count
    if found := plain_kinds.REPORTED.search(line):
        log.reported.append((count, _number(found[2] or found[3])))
    elif found := _MEMORY.search(line):
        log.memory_mib = max(log.memory_mib or 0, int(found[1]))
    elif len(line) < 20_000:
        _take_facts(log, count, line)
    return half


def _take_facts(log: PlainLog, count: int, line: str) -> None:
    """Take arguments of the program; behind a step they are garbled, or of another run."""
    for name, value in _FACT.findall(line) + _RANKS.findall(line):
        log.facts.setdefault(name, value)
        if log.steps.count:
            log.garbled = log.garbled or count


def _clock(stamp: str | None, seconds: str | None) -> int | None:
    """Nanoseconds since 1970, to the last printed digit; None where no such time is printed."""
    whole, _, decimals = (stamp or seconds or "").partition(".")
    minute = 0 if seconds or not whole else _minute(whole[:16])
    if not whole or minute is None:
        return None
    since = int(whole) if seconds else minute + int(whole[17:])
    return since * 10**9 + int(decimals.ljust(9, "0")[:9])


@lru_cache(maxsize=16)
def _minute(text: str) -> int | None:
    """Seconds since 1970 of a date and time; None where there is no such time."""
    try:
        return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())
    except ValueError:
        return None
