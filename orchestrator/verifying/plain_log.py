"""A training program's log, read line by line with one pattern per kind of line."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from functools import lru_cache
from pathlib import Path

_TAG = re.compile(
    r"(?:[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d [\d:]{8} \d{4})?\[\d+,(\d+)\]<std(?:out|err|diag)>:"
)
_STAMP = r"(?P<stamp>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?)"
_NUMBER = r"-?(?:\d[\d.]*(?:e[-+]?\d+)?|nan|inf)"
_NVLOG = r":::NVLOG\S+ \S+ (?P<seconds>\d+\.\d+) \([^)]*\) "
STEPS = tuple(
    map(
        re.compile,
        (
            # NVIDIA's PyTorch programs
            rf"DLL {_STAMP} - Epoch: (?P<epoch>\d+) Iteration: (?P<iteration>\d+) .*?"
            rf"train\.total_ips : (?P<rate>{_NUMBER}) im",
            # NVIDIA's TensorFlow program
            rf"DLL {_STAMP} - \(\d+, (?P<iteration>\d+)\) (?P<series>imgs_per_sec|total_ips) ?:"
            rf" (?P<rate>{_NUMBER})(?!\S)",
            # OneFlow's ResNet-50 and BERT
            r"(?<!\w)train: epoch (?P<epoch>\d+), iter (?P<iteration>\d+), .*samples/s:"
            r" (?P<rate>\d+\.\d{3}|nan|inf)(?: (?P<seconds>\d{9,10}\.\d+))?\s*$",
            r"(?<!\w)step: (?P<iteration>\d+), .*throughput: (?P<rate>\d+\.\d{3}|nan|inf)"
            r"(?:, [a-z]\w*: [-\d.]+)*(?: (?P<seconds>\d{9,10}\.\d+))?\s*$",
            # OneFlow's GPT
            r"^[^|]*\| *(?P<iteration>\d+) *\| *\d+ *\| *\d+ *\| *(?P<rate>\d+\.\d{5}) *\|"
            r" *(?P<latency>\d+\.\d{5}) *\|(?: *(?:-?\d+\.\d{5}|-?nan|-?inf) *\|)*\s*$",
        ),
    )
)
MARKS = (" Iteration: ", "_", "train: epoch ", "step: ", "|")
"""What a pattern's lines have, since that is found sooner."""
LONGEST = 64 << 10
"""Bytes of a line; a longer one is no step of a program."""
KINDS = ("dllogger", "tensorflow", "cnn", "bert", "gpt")
_HALF = re.compile(_NVLOG + r"iteration: (?P<iteration>\d+)\s*$")
_OTHER_HALF = re.compile(_NVLOG + rf"(?P<series>imgs_per_sec|total_ips) ?: (?P<rate>{_NUMBER})\s*$")
_REPORTED = re.compile(
    rf"DLL {_STAMP} - \(\) train_throughput : (\d\S*)"
    r"|:::NVLOG\S+ \S+ [\d.]+ \([^)]*\) Average total_ips: (\d\S*)\s*$"
)
_FACT = re.compile(
    r"(?<![\w.])(batch_size|world_size|prof|num_iter|mode|Num GPUs|Per-GPU Batch Size"
    r"|batch_size_per_device|gpu_num_per_node|num_gpus_per_node|num_nodes|iter_num"
    r"|global_batch_size|train_iters)(?: :| =| \.{2,}|:)? +(\w+)"
)
_MEMORY = re.compile(r"(?:^|>:)\s*(?:\d+ %|\[[^\]]+\]), (\d+) MiB\s*$")


@dataclass(frozen=True, slots=True)
class PlainStep:
    """One step that a log prints.

    Args:
        clock_ns: nanoseconds since 1970; None where no time is printed.
        latency: seconds of one step, exact; None likewise.
    """

    line: int
    epoch: int
    iteration: int
    clock_ns: int | None
    rate: float
    latency: Fraction | None
    series: str


@dataclass(slots=True)
class PlainLog:
    """What a log prints.

    Args:
        facts: arguments of the program by its own names, the first value of each.
        reported: the program's own results.
        memory_mib: the largest use of a GPU that it prints.
    """

    steps: list[PlainStep] = field(default_factory=list)
    facts: dict[str, str] = field(default_factory=dict)
    reported: list[float] = field(default_factory=list)
    memory_mib: int | None = None


def read(path: Path) -> PlainLog:
    """The log in a file; a step in its last line counts only if a line feed ends it."""
    log, half = PlainLog(), None
    for count, line in lines(path):
        if " iteration: " in line and (found := _HALF.search(line)):
            half = found
            continue
        if half and (found := _OTHER_HALF.search(line)):
            clock, series = _clock(None, half["seconds"]), found["series"]
            log.steps.append(
                PlainStep(
                    count, 0, int(half["iteration"]), clock, float(found["rate"]), None, series
                )
            )
            half = None
        elif step := _step(line, count):
            log.steps.append(step)
        else:
            _take(log, line)
    return log


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """Numbers and texts of whole lines; pieces that mpirun tagged are put together by rank.

    A line that is longer than any record is passed over.
    """
    pieces: dict[str, str] = {}
    count, whole = 1, True
    with open(path, "rb") as file:
        while raw := file.readline(LONGEST):
            number, begun = count, whole
            whole = raw.endswith(b"\n")
            count += whole
            if not (whole and begun):
                continue
            text = raw.decode("utf-8", "replace").replace("\0", "")
            parts = _TAG.split(text)
            if len(parts) == 1:
                yield number, text
                continue
            ranks, said = parts[1::2], parts[2::2]
            for rank, piece in zip(ranks[:-1], said[:-1], strict=True):
                pieces[rank] = pieces.get(rank, "") + piece
            yield number, f"[1,{ranks[-1]}]<stdout>:{pieces.pop(ranks[-1], '')}{said[-1]}"


def _step(line: str, count: int) -> PlainStep | None:
    if line.count("DLL ") > 1:
        return None
    for kind, mark, pattern in zip(KINDS, MARKS, STEPS, strict=True):
        if mark in line and (found := pattern.search(line)):
            parts = found.groupdict()
            latency = parts.get("latency")
            return PlainStep(
                count,
                int(parts.get("epoch") or 0),
                int(parts["iteration"]),
                _clock(parts.get("stamp"), parts.get("seconds")),
                float(parts["rate"]),
                Fraction(latency) if latency else None,
                parts.get("series") or kind,
            )
    return None


def _clock(stamp: str | None, seconds: str | None) -> int | None:
    """Nanoseconds since 1970, to the last printed digit."""
    whole, _, decimals = (stamp or seconds or "").partition(".")
    if not whole:
        return None
    return (int(whole) if seconds else _second(whole)) * 10**9 + int(decimals.ljust(9, "0")[:9])


@lru_cache(maxsize=16)
def _second(text: str) -> int:
    """Seconds since 1970 of a date and time; 0 where there is no such time."""
    try:
        return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())
    except ValueError:
        return 0


def _take(log: PlainLog, line: str) -> None:
    if found := _REPORTED.search(line):
        log.reported.append(float(found[2] or found[3]))
    elif found := _MEMORY.search(line):
        log.memory_mib = max(log.memory_mib or 0, int(found[1]))
    elif len(line) < 20_000:
        for name, value in _FACT.findall(line):
            log.facts.setdefault(name, value)
