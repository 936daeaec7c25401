"""A training program's log, read line by line with one pattern per kind of line."""

import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from functools import lru_cache
from pathlib import Path

_TAGGED = "]<std"
_TAG = re.compile(
    r"(?:[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d [\d:]{8} \d{4})?\[\d+,(\d+)\]<std(?:out|err|diag)>:"
)
_STAMP = r"(?P<stamp>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?)"
_NUMBER = r"-?(?:\d{1,30}(?:\.\d{1,30})?(?:[eE][-+]?\d{1,2})?|nan|inf)"
_STEP = r"(?P<iteration>\d{1,15})"
_SAID = r"(?:[\w.]+ : (?:-?\d[\d.e+-]*|nan|inf)(?: [^\s:\0]+)?|None) +"
_LOSSES = rf"(?:\w+: {_NUMBER}, )*"
_NVLOG = r":::NVLOG\S+ \S+ (?P<seconds>\d{1,10}\.\d+) \([^)]*\) "
NO_CLOCK = -(1 << 63)
"""In the place of a time that is not printed."""
CUT = "\N{HORIZONTAL ELLIPSIS}"
"""Behind the last line of a log that was cut, where the program may have gone on."""
LONGEST = 64 << 10
"""Bytes of a line; a longer one is no step of a program."""


@dataclass(frozen=True, slots=True)
class Kind:
    """How one program prints a step.

    Args:
        mark: what such a line has, since that is found sooner than the pattern.
        alone: what it has once; twice, it holds pieces of two lines.
    """

    name: str
    mark: str
    alone: re.Pattern[str]
    pattern: re.Pattern[str]


KINDS = (
    # NVIDIA's PyTorch programs
    Kind(
        "dllogger",
        " Iteration: ",
        re.compile("DLL "),
        re.compile(
            rf"DLL {_STAMP} - Epoch: (?P<epoch>\d{{1,15}}) Iteration: {_STEP} +(?:{_SAID})*?"
            rf"train\.total_ips : (?P<rate>{_NUMBER}) im(?:g|ages)/s"
        ),
    ),
    # NVIDIA's TensorFlow program
    Kind(
        "tensorflow",
        "_",
        re.compile("DLL "),
        re.compile(
            rf"DLL {_STAMP} - \(\d+, {_STEP}\) (?P<series>imgs_per_sec|total_ips) ?:"
            rf" (?P<rate>{_NUMBER})(?!\S)"
        ),
    ),
    # OneFlow's ResNet-50 and BERT
    Kind(
        "cnn",
        "train: epoch ",
        re.compile(r"(?<!\w)train:"),
        re.compile(
            rf"(?<!\w)train: epoch (?P<epoch>\d{{1,15}}), iter {_STEP}, {_LOSSES}samples/s:"
            r" (?P<rate>\d{1,30}\.\d{3}|nan|inf)(?: (?P<seconds>\d{9,10}\.\d+))?\s*$"
        ),
    ),
    Kind(
        "bert",
        "step: ",
        re.compile(r"(?<!\w)step:"),
        re.compile(
            rf"(?<!\w)step: {_STEP}, {_LOSSES}throughput: (?P<rate>\d{{1,30}}\.\d{{3}}|nan|inf)"
            r"(?:, [a-z]\w*: [-\d.]+)*(?: (?P<seconds>\d{9,10}\.\d+))?\s*$"
        ),
    ),
    # OneFlow's GPT
    Kind(
        "gpt",
        "|",
        re.compile("\n"),
        re.compile(
            rf"^[^|]*\| *{_STEP} *\| *\d+ *\| *\d+ *\| *(?P<rate>\d{{1,30}}\.\d{{5}}) *\|"
            r" *(?P<latency>\d{1,30}\.\d{5}) *\|(?: *(?:-?\d+\.\d{5}|-?nan|-?inf) *\|)*\s*$"
        ),
    ),
    # our all-reduce
    Kind(
        "all_reduce",
        "busbw=",
        re.compile("iteration="),
        re.compile(rf"iteration={_STEP} us={_NUMBER} busbw=(?P<rate>{_NUMBER}) GB/s"),
    ),
)
_HALF = re.compile(rf"{_NVLOG}iteration: {_STEP}\s*$")
_OTHER_HALF = re.compile(_NVLOG + rf"(?P<series>imgs_per_sec|total_ips) ?: (?P<rate>{_NUMBER})\s*$")
_REPORTED = re.compile(
    rf"DLL {_STAMP} - \(\) train_throughput : ({_NUMBER})(?!\S)"
    rf"|:::NVLOG\S+ \S+ [\d.]+ \([^)]*\) Average total_ips: ({_NUMBER})\s*$"
)
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
    kinds: Sequence[Kind] = KINDS
    for count, line in lines(path):
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
            if kind is not kinds[0]:
                kinds = (kind, *(other for other in KINDS if other is not kind))
    if not log.garbled and _is_cut(path):
        log.garbled = count + 1
    return log


def _is_cut(path: Path) -> bool:
    with open(path, "rb") as file:
        size = file.seek(0, 2)
        file.seek(max(size - 1, 0))
        return file.read() not in (b"", b"\n")


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
            if not begun or (len(raw) == LONGEST and not whole):
                continue
            text = raw.lstrip(b"\0").decode("utf-8", "replace") + ("" if whole else CUT)
            parts = _TAG.split(text) if _TAGGED in text else [text]
            if len(parts) == 1:
                yield number, text
                continue
            ranks, said = parts[1::2], parts[2::2]
            for rank, piece in zip(ranks[:-1], said[:-1], strict=True):
                pieces[rank] = pieces.get(rank, "") + piece
            yield number, f"[1,{ranks[-1]}]<stdout>:{pieces.pop(ranks[-1], '')}{said[-1]}"


def _beside(log: PlainLog, count: int, line: str, half: str) -> str:
    """Take a line that is no whole step; the first half of one, for the next line."""
    if " iteration: " in line and _HALF.search(line):
        return line
    if half and _OTHER_HALF.search(line):
        both = _BOTH.search(f"{half.rstrip()}\n{line}")
        if both:
            log.steps.take(count, "tensorflow", both)
        return ""
    if any(word in line for word in _WORDS):
        log.garbled = log.garbled or count
    if found := _REPORTED.search(line):
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


_BOTH = re.compile(
    _HALF.pattern.removesuffix(r"\s*$") + r"\n.*?" + _OTHER_HALF.pattern.replace("?P<seconds>", "")
)


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
