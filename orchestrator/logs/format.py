"""The description of one program's log: a table, and at most four small functions."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import isfinite, nan
from typing import TYPE_CHECKING, NamedTuple

from orchestrator import words
from orchestrator.logs import clock
from orchestrator.logs.header import Table, Value
from orchestrator.model.log import Rule

if TYPE_CHECKING:
    from orchestrator.logs.engine import Reader, Run

# Groups are atomic, (?>...), here and in formats: Python before 3.11.5 matches possessive repeats
# of groups wrongly (python/cpython#106052).
LOST = rb"|[-+]?(?i:nan(?:\([\w-]{0,20}\))?|inf(?:inity)?)"
"""Matches a number that is not finite: nan, -inf, NaN(ind)."""
CRASH = (
    rb"Traceback \(most recent call last\)|Segmentation fault|core dumped|Bus error|(?<!\w)Killed"
    rb"|(?<!\w)Aborted|NCCL (?:error|failure)|ncclSystemError|ncclInternalError"
    rb"|unhandled (?:system|cuda) error|CUDA error|Check failed:|terminate called after throwing"
    rb"|Fatal Python error|MPI_ABORT was invoked|SIG(?:KILL|SEGV|ABRT|BUS|TERM)(?!\w)"
    rb"|exit(?:ed|s)? (?:on signal|with (?:return )?(?:code|status)) [1-9]"
    rb"|exit ?(?:code|status)\W{1,3}-?[1-9]|non-zero (?:exit )?(?:code|status)|srun: error:"
    rb"|CUDA out of memory"
    # [rank0]: torch.cuda.OutOfMemoryError: no space; KeyboardInterrupt
    rb"|^(?:[^\s:]{0,80}:\s{0,4})?(?:\w{1,40}\.){0,8}[A-Z]\w{0,60}(?:Error|Exception|Interrupt)(?=:\s|:?$)"
)
"""Matches what a failed program, its launcher or the shell prints."""
NUMBER = rb"(?:-?\d{1,30}+(?>(?:\.\d{1,30}+)?)(?>(?:[eE][-+]?\d{1,2}+)?)" + LOST + rb")"
TAG = rb"(?:[^\[]{0,80}\[\d{1,9},\d{1,9}\]<std(?:out|err)>:)?[ \t]*"
"""Matches what may precede a line of a header: mpirun's tag, with or without a time, and blanks."""
_GROUPS = ("series", "clock", "epoch", "iteration", "rate", "latency", "words")


class Step(NamedTuple):
    """A step as it is printed; what its format does not print is empty, None, or epoch 0.

    Args:
        series: the program's name of its rates.
        clock_ns: of the stamp; None also if there is no such time.
        latency_ns: of an iteration, NaN for a lost number.
        text: without tags of a launcher.
    """

    series: bytes
    stamp: bytes
    clock_ns: int | None
    epoch: int
    number: int
    rate: float
    latency_ns: float | None
    text: bytes
    line: int

    @property
    def place(self) -> tuple[int, int]:
        return self.epoch, self.number

    @property
    def where(self) -> str:
        return f"line {self.line}: iteration {self.number}"

    @property
    def evidence(self) -> bytes:
        """Return bytes that no other run prints: number and time, or the text if it has no time."""
        return b"%d %s" % (self.number, self.stamp) if self.stamp else self.text


class Agreement(NamedTuple):
    """Limits on the difference between a clock and the rates printed beside it.

    ``step`` and ``window`` are shares of their times. Besides, a line may be late by so many ns.
    Defaults are above the largest difference in recorded logs with a line a step: 2.2 % of a step
    (V100, 8 GPUs, step 53), 0.6 % of 20 steps or more.
    """

    step: float = 0.03
    window: float = 0.007
    late_ns: float = 2e6
    window_late_ns: float = 2e6


class Promise(NamedTuple):
    """The steps that a header promises; None where it says nothing.

    Args:
        interval: from one printed step to the next.
        first: the latest number at which the log may begin; None for one interval.
        lines: of steps, in all epochs.
        least, most: iterations of an epoch.
        batch: samples of an iteration, or what else the unit counts.
        tells: keys of the config that every whole header of this sort has.
    """

    interval: int | None = None
    first: int | None = None
    lines: int | None = None
    least: int | None = None
    most: int | None = None
    epochs: int | None = None
    batch: float | None = None
    tells: frozenset[str] = frozenset({"micro_batch_size", "precision", "world_size"})


