"""Honest logs, and the numbers in them by a reader that shares nothing with the program's."""

import csv
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from math import inf
from pathlib import Path
from statistics import fmean, harmonic_mean, median

HERE = Path(__file__).parent
S = 1_000_000_000
LOSSES = ("loss", "loss2", "loss3")
_EPOCH = datetime(1970, 1, 1)
_DLL = rb"^[^\n]*DLL (?P<t>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?) - "
_PYTORCH = (
    _DLL + rb"Epoch: (?P<e>\d+) Iteration: (?P<n>\d+) +train\.loss : (?P<loss>\S+)"
    rb"[^\n]*?train\.total_ips : (?P<rate>\S+) [^\n]*\n"
)
_TENSORFLOW = (
    _DLL
    + rb"\((?P<e>\d+), (?P<n>\d+)\) (?:total_ips|imgs_per_sec) : (?P<rate>\S+)(?: +cross_entropy"
    rb" : (?P<loss>\S+) +l2_loss : (?P<loss2>\S+) +total_loss : (?P<loss3>\S+))?[^\n]*\n"
)
# A step as each kind of program prints it: iteration n, clock t, rate, seconds s.
GRAMMARS = {
    "pytorch": _PYTORCH,
    "reference": _PYTORCH,
    "tensorflow": _TENSORFLOW,
    "tf every 10": _TENSORFLOW,
    "nvlog": rb"^:::NVLOG\S+ \S+ (?P<t>\d+\.\d+) \(\S+ iteration: (?P<n>\d+)\n"
    rb":::NVLOG[^\n]*total_ips: (?P<rate>\S+)\n",
    "oneflow": rb"^[^\n]*iter (?P<n>\d+), loss: (?P<loss>[^,]+),[^\n]* samples/s: (?P<rate>\S+)"
    rb"(?: (?P<t>\d+\.\d+))?\n",
    "bert": rb"^[^\n]*step: (?P<n>\d+), total_loss: (?P<loss>[^,]+), mlm_loss: (?P<loss2>[^,]+),"
    rb" nsp_loss: (?P<loss3>[^,]+), throughput: (?P<rate>\S+) (?P<t>\d+\.\d+)\n",
    "gpt": rb"^\| +(?P<n>\d+) +\| +\d+ +\| +\d+ +\| +(?P<rate>\S+) +\| +(?P<s>\S+) +\|"
    rb" +(?P<loss>\S+) +\|\n",
    "all_reduce": rb"^iteration=(?P<n>\d+) us=(?P<s>\S+) busbw=(?P<rate>\S+) GB/s\n",
}
_RESULT = rb"(?:train_throughput :|Average total_ips:) ([\d.]+)"
_MEAN = rb"((?:- Summary: |Epoch: \d+  )[^\n]*total_ips : |train_throughput : |Average total_ips: )"


@dataclass(frozen=True)
class Base:
    """An honest log, and how it is to be read.

    Args:
        samples: of an iteration, or GB on the bus of an all-reduce.
        marks: that it may have.
        path: that tells its case.
    """

    kind: str
    workload: str
    rule: str
    window: str
    options: str
    samples: str
    marks: str
    has_header: str
    path: str
    source: str

    def bytes(self) -> bytes:
        return (HERE.parent / "samples" / self.source).read_bytes()

    def log(self) -> "Log":
        return Log(self.kind, self.bytes(), float(self.samples) / self.unit_s)

    @property
    def unit_s(self) -> float:
        """Of the seconds that it prints."""
        return 1e-6 if self.kind == "all_reduce" else 1


