"""Reader of the lines that NVIDIA's DLLogger writes: header, one line a step, summary.

Source: DLLogger's StdOutBackend and DeepLearningExamples' image_classification/logger.py; the
variants are those of the logs in PaddlePaddle/Perf, 2020 to 2023.
"""

import hashlib
import re
import sys
from array import array
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from itertools import chain, pairwise
from math import fsum, isfinite
from statistics import median
from struct import Struct
from typing import Literal, NamedTuple

from orchestrator.model.log import Moment, Rate, TrainingLog
from orchestrator.model.problem import Problem

UNIT = "images/s"
HELD = 2_000_000
"""Steps of which a reader holds the rates: 16 MB; beyond them a median is not given."""

# Pieces of one size, however the bytes arrive: no sum and no verdict depends on the chunks.
_PIECE = 256 * 1024
_LONGEST = 1024 * 1024
_LONGEST_RECORD = 64 * 1024
_JUMPS = 1000
_RECENT = 100_000

_STAMP = rb"(?P<stamp>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{6})?)"  # str(datetime) drops .000000
_NUMBER = rb"-?(?:\d{1,30}(?:\.\d{1,30})?(?:[eE][-+]?\d{1,2})?|nan|inf)"
_STEP = re.compile(
    rb"(?:\[\d{1,9},(?P<rank>\d{1,9})\]<std(?:out|err)>:)?DLL " + _STAMP + rb" - "
    rb"Epoch: (?P<epoch>\d{1,9}) Iteration: (?P<iteration>\d{1,15})"
    rb"(?: +[A-Za-z_][\w.]* : " + _NUMBER + rb"(?: (?:None|s|im(?:g|ages)/s))?)*?"
    rb" +train\.total_ips : (?P<rate>" + _NUMBER + rb") im(?:g|ages)/s"
)
_OTHER = re.compile(
    rb"DLL "
    + _STAMP
    + rb" - (?:(?P<header>PARAMETER) |(?P<summary>Summary): |Epoch: \d{1,9}  [a-z]"
    rb"|Epoch: \d{1,9} Iteration: \d{1,15} Validation Iteration: \d"
    rb"|(?!PARAM|Summ|Epoch|Iter)[A-Za-z])"
)
_ANSI = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\r\n]*(?:\x07|\x1b\\)|[@-Z\\^_])")
_LOST = re.compile(rb"train\.loss : -?(?:nan|inf)")
_ZEROS = bytes.maketrans(b"123456789", b"0" * 9)

Kind = Literal["step", "lost", "header", "summary", "malformed", "nothing"]
Value = str | int | float | bool


class _Layout(NamedTuple):
    """What lines of one shape are, and where a step's fields lie in them."""

    kind: Kind
    """A step whose loss is not finite is lost."""
    fields: str = ""


@lru_cache(maxsize=256)
def _struct(fields: str, lines: int) -> Struct:
    return Struct("=" + fields * lines)


def _step(line: bytes) -> re.Match[bytes] | None:
    """The one step that ``line`` holds; None if it holds none, or more than one writer's text."""
    alone = line.count(b"DLL ") == 1 and line.count(b"Iteration:") == 1
    return _STEP.search(line) if alone else None


def _suspect(line: bytes) -> bool:
    """Whether ``line`` begins a record, or holds the middle of a step."""
    _, record, after = line.partition(b"DLL ")
    words = (b"Epoch: ", b"Iteration:", b"Summary: ", b"PARAMETER")
    if record and (re.search(rb"DLL \d", line) or any(word in after for word in words)):
        return True
    return b"train." in line.partition(b"Iteration:")[2]


