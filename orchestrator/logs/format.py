"""What is peculiar to the log of one program: a table, and at most four small functions."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from math import isfinite, nan
from typing import TYPE_CHECKING, NamedTuple

from orchestrator import words
from orchestrator.logs import clock
from orchestrator.logs.header import Table, Value
from orchestrator.model.log import Rule

if TYPE_CHECKING:
    from orchestrator.logs.engine import Reader
    from orchestrator.logs.run import Run

# A group is made to give nothing back by (?>...), here and in formats: Python before 3.11.5 matches
# possessive repeats of groups wrongly (python/cpython#106052).
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
"""Words of a program that failed, of its launcher, or of the shell."""
NUMBER = rb"(?:-?\d{1,30}+(?>(?:\.\d{1,30}+)?)(?>(?:[eE][-+]?\d{1,2}+)?)" + LOST + rb")"
TAG = rb"(?:[^\[]{0,80}\[\d{1,9},\d{1,9}\]<std(?:out|err)>:)?[ \t]*"
"""What may stand before a line of a header: mpirun's tag, with or without a time, and blanks."""
RANK = rb"(?:\[\d{1,9},(?P<rank>\d{1,9})\]<std(?:out|err)>:)?"
_GROUPS = ("rank", "series", "clock", "epoch", "iteration", "rate", "latency", "words")


class Step(NamedTuple):
    """A step as it was printed; what its format does not print is empty, or epoch 0.

    Args:
        rank: by mpirun's tag.
        series: what the program calls its rates.
        latency_ns: nanoseconds of an iteration, NaN for a lost number; None where none is printed.
        text: what was printed, without tags of a launcher.
    """

    rank: bytes
    series: bytes
    stamp: bytes
    epoch: int
    number: int
    rate: float
    latency_ns: float | None
    text: bytes
    line: int

    @property
    def place(self) -> tuple[int, int]:
        """Epoch and iteration."""
        return self.epoch, self.number

    @property
    def evidence(self) -> bytes:
        """Return what no other run prints: number and time, or all of it where no time is."""
        return b"%d %s" % (self.number, self.stamp) if self.stamp else self.text

    @property
    def words(self) -> bytes:
        """Return losses and rate, as printed beside the time."""
        return self.text.replace(self.stamp, b"", 1)


class Agreement(NamedTuple):
    """Limits on the difference between a clock and the rates printed beside it.

    Defaults are above the largest difference in recorded logs with a line a step: 2.2 % of a step
    (V100, 8 GPUs, step 53), 0.6 % of 20 steps or more.

    Args:
        step: share of the time from one printed step to the next.
        window: share of a window's time.
        late_ns: how late a line may be printed, besides.
        window_late_ns: the same for the ends of a window.
    """

    step: float = 0.03
    window: float = 0.007
    late_ns: float = 2e6
    window_late_ns: float = 2e6


AGREEMENT = Agreement()