class Log:
    """A log as records of steps and what is between them; each can be changed."""

    def __init__(self, kind: str, text: bytes, work: float = 0) -> None:
        self._pattern, self._work = re.compile(GRAMMARS[kind], re.M), work
        self.read(text)

    def read(self, text: bytes) -> None:
        self.parts: list[bytes] = []
        self.places: list[int] = []
        at = 0
        for found in self._pattern.finditer(text):
            self.parts += [text[at : found.start()], found[0]]
            self.places.append(len(self.parts) - 1)
            at = found.end()
        self.parts.append(text[at:])

    def __len__(self) -> int:
        return len(self.places)

    @property
    def all(self) -> range:
        return range(len(self))

    def text(self) -> bytes:
        return b"".join(self.parts)

    def __getitem__(self, step: int) -> bytes:
        return self.parts[self.places[step]]

    def __setitem__(self, step: int, line: bytes) -> None:
        self.parts[self.places[step]] = line

    def get(self, step: int, name: str) -> bytes:
        """A field of a step; empty where its program prints none."""
        found = self._pattern.match(self[step]) if name in self._pattern.groupindex else None
        return found[name] or b"" if found else b""

    def put(self, step: int, name: str, value: bytes) -> None:
        found = self._pattern.match(self[step])
        if found and name in self._pattern.groupindex and found[name]:
            start, end = found.span(name)
            self[step] = self[step][:start] + value + self[step][end:]

    def has(self, name: str) -> bool:
        return bool(len(self) and self.get(0, name))

    def number(self, step: int) -> int:
        return int(self.get(step, "n"))

    def rate(self, step: int) -> float:
        return float(self.get(step, "rate"))

    def at(self, number: int) -> int:
        return next(step for step in self.all if self.number(step) == number)

    def clock(self, step: int) -> int:
        """Nanoseconds since 1970."""
        text = self.get(step, "t").decode()
        if "-" in text:
            return (datetime.fromisoformat(text) - _EPOCH) // timedelta(microseconds=1) * 1000
        whole, _, decimals = text.partition(".")
        return int(whole) * S + int(decimals.ljust(9, "0")[:9])

    def set_clock(self, step: int, time_ns: int) -> None:
        text = self.get(step, "t")
        new = f"{time_ns // S}.{time_ns % S:09}"[: len(text.partition(b".")[2]) - 9 or None]
        if b"-" in text:
            new = f"{_EPOCH + timedelta(microseconds=time_ns // 1000):%Y-%m-%d %H:%M:%S.%f}"
        self.put(step, "t", new.encode())

    def move(self, steps: Iterable[int], by_ns: int) -> None:
        for step in steps if self.has("t") else ():
            self.set_clock(step, self.clock(step) + by_ns)

    def stretch(self, factor: float) -> None:
        """Let the clock go slower, and the seconds with it."""
        self.scale(self.all, "s", factor)
        began = self.clock(0) if self.has("t") else 0
        for step in self.all if began else ():
            self.set_clock(step, began + int((self.clock(step) - began) * factor))

    def scale(self, steps: Iterable[int], name: str, factor: float) -> None:
        """Multiply a printed number, with as many decimals as before."""
        for step in steps:
            if text := self.get(step, name):
                self.put(step, name, rounded(float(text) * factor, text))

    def slow(self, step: int, times: float) -> None:
        """Let a step take so many times as long, by clock, seconds and rate."""
        if self.has("t"):
            took_ns = self.clock(step) - self.clock(step - 1)
            self.move(range(step, len(self)), int((times - 1) * took_ns))
        self.scale([step], "rate", 1 / times)
        if took := self.get(step, "s"):
            self.put(step, "s", rounded(self._work / self.rate(step), took))

    def conclude(self) -> None:
        """Set every mean of rates that is printed at the end to what the steps now give."""
        mean = fmean(map(self.rate, self.all))
        new = re.sub(_MEAN + rb"([\d.]+)", lambda it: it[1] + rounded(mean, it[2]), self.parts[-1])
        self.parts[-1] = new

    def sub(self, pattern: bytes, new: bytes) -> None:
        self.read(re.sub(pattern, new, self.text(), flags=re.M))

    def grow(self, pattern: bytes, factor: int, more: int) -> None:
        """Change the numbers in the second group of a pattern, before the steps."""
        head = self.parts[0]
        for found in [*re.finditer(pattern, head)][::-1]:
            number = b"%d" % (int(found[2]) * factor + more)
            head = head[: found.start(2)] + number + head[found.end(2) :]
        self.parts[0] = head

    def window(self, base: Base) -> tuple[int, int]:
        """The first and the last step that the number stands on."""
        if base.window:
            first, last = map(int, base.window.split(":"))
            return self.at(first), self.at(last)
        return len(self) - 5 if base.rule == "latency" else 0, len(self) - 1