def _understand(shape: bytes) -> _Layout:
    found = _step(shape)
    if found:
        fields, end = "", 0
        for name in ("rank", "stamp", "epoch", "iteration", "rate"):
            begin, stop = found.span(name) if found[name] else (end, end)
            fields += f"{begin - end}x{stop - begin}s"
            end = stop
        fields += f"{len(shape) - end}x"
        return _Layout("lost" if _LOST.search(shape) else "step", fields)
    alone = shape.count(b"DLL ") == 1 and len(shape) <= _LONGEST_RECORD
    other = _OTHER.search(shape) if alone else None
    if other:
        kinds: dict[str | None, Kind] = {"header": "header", "summary": "summary"}
        return _Layout(kinds.get(other.lastgroup, "nothing"))
    return _Layout("malformed" if _suspect(shape) else "nothing")


_understood = lru_cache(maxsize=4096)(_understand)


def _layout(shape: bytes) -> _Layout:
    """What a line is whose digits are all written as 0."""
    if b"DLL" not in shape and b"Iteration:" not in shape:
        return _Layout("nothing")
    return _understood(shape) if len(shape) < 1024 else _understand(shape)


class _Place(NamedTuple):
    """Where in a run a step line says that it stands."""

    rank: bytes
    stamp: bytes
    epoch: int
    number: int


@dataclass(frozen=True, slots=True)
class _Steps:
    """Consecutive step lines, by column."""

    ranks: Sequence[bytes]
    stamps: Sequence[bytes]
    epochs: Sequence[bytes]
    numbers: Sequence[int]
    rates: Sequence[float]
    lines: Sequence[int]

    def __len__(self) -> int:
        return len(self.numbers)

    def place(self, row: int) -> _Place:
        return _Place(self.ranks[row], self.stamps[row], int(self.epochs[row]), self.numbers[row])

    @property
    def opening_stride(self) -> int:
        """Iterations from the first row to the second; 1 where they do not tell."""
        return max(self.numbers[1] - self.numbers[0], 1) if len(self) > 1 else 1

    def heads(self, stride: int) -> list[int]:
        """Rows that do not follow the row before them by ``stride``, the first row always."""
        count = len(self)
        if (
            isinstance(self.numbers, range)
            and self.numbers.step == stride
            and self.epochs.count(self.epochs[0]) == count == self.ranks.count(self.ranks[0])
            and self.stamps == sorted(self.stamps)  # as bytes they sort like the clock
        ):
            return [0]
        places = [self.place(row) for row in range(count)]
        return [0] + [
            row
            for row, (before, here) in enumerate(pairwise(places), 1)
            if here.number - before.number != stride
            or here.epoch != before.epoch
            or here.rank != before.rank
            or here.stamp < before.stamp
        ]


class _Line(NamedTuple):
    """A line of which more is to be said than that it is a step."""

    kind: Kind
    number: int
    text: bytes


def _columns(fields: Sequence[bytes], lines: Sequence[int]) -> tuple[_Steps, ...]:
    if not lines:
        return ()
    ranks, stamps, epochs, numbers, rates = (fields[column::5] for column in range(5))
    return (_Steps(ranks, stamps, epochs, _numbers(numbers), list(map(float, rates)), lines),)


def _numbers(texts: Sequence[bytes]) -> Sequence[int]:
    """The iterations, as a range if they are evenly spaced."""
    first, second = int(texts[0]), int(texts[-1] if len(texts) < 2 else texts[1])
    even = range(first, first + len(texts) * (second - first or 1), second - first or 1)
    # To print what is expected and to compare takes less time than to read what is there.
    if b"%d " * len(even) % tuple(even) == b" ".join(texts) + b" ":
        return even
    return list(map(int, texts))


def _lines(block: bytes, line: int) -> tuple[bytes, Sequence[int]]:
    """The block without terminal control, and the numbers of its lines.

    What stands between two carriage returns is read like a line of its own.
    """
    text = _ANSI.sub(b"", block) if b"\x1b" in block else block
    if b"\r" not in text:
        return text, range(line, sys.maxsize)
    text = text.replace(b"\r\n", b"\n")
    numbers = [
        number
        for number, whole in enumerate(text.split(b"\n"), line)
        for _ in range(whole.count(b"\r") + 1)
    ]
    return text.replace(b"\r", b"\n"), numbers