class Promise(NamedTuple):
    """What a header says of the steps to come; None where it says nothing.

    Args:
        interval: from one printed step to the next.
        first: the latest number at which the log may begin; None for one interval.
        lines: of steps, in all epochs.
        least, most: iterations of an epoch, as far as the header tells.
        batch: samples of an iteration, or what else the unit counts.
        tells: keys of the config that every whole header of this sort says.
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
    """How one program logs.

    Args:
        step: pattern of a step, with groups ``iteration`` and ``rate`` and, where they are printed,
            ``clock``, ``epoch``, ``latency``, ``series``, and ``words`` where not all of the match
            is the program's. Where a number may be lost it allows ``LOST``. Lines of steps with
            other text around them may match as well.
        marks: a line without any of these words is no business of this format.
        alone: words that stand once in a line that holds one step and no piece of another.
        lost: finds a loss that is not finite in the line of a step.
        sealed: finds a record that is whole although nothing ends its line; None if none ever is.
        end: finds the program's own words at the end of a run that went well; None if it has none.
        cut: words of which one is in a record's beginning, if a log ends in it.
        clock: a printed time in ns, None if there is no such time; None for a program that
            prints none.
        agreement: between that time and the printed rates.
        averaged: whether a rate is the mean since the line before, not that of one step.
        latencies_a_second: units of the printed latency in a second.
        digits: the last printed digit of a rate, in its unit, and of a latency, in seconds.
        base: the number of a run's first iteration.
        window: first and last iteration that are measured unless requested otherwise; None for the
            last ``tail`` records.
        reporting: series, or modes by the header, whose own result counts instead of a window.
        header: arguments by the program's names.
        needed: keys of the header without any of which it is not whole, by what is missing then.
        headerless: code and text of a log without a header.
        event: takes a line that is no step; whether it was one of this format.
        broken: whether a line that is neither begins as a record or holds the end of one.
        config: what a run's header says, with what follows from it.
        promise: what a run's header says of its steps.
    """

    unit: str
    rule: Rule = "clock"
    step: bytes
    marks: tuple[bytes, ...]
    alone: tuple[bytes, ...] = ()
    lost: re.Pattern[bytes]
    sealed: re.Pattern[bytes] | None = None
    end: re.Pattern[bytes] | None = None
    cut: tuple[bytes, ...] = ()
    clock: Callable[[bytes], int | None] | None = clock.of_stamp
    agreement: Agreement = AGREEMENT
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
    broken: Callable[[bytes], bool]
    config: Callable[["Run"], dict[str, Value]]
    promise: Callable[["Run"], Promise]

    def __post_init__(self) -> None:
        """Check ``step``, whose author may have written it for a plug-in.

        Raises:
            ValueError: it is no pattern, or a group is missing or has a name of no use.
        """
        groups = {name.decode() for name in re.findall(rb"\(\?P<(\w+)>", self.step)}
        if missing := [name for name in ("iteration", "rate") if name not in groups]:
            raise ValueError(f"`step` of the log format has no group (?P<{missing[0]}>...)")
        if unknown := groups.difference(_GROUPS):
            known = words.any_of(_GROUPS)
            raise ValueError(f"`step` has a group {min(unknown)!r}; needed one of {known}")
        try:
            _complete(RANK + self.step)
        except re.error as error:
            raise ValueError(f"`step` of the log format is no pattern: {error}") from error

    @cached_property
    def one(self) -> re.Pattern[bytes]:
        """Finds a step in a line."""
        return _complete(RANK + self.step)

    @cached_property
    def concerns(self) -> Callable[[bytes], object]:
        """Finds any word of this format, or of a crash, in a line."""
        return re.compile(b"|".join((*map(re.escape, self.marks), CRASH))).search

    def match(self, line: bytes) -> re.Match[bytes] | None:
        """The one step in a line; None without one, or with another writer's text."""
        for word in self.alone:
            if line.count(word) != 1:
                return None
        return self.one.search(line)

    def read(self, line: bytes, line_number: int) -> Step | None:
        """Return the step in a line of the log, None if it holds none."""
        found = self.match(line)
        if found is None:
            return None
        rank, series, stamp, epoch, iteration, rate, latency, words = found.group(*_GROUPS)
        return Step(
            rank or b"",
            series,
            stamp or b"",
            int(epoch or 0),
            int(iteration),
            number(rate),
            self._nanoseconds(latency) if latency else None,
            b" ".join(words.split()) if words else found[0].strip(),
            line_number,
        )

    def _nanoseconds(self, latency: bytes) -> float:
        """Whole nanoseconds of a printed latency, NaN for a lost one."""
        if not isfinite(number(latency)):
            return nan
        return clock.of_seconds(latency) // self.latencies_a_second

    def place(self, step: Step) -> str:
        """Where in a run a step is, in words."""
        has_epochs = b"(?P<epoch>" in self.step
        return f"{step.number} of epoch {step.epoch}" if has_epochs else str(step.number)

    def goes_back(self, stamp: bytes, before: bytes) -> bool:
        """Whether a time lies before the one that was printed before it."""
        if stamp.find(b".") == before.find(b"."):  # of one form, so that they sort by their bytes
            return stamp < before
        if self.clock is None or not stamp or not before:
            return False
        here, there = self.clock(stamp), self.clock(before)
        return stamp < before if here is None or there is None else here < there


def number(text: bytes) -> float:
    """Return a printed number; NaN for one that some C library could not print."""
    try:
        return float(text)
    except ValueError:  # nan(ind)
        return nan


def _complete(step: bytes) -> re.Pattern[bytes]:
    """The pattern with all groups; one that the program does not print matches nothing."""
    groups = (b"(?P<%s>" % name.encode() for name in _GROUPS)
    missing = (group + b")" for group in groups if group not in step)
    return re.compile(step + b"".join(missing))