def rounded(value: float, like: bytes) -> bytes:
    """A number with the decimals of another."""
    return f"{value:.{len(like.partition(b'.')[2])}f}".encode()


def truth(base: Base, text: bytes) -> tuple[float, ...]:
    """What a log's own words give; of rates, with and without the step that opens the window."""
    log = Log(base.kind, text)
    if base.rule == "none":
        return ()
    if base.rule == "reported":
        return (float(re.findall(_RESULT, text)[-1]),)
    first, last = log.window(base)
    if base.rule == "latency":
        return (float(base.samples) / fmean(float(log.get(k, "s")) for k in log.all[first:]),)
    if base.rule == "rates":
        rates = [log.rate(step) for step in range(first, last + 1)]
        return harmonic_mean(rates), harmonic_mean(rates[1:])
    ahead, took_ns = log.number(last) - log.number(first), log.clock(last) - log.clock(first)
    return (float(base.samples) * ahead * S / took_ns,)


def contradiction(base: Base, text: bytes) -> tuple[float, float, float]:
    """How far a log's second source is from its first: in a step, in the window, in its result."""
    try:
        log = Log(base.kind, text)
        pairs = _pairs(base, log, *log.window(base))
        result = truth(base, text)[0] / fmean(map(log.rate, log.all)) - 1
        took, told = map(sum, zip(*pairs, strict=True))
        worst = max(abs(a / b - 1) for a, b in pairs)
        return worst, abs(took / told - 1), abs(result) if base.rule == "reported" else 0
    except (ValueError, ArithmeticError, StopIteration, IndexError):
        return inf, inf, inf


def _pairs(base: Base, log: Log, first: int, last: int) -> list[tuple[float, float]]:
    """Seconds of each step by clock or latency, and by rate."""
    steps, samples = range(first, last + 1), float(base.samples)
    if log.has("s"):
        return [(float(log.get(k, "s")) * base.unit_s, samples / log.rate(k)) for k in steps]
    return [
        (
            (log.clock(k) - log.clock(k - 1)) / S,
            samples * (log.number(k) - log.number(k - 1)) / log.rate(k),
        )
        for k in steps[1:]
    ]


@cache
def find_limits(kind: str) -> list[float]:
    """Half as much again as the worst of honest logs so made, or what few digits allow.

    A log that contradicts itself less looks like an honest one.
    """
    alike = next((it for it in FAMILIES if kind in it), (kind,))
    bases = [it for it in BASES if it.kind in alike and it.rule != "none"]
    steps, found = [0.005 / 1.5], [contradiction(it, it.bytes()) for it in bases]
    for base in bases:  # any step may be one of a window; one of 5 times the usual is a gap
        pairs = _pairs(base, log := base.log(), 0, len(log) - 1)
        usual = median(took for took, _ in pairs)
        steps += [abs(took / told - 1) for took, told in pairs if took <= 5 * usual]
    window, result = (max(it[k] for it in found) for k in (1, 2))
    least = 0.007 if len(alike) > 1 else 0.002
    return [1.5 * max(steps), max(1.5 * window, least), max(1.5 * result, 0.002)]


FAMILIES = (("pytorch", "reference", "tensorflow"), ("nvlog", "tf every 10"))
with open(HERE / "bases.csv", encoding="utf-8") as _file:
    BASES = tuple(Base(**row) for row in csv.DictReader(_file))