@dataclass(frozen=True, kw_only=True, eq=False)
class Format:
    """The log format of one program.

    Args:
        step: pattern of a step, with groups ``iteration`` and ``rate`` and, where they are printed,
            ``clock``, ``epoch``, ``latency``, ``series``, and ``words`` where not all of the match
            is the program's. Where a number may be lost it allows ``LOST``.
        marks: words; lines without any of them are ignored.
        alone: words that a line with one step and no piece of another has exactly once.
        lost: finds a loss that is not finite in the line of a step.
        sealed: finds a record that is whole although nothing ends its line.
        end: finds what the program prints at the end of a run that went well.
        clock: converts a printed time to ns, or to None if there is no such time; None for a
            program that prints none.
        averaged: True if a rate is the mean since the line before, not that of one step.
        latencies_a_second: units of the printed latency in a second.
        digits: the last printed digit of a rate, in its unit, and of a latency, in seconds.
        base: the number of a run's first iteration.
        window: first and last iteration that are measured unless requested otherwise; None for the
            last ``tail`` records.
        reporting: series, or modes by the header, whose own result counts instead of a window.
        header: arguments by the program's names.
        needed: name of each part of a whole header, with the keys of which one must be there.
        headerless: code and text of a log without a header.
        event: reads a line that is no step; returns True if the line is of this format.
        broken: finds the beginning or the end of a record in a line that is neither.
        config: returns a run's configuration by its header; by default, all of its values.
    """

    unit: str
    rule: Rule = "clock"
    step: bytes
    marks: tuple[bytes, ...]
    alone: tuple[bytes, ...] = ()
    lost: re.Pattern[bytes]
    sealed: re.Pattern[bytes] | None = None
    end: re.Pattern[bytes] | None = None
    clock: Callable[[bytes], int | None] | None = clock.of_stamp
    agreement: Agreement = field(default_factory=Agreement)
    averaged: bool = False
    latencies_a_second: int = 1
    digits: tuple[float, float] | None = None
    base: int = 1
    window: tuple[int, int] | None
    tail: int = 0
    reporting: frozenset[str] = frozenset()
    header: Table = field(default_factory=dict)
    needed: tuple[tuple[str, frozenset[str]], ...] = ()
    headerless: tuple[str, str]
    event: Callable[["Reader", bytes], bool]
    broken: Callable[[bytes], object]
    config: Callable[["Run"], Mapping[str, Value]] = lambda run: run.header.values
    promise: Callable[["Run"], Promise]

    def __post_init__(self) -> None:
        """Check ``step``, which the author of a plug-in may have written.

        Raises:
            ValueError: it is no pattern, or a group is missing or has an unknown name.
        """
        try:
            groups = re.compile(self.step).groupindex.keys()
        except re.error as error:
            raise ValueError(f"`step` of the log format is no pattern: {error}") from error
        if not {"iteration", "rate"} <= groups:
            missing = "rate" if "iteration" in groups else "iteration"
            raise ValueError(f"`step` of the log format has no group (?P<{missing}>...)")
        for name in groups - {*_GROUPS}:
            raise ValueError(f"`step` has a group {name!r}; needed one of {words.any_of(_GROUPS)}")

    @cached_property
    def pattern(self) -> re.Pattern[bytes]:
        """Finds a step in a line; groups that ``step`` lacks match nothing."""
        groups = (b"(?P<%s>" % name.encode() for name in _GROUPS)
        absent = b"".join(group + b")" for group in groups if group not in self.step)
        return re.compile(self.step + absent)

    @cached_property
    def concerns(self) -> Callable[[bytes], object]:
        """Finds any of ``marks``, or a crash, in a line."""
        return re.compile(b"|".join((*map(re.escape, self.marks), CRASH))).search

    def read(self, line: bytes, line_number: int) -> Step | None:
        """Return the step in a line, None if it has none or text of another writer, too."""
        for word in self.alone:
            if line.count(word) != 1:
                return None
        found = self.pattern.search(line)
        if found is None:
            return None
        series, stamp, epoch, iteration, rate, latency, words = found.group(*_GROUPS)
        latency_ns = None
        if latency:
            is_lost = not isfinite(parse_number(latency))
            latency_ns = nan if is_lost else clock.of_seconds(latency) // self.latencies_a_second
        return Step(
            series,
            stamp or b"",
            self.clock(stamp) if stamp and self.clock else None,
            int(epoch or 0),
            int(iteration),
            parse_number(rate),
            latency_ns,
            b" ".join(words.split()) if words else found[0].strip(),
            line_number,
        )

    def place(self, step: Step) -> str:
        has_epochs = b"(?P<epoch>" in self.step
        return f"{step.number} of epoch {step.epoch}" if has_epochs else str(step.number)


def parse_number(text: bytes) -> float:
    """Return a printed number; NaN for one that some C library could not print."""
    try:
        return float(text)
    except ValueError:  # nan(ind)
        return nan