def _records(block: bytes, line: int) -> tuple[Sequence[_Steps | _Line], int]:
    """What whole lines say, in order, and the number of the line after them.

    A line is known by its shape, that is with every digit written as 0: each new shape is
    understood once, by regular expression. How many lines of one shape follow each other is a
    comparison of bytes, and they are cut at fixed columns. Measured with sha256, MB/s: 80 to 120
    and 48 where no two lines are alike; one regular expression for all lines, which checks
    less, 70 to 90; the shapes in a dictionary, line by line, 55 to 125; splitting at words 75.
    """
    text, numbers = _lines(block, line)
    shapes, known = text.translate(_ZEROS), dict[bytes, _Layout]()
    found, fields, lines = list[_Steps | _Line](), list[bytes](), list[int]()
    begin = at = 0
    while begin < len(text):
        end, count = shapes.index(b"\n", begin) + 1, 1
        shape = shapes[begin:end]
        layout = known.get(shape) or known.setdefault(shape, _layout(shape))
        if layout.kind == "step" and shapes.startswith(shape, end):
            count = _alike(shapes, begin, shape)
            end = begin + count * len(shape)
            cut = _struct(layout.fields, min(count, 64)).iter_unpack
            fields.extend(chain.from_iterable(cut(memoryview(text)[begin:end])))
            lines.extend(numbers[at : at + count])
        elif layout.fields:
            fields.extend(_struct(layout.fields, 1).unpack_from(text, begin))
            lines.append(numbers[at])
        if layout.kind not in ("step", "nothing"):
            found += [*_columns(fields, lines), _Line(layout.kind, numbers[at], text[begin:end])]
            fields, lines = [], []
        begin = end
        at += count
    return [*found, *_columns(fields, lines)], numbers[at]


def _alike(shapes: bytes, begin: int, shape: bytes) -> int:
    """A power of two of lines from ``begin`` on that all have ``shape``."""
    count = 1
    while shapes.startswith(shape * count, begin + count * len(shape)):
        count *= 2
    return count


class _Notes:
    """Problems as they turn up: of each sort the first, and how many there are."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], tuple[int, str]] = {}

    def add(self, code: str, text: str, *, sort: str = "", times: int = 1) -> None:
        count, first = self._seen.get((code, sort), (0, text))
        self._seen[code, sort] = (count + times, first)

    def problems(self) -> tuple[Problem, ...]:
        return tuple(
            Problem(code, first if count == 1 else f"{first} (the first of {count})")
            for (code, _), (count, first) in self._seen.items()
        )


def _whole(text: str) -> int:
    if not re.fullmatch(r"-?[0-9]{1,15}", text):
        raise ValueError("a whole number")
    return int(text)


def _count(text: str) -> int:
    if _whole(text) < 1:
        raise ValueError("a positive number")
    return int(text)


def _scale(text: str) -> float:
    if not re.fullmatch(r"[0-9]{1,15}(?:\.[0-9]{1,15})?", text):
        raise ValueError("a number")
    return float(text)


def _word(text: str) -> str:
    if "  " in text or " :" in text:
        raise ValueError("one value")
    return text


def _flag(text: str) -> bool:
    if text not in ("True", "False"):
        raise ValueError("True or False")
    return text == "True"


_HEADER: Mapping[str, tuple[str, Callable[[str], Value]]] = {
    "batch_size": ("micro_batch_size", _count),
    "world_size": ("world_size", _count),
    "prof": ("iterations", _whole),
    "epochs": ("epochs", _whole),
    "run_epochs": ("run_epochs", _whole),
    "arch": ("arch", _word),
    "num_classes": ("num_classes", _count),
    "model.num_classes": ("num_classes", _count),
    "data": ("data", _word),
    "data_backend": ("data_backend", _word),
    "optimizer_batch_size": ("optimizer_batch_size", _whole),
    "memory_format": ("memory_format", _word),
    "image_size": ("image_size", _count),
    "accumulation_steps": ("accumulation_steps", _count),
    "device": ("device", _word),
    "amp": ("amp", _flag),
    "fp16": ("fp16", _flag),
    "static_loss_scale": ("static_loss_scale", _scale),
    "dynamic_loss_scale": ("dynamic_loss_scale", _flag),
}
_RAW = ("epochs", "run_epochs", "amp", "fp16", "static_loss_scale", "dynamic_loss_scale")


def _items(line: bytes) -> list[tuple[str, str]]:
    """Names and values of a PARAMETER line; an empty value, as ``pretrained_weights :``, stays."""
    _, _, said = line.decode("utf-8", "backslashreplace").partition(" PARAMETER")
    words = re.split(r" ([A-Za-z_][A-Za-z0-9_.]*) : ", said)
    return [(name, value.strip()) for name, value in zip(words[1::2], words[2::2], strict=True)]


class _Header:
    """The PARAMETER lines of one run: one until 2021, then two."""

    def __init__(self, notes: _Notes) -> None:
        self._notes = notes
        self._said: dict[str, Value] = {}
        self._unsure: set[str] = set()
        self.keys: set[str] = set()

    def add(self, line: int, items: Iterable[tuple[str, str]]) -> None:
        for key, text in items:
            self.keys.add(key)
            if key not in _HEADER or text in ("", "None"):
                continue
            name, read = _HEADER[key]
            try:
                value = read(text)
            except ValueError as needed:
                seen = f"line {line}: header: {key} : {text[:40]}; {needed} was needed"
                self._notes.add("MALFORMED", seen, sort=key)
                self._unsure.add(name)
                continue
            if self._said.setdefault(name, value) != value:
                self._unsure.add(name)
                seen = f"line {line}: header: {key} : {text[:40]} against {self._said[name]}"
                self._notes.add("MIXED-CONFIG", seen, sort=name)

    def config(self) -> dict[str, Value]:
        """What the lines agree on, with ``precision`` and ``loss_scale`` drawn from the flags."""
        said = {key: it for key, it in self._said.items() if key not in self._unsure}
        config = {name: value for name, value in said.items() if name not in _RAW}
        flags = [said[name] for name in ("amp", "fp16") if name in said]
        if flags and not {"amp", "fp16"} & self._unsure:
            config["precision"] = "amp" if any(flags) else "fp32"
        if said.get("dynamic_loss_scale"):
            config["loss_scale"] = "dynamic"
        elif (
            config.get("precision") == "amp"
            and "static_loss_scale" in said
            and "dynamic_loss_scale" not in self._unsure
        ):
            config["loss_scale"] = said["static_loss_scale"]
        return config

    def promised(self, first: _Place, epochs: int, stride: int) -> int | None:
        """Step lines that the header promises; None where it promises nothing.

        Of ``--prof N`` the program runs iterations 1 to N - 1, in each epoch.
        """
        prof, last, most = (self._number(name) for name in ("iterations", "epochs", "run_epochs"))
        if prof < 2:
            return None
        asked = last - first.epoch
        whole = max(epochs, min(asked, most) if most > 0 else asked)
        begin = min(max(first.number, 1), stride)
        return max((prof - 1 - begin) // stride + 1, 0) * whole

    def _number(self, name: str) -> int:
        value = self._said.get(name)
        return value if isinstance(value, int) and name not in self._unsure else -1


_EPOCH = datetime(1970, 1, 1)


def _clock_s(stamp: bytes) -> float | None:
    """Seconds since 1970 of a timestamp read as UTC; None if there is no such time."""
    try:
        return (datetime.fromisoformat(stamp.decode("ascii")) - _EPOCH).total_seconds()
    except ValueError:
        return None


def _middle(values: Sequence[float]) -> float:
    """The exact median; of many values only those near it are sorted, in a fifth of the time."""
    if len(values) < 10_000:
        return median(values)
    sample = sorted(values[:: len(values) // 1000])
    low, high = sample[len(sample) * 2 // 5], sample[len(sample) * 3 // 5]
    near = sorted(value for value in values if low <= value <= high)
    below = sum(map(low.__gt__, values))
    left, right = (len(values) - 1) // 2 - below, len(values) // 2 - below
    if left >= 0 and right < len(near):
        return (near[left] + near[right]) / 2
    return median(values)


class _Window:
    """What lies between the two asked iterations, in the first epoch of a run."""

    def __init__(self, ends: tuple[int, int], notes: _Notes) -> None:
        self.first, self.last = ends
        self.start: Moment | None = None
        self.end: Moment | None = None
        self._notes = notes
        self._hash = hashlib.sha256()
        self._steps = 0
        self._before: float | None = None
        self._gaps = deque[float](maxlen=_RECENT)
        self._widest = (0.0, 0, 0)
        self._rated = 0
        self._times = 0.0

    def add(self, steps: _Steps, begin: int, end: int) -> None:
        """Take the rows from ``begin`` to before ``end`` that lie inside."""
        begin = bisect_left(steps.numbers, self.first, begin, end)
        end = bisect_right(steps.numbers, self.last, begin, end)
        rows = range(begin, end)
        self._steps += len(rows)
        self._hash.update(
            b"".join(b"%d %s\n" % (steps.numbers[row], steps.stamps[row]) for row in rows)
        )
        self._time(steps, begin, end)
        rates = [steps.rates[row] for row in rows if steps.numbers[row] > self.first]
        self._rated += len(rates)
        usable = all(isfinite(rate) and rate > 0 for rate in rates)
        self._times += fsum(1 / rate for rate in rates) if usable else float("nan")

    def _time(self, steps: _Steps, begin: int, end: int) -> None:
        for row in range(begin, end):
            number, line = steps.numbers[row], steps.lines[row]
            clock_s = _clock_s(steps.stamps[row])
            if clock_s is None:
                self._notes.add("MALFORMED", f"line {line}: there is no such date or time")
            else:
                self._at(Moment(number, clock_s, line))
            self._before = clock_s

    def _at(self, moment: Moment) -> None:
        if moment.iteration == self.first:
            self.start = moment
        if moment.iteration == self.last:
            self.end = moment
        if self._before is not None:
            gap = moment.clock_s - self._before
            self._widest = max(self._widest, (gap, moment.iteration, moment.line))
            self._gaps.append(gap)

    def repeat(self, place: _Place) -> None:
        """Give up an end of the window that is printed again with another time."""
        clock_s = _clock_s(place.stamp)
        if self.start and place.number == self.first and clock_s != self.start.clock_s:
            self.start = None
        if self.end and place.number == self.last and clock_s != self.end.clock_s:
            self.end = None

    def judge(self) -> None:
        """Note a step that took more than 5 times the median of the last ``_RECENT``."""
        gap, number, line = self._widest
        usual = median(self._gaps) if self._gaps else 0.0
        if usual > 0 and gap > 5 * usual:
            self._notes.add(
                "GAP",
                f"line {line}: iteration {number}, inside the window, took {gap:.3f} s;"
                f" the median step takes {usual:.3f} s",
            )

    @property
    def rate(self) -> float | None:
        """Harmonic mean of the rates after the first iteration up to the last."""
        if self.start and self.end and self._times > 0:
            return self._rated / self._times
        return None

    @property
    def digest(self) -> str:
        return self._hash.hexdigest() if self._steps else ""


class _Run:
    """The steps of one run of the program, summed up as they come."""

    def __init__(self, ends: tuple[int, int], notes: _Notes) -> None:
        self._notes = notes
        self.header = _Header(notes)
        self.window = _Window(ends, notes)
        self.reported: dict[str, float] = {}
        self.steps = 0
        self.first: _Place | None = None
        self.last: _Place | None = None
        self.stride = 0
        self._epochs = 0
        self._jumps: dict[int, tuple[int, str]] = {}
        self._total = 0.0
        self._positive = True
        self._rates = array("d")

    @property
    def in_first_epoch(self) -> bool:
        return self._epochs == 1

    def open_epoch(self, place: _Place, line: int) -> None:
        """Begin to take the steps of a new epoch, which counts from the start or goes on."""
        self._epochs += 1
        if not self.first or not self.last:
            return
        if place.number not in (self.first.number, self.last.number + self.stride):
            seen = f"line {line}: epoch {place.epoch} begins at iteration {place.number}"
            self._notes.add("SKIPPED-STEPS", seen, sort="epoch")

    def jump(self, steps: _Steps, row: int, before: int, *, times: int) -> None:
        """Count pairs of steps that are as far apart as iteration ``before`` and ``row``."""
        here = steps.numbers[row]
        self.stride = here - before
        # Bounded, or a log of random numbers could fill the memory; 0 stands for all others.
        key = self.stride if self.stride in self._jumps or len(self._jumps) < _JUMPS else 0
        seen = f"line {steps.lines[row]}: iteration {here} after {before}"
        count, first = self._jumps.get(key, (0, seen))
        self._jumps[key] = (count + times, first)

    def extend(self, steps: _Steps, begin: int, end: int) -> None:
        """Take the rows from ``begin`` to before ``end``, which follow each other evenly."""
        if begin == end:
            return
        self.first = self.first or steps.place(begin)
        self.last = steps.place(end - 1)
        if end - begin > 1:
            self.jump(steps, begin + 1, steps.numbers[begin], times=end - begin - 1)
        self._take_rates(steps, begin, end)
        if self.in_first_epoch:
            self.window.add(steps, begin, end)

    def _take_rates(self, steps: _Steps, begin: int, end: int) -> None:
        rates = steps.rates[begin:end]
        self.steps += len(rates)
        total = fsum(rates)
        self._total += total
        if self.steps <= HELD:
            self._rates.extend(rates)
        if isfinite(total) and min(rates) > 0:
            return
        self._positive = False
        for row, rate in enumerate(rates, begin):
            if not (isfinite(rate) and rate > 0):
                seen = f"line {steps.lines[row]}: iteration {steps.numbers[row]}: rate {rate:g}"
                self._notes.add("NOT-FINITE", seen)

    def judge(self) -> None:
        """Note what only the whole run shows: steps left out, steps missing at the end."""
        usual = max(self._jumps, key=lambda ahead: (self._jumps[ahead][0], -ahead), default=1)
        for ahead, (count, seen) in self._jumps.items():
            if ahead != usual:
                self._notes.add("SKIPPED-STEPS", seen, times=count)
        first = self.first or _Place(b"", b"", 0, 1)
        if first.number > max(usual, 1):
            seen = f"the log begins at iteration {first.number}"
            self._notes.add("SKIPPED-STEPS", seen, sort="beginning")
        promised = self.header.promised(first, max(self._epochs, 1), max(usual, 1))
        if promised is not None and self.steps < promised:
            self._notes.add("TRUNCATED", f"have {self.steps} of {promised} steps")
        if not self.header.keys:
            self._notes.add("NO-HEADER", "no PARAMETER line before the steps")
        elif lacking := {"batch_size", "prof"} - self.header.keys:
            seen = f"the header does not say {' and '.join(sorted(lacking))}"
            self._notes.add("NO-HEADER", seen)

    @property
    def rate(self) -> Rate | None:
        if not self.steps or not self._positive:
            return None
        if self.steps > HELD:
            return Rate(self.steps, self._total / self.steps, None)
        # One exact sum of all: where the log is cut into blocks shows in no digit.
        return Rate(self.steps, fsum(self._rates) / self.steps, _middle(self._rates))


def _summary(line: bytes) -> dict[str, float]:
    """The finite numbers of a Summary line, by name."""
    found = re.findall(rb" ([A-Za-z_][\w.]*) : (" + _NUMBER + rb")(?=\s|$)", line)
    named = {name.decode("ascii").replace(".", "_"): float(value) for name, value in found}
    if "train_total_ips" in named:
        named["train_throughput"] = named.pop("train_total_ips")
    return {name: value for name, value in named.items() if isfinite(value)}


class _Reader:
    """A log that is being read, from its first byte to its last."""

    def __init__(self, window: tuple[int, int]) -> None:
        self._window = window
        self._notes = _Notes()
        self._run = _Run(window, self._notes)
        self._runs_before = 0
        self._any_steps = False
        self._line = 1
        self._rest = b""

    def feed(self, piece: bytes) -> None:
        """Read what ``piece`` makes whole lines of."""
        cut = piece.rfind(b"\n") + 1 or piece.rfind(b"\r") + 1
        if cut:
            self._take(b"".join((self._rest, memoryview(piece)[:cut])))
            self._rest = piece[cut:]
            return
        self._rest += piece
        if len(self._rest) > _LONGEST:  # such as the hole of zeros that copytruncate leaves
            self._take(self._rest[:-_LONGEST_RECORD] + b"\r")
            self._rest = self._rest[-_LONGEST_RECORD:]

    def close(self) -> None:
        """Read the last line, which no line feed ends.

        A step counts if the unit behind its rate is there, for then its numbers are whole; of any
        other record it cannot be known what is missing.
        """
        before, end, last = self._rest.rpartition(b"\r")
        if end:
            self._take(before + end)
        if _step(_ANSI.sub(b"", last)):
            self._take(last + b"\n")
        elif b"DLL" in last:
            self._notes.add(
                "TRUNCATED",
                f"the log ends in the middle of a record, in line {self._line}",
                sort="record",
            )

    def log(self, size_bytes: int, sha256: str) -> TrainingLog:
        """What has been read."""
        run, notes = self._run, self._notes
        runs = self._runs_before + bool(run.steps or run.header.keys)
        run.judge()
        if not self._any_steps:
            notes.add("NO-STEPS", "no line of an iteration")
        only = run.window if runs == 1 else _Window(self._window, notes)
        only.judge()
        return TrainingLog(
            runs=runs,
            steps=run.steps,
            first_iteration=run.first.number if run.first else None,
            last_iteration=run.last.number if run.last else None,
            config=run.header.config(),
            start=only.start,
            end=only.end,
            rate=run.rate,
            window_rate=only.rate,
            unit=UNIT,
            reported=run.reported,
            digest=only.digest,
            size_bytes=size_bytes,
            sha256=sha256,
            problems=notes.problems(),
        )

    def _take(self, block: bytes) -> None:
        records, self._line = _records(block, self._line)
        for record in records:
            if isinstance(record, _Steps):
                self._steps(record)
            elif record.kind == "header":
                self._header(record)
            elif record.kind == "summary":
                self._run.reported.update(_summary(record.text))
            elif record.kind == "lost":
                after = record.text.partition(b"Iteration: ")[2].decode("ascii", "replace")
                seen = f"line {record.number}: iteration {after.split()[0]}: the loss is not finite"
                self._notes.add("LOSS-NOT-FINITE", seen)
            else:
                self._malformed(record)

    def _steps(self, steps: _Steps) -> None:
        self._any_steps = True
        heads = steps.heads(self._run.stride or steps.opening_stride)
        for begin, end in pairwise([*heads, len(steps)]):
            taken = self._join(steps, begin, steps.numbers[begin + 1 : end][:1])
            self._run.extend(steps, begin if taken else begin + 1, end)

    def _join(self, steps: _Steps, row: int, following: Sequence[int]) -> bool:
        """Judge how a step stands to the one before; False if it only repeats one."""
        run, here, line = self._run, steps.place(row), steps.lines[row]
        last = run.last
        if last is None:
            run.open_epoch(here, line)
            return True
        if here.rank != last.rank and here.rank and last.rank:
            seen = f"line {line}: steps of ranks {int(last.rank)} and {int(here.rank)}"
            self._notes.add("DUP-STEPS", seen, sort="ranks")
        if here[2:] <= last[2:]:
            return self._back(here, line, following)
        if here.stamp < last.stamp:
            seen = f"line {line}: iteration {here.number}: the clock goes backwards"
            self._notes.add("CLOCK-STEP", seen)
        if here.epoch > last.epoch:
            run.open_epoch(here, line)
        else:
            run.jump(steps, row, last.number, times=1)
        return True

    def _back(self, here: _Place, line: int, following: Sequence[int]) -> bool:
        """Tell a second run, which begins anew or goes on from here, from a repeated step."""
        run, last, first = self._run, self._run.last, self._run.first
        seen = f"line {line}: iteration {here.number} of epoch {here.epoch}"
        if last and first and here[2:] != last[2:]:
            goes_on = list(following) == [here.number + (run.stride or 1)]
            if here.epoch < last.epoch or here.number <= first.number or goes_on:
                self._restart(f"{seen} after {last.number} of epoch {last.epoch}")
                self._run.open_epoch(here, line)
                return True
        self._notes.add("DUP-STEPS", f"{seen} is there again")
        if run.in_first_epoch:
            run.window.repeat(here)
        return False

    def _header(self, line: _Line) -> None:
        items = _items(line.text)
        opens = {"data", "arch"} & {name for name, _ in items}  # the other part says model.*
        if opens and (self._run.steps or self._run.header.keys):
            self._restart(f"line {line.number}: another header")
        self._run.header.add(line.number, items)

    def _malformed(self, line: _Line) -> None:
        run, (first, last) = self._run, self._window
        at = run.last.number if run.last else 0
        inside = run.in_first_epoch and first - 1 <= at < last
        where = "inside the window" if inside else "outside the window"
        self._notes.add(
            "MALFORMED",
            f"line {line.number}, {where}, begins as a record but does not match",
            sort=where,
        )

    def _restart(self, seen: str) -> None:
        self._notes.add("SEVERAL-RUNS", seen)
        self._runs_before += 1
        self._run = _Run(self._window, self._notes)


def _pieces(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in pieces of one size, but for the last."""
    parts: list[bytes] = []
    missing = _PIECE
    for chunk in chunks:
        begin = 0
        while len(chunk) - begin >= missing:
            parts.append(chunk[begin : begin + missing])
            yield b"".join(parts)
            begin += missing
            parts, missing = [], _PIECE
        parts.append(chunk[begin:])
        missing -= len(chunk) - begin
    yield b"".join(parts)


def read(chunks: Iterable[bytes], window: tuple[int, int]) -> TrainingLog:
    """What a log says, the same however its bytes are cut into chunks.

    Holds at most ``HELD`` rates and a few blocks of the log in memory.

    Args:
        window: first and last iteration, by the log's own numbers, in its first epoch.
    """
    reader, sha256, size_bytes = _Reader(window), hashlib.sha256(), 0
    for piece in _pieces(chunks):
        sha256.update(piece)
        size_bytes += len(piece)
        reader.feed(piece)
    reader.close()
    return reader.log(size_bytes, sha256.hexdigest())


def progress(block: bytes) -> tuple[int, float] | None:
    """Iteration and printed rate of the last whole step line in ``block``; None without one."""
    text = _ANSI.sub(b"", block) if b"\x1b" in block else block
    text = text.replace(b"\r", b"\n")
    end = len(text)
    while (at := text.rfind(b"Iteration: ", 0, end)) >= 0:
        end = text.rfind(b"\n", 0, at) + 1
        found = _step(text[end:].partition(b"\n")[0])
        if found and isfinite(rate := float(found["rate"])):
            return int(found["iteration"]), rate
    return None
