"""What a log says between the two iterations of a window, in the first epoch of a run."""

import hashlib
from collections import deque
from collections.abc import Sequence
from itertools import pairwise
from math import inf, isfinite, nan
from statistics import median

from orchestrator.logs.block import Block
from orchestrator.logs.format import Format, Step
from orchestrator.logs.notes import Notes
from orchestrator.logs.rates import Rates
from orchestrator.model.log import SECOND_NS, Moment

_RECENT = 100_000


class Window:
    """The steps inside a window, summed up.

    Args:
        ends: the first and the last iteration; None where all steps are evidence and none an end.
    """

    def __init__(self, ends: tuple[int, int] | None, form: Format, notes: Notes) -> None:
        self.ends = ends
        self._form = form
        self._notes = notes
        self._first, self._last = ends or (0, 0)
        self._start: tuple[Step, int | None] | None = None
        self._end: tuple[Step, int | None] | None = None
        self._hash = hashlib.sha256()
        self._steps = 0
        self._origin_ns: int | None = None
        self._before: tuple[int, int] | None = None
        self._gaps_ns = deque[float](maxlen=_RECENT)
        self._widest = (0.0, 0, 0, 0)
        self._rates = Rates()
        self._rated = 0
        self._times = 0.0

    def add(self, step: Step) -> None:
        """Take the next step, if it lies inside; clocks count from the first one of all."""
        if self._origin_ns is None and self._form.clock and step.stamp:
            self._origin_ns = self._form.clock(step.stamp)
        if self.ends is None:
            self._hash_in([step])
        elif self._first <= step.number <= self._last:
            self._take([step])

    def add_block(self, block: Block) -> None:
        """Take the steps of a block, as far as they lie inside."""
        if self.ends is None:
            self._hash_all(block, slice(None))
        else:
            rows = block.rows(self._first, self._last)
            clocks_ns = self._clocks_ns(block, rows)
            if clocks_ns is None:
                self._take(list(block.steps(rows)))
            else:
                self._take_rows(block, rows, clocks_ns)

    def _hash_all(self, block: Block, rows: slice) -> None:
        self._steps += len(block.numbers[rows])
        self._hash.update(block.evidence(rows))

    def _clocks_ns(self, block: Block, rows: slice) -> list[int] | None:
        """The times of steps by the block; None where each step must be looked at."""
        if block.last.words or not (self._form.clock and block.stamps):
            return None
        clocks_ns = [self._form.clock(stamp) for stamp in block.stamps[rows]]
        known_ns = [clock_ns for clock_ns in clocks_ns if clock_ns is not None]
        return known_ns if len(known_ns) == len(clocks_ns) else None

    def _take_rows(self, block: Block, rows: slice, clocks_ns: Sequence[int]) -> None:
        """Take steps as ``_take`` does, in a third of its time."""
        numbers, lines, rates = block.numbers[rows], block.lines[rows], block.rates[rows]
        self._hash_all(block, rows)
        self._rates.extend(rates)
        counted = rates[1:] if numbers[:1] == range(self._first, self._first + 1) else rates
        self._rated += len(counted)
        for rate in counted:
            self._times += 1 / rate
        self._gaps(numbers, clocks_ns, lines)
        for end in {self._first, self._last} & {*numbers[:1], *numbers[-1:]}:
            (step,) = block.steps(block.rows(end, end))
            self._take_end(step, clocks_ns[numbers.index(end)])

    def damage(self) -> None:
        """Take note of a broken record behind the last step."""

    def misses(self, before: int | None, after: int | None) -> bool | None:
        """Whether a step that was lost between these two, if there are such, could lie inside."""
        if self.ends is None:
            return False
        return (before is None or before < self._last) and (after is None or after > self._first)

    def _hash_in(self, steps: Sequence[Step]) -> None:
        self._steps += len(steps)
        self._hash.update(b"".join([step.evidence + b"\n" for step in steps]))

    def _take(self, steps: Sequence[Step]) -> None:
        self._hash_in(steps)
        self._rates.extend([step.rate for step in steps])
        clock = self._form.clock
        for step in steps:
            if step.number > self._first:
                self._rated += 1
                self._times += 1 / step.rate if 0 < step.rate < inf else nan
            clock_ns = clock(step.stamp) if clock and step.stamp else None
            if clock_ns is not None and self._before is not None:
                self._gap(step.number, clock_ns, step.line)
            self._before = None if clock_ns is None else (step.number, clock_ns)
            if step.number in (self._first, self._last):
                self._take_end(step, clock_ns)
            if clock_ns is None and step.stamp:
                self._notes.add("MALFORMED", f"line {step.line}: there is no such date or time")

    def _take_end(self, step: Step, clock_ns: int | None) -> None:
        if clock_ns is None and step.stamp:
            return
        if step.number == self._first:
            self._start = (step, clock_ns)
        if step.number == self._last:
            self._end = (step, clock_ns)

    def _gaps(self, numbers: range, clocks_ns: Sequence[int], lines: Sequence[int]) -> None:
        """Take the times of iterations that follow each other and the step before."""
        if not numbers:
            return
        if self._before is not None:
            self._gap(numbers[0], clocks_ns[0], lines[0])
        gaps_ns = [(here - before) / numbers.step for before, here in pairwise(clocks_ns)]
        self._gaps_ns.extend(gaps_ns)
        if gaps_ns and (widest := max(gaps_ns)) >= self._widest[0]:
            row = len(gaps_ns) - gaps_ns[::-1].index(widest)
            self._widest = (widest, numbers.step, numbers[row], lines[row])
        self._before = (numbers[-1], clocks_ns[-1])

    def _gap(self, number: int, clock_ns: int, line: int) -> None:
        """Take the time of an iteration since the step before."""
        before, before_ns = self._before or (0, 0)
        gap_ns = (clock_ns - before_ns) / (number - before)
        self._gaps_ns.append(gap_ns)
        if gap_ns >= self._widest[0]:
            self._widest = (gap_ns, number - before, number, line)

    def repeat(self, step: Step) -> None:
        """Give up an end of the window that is printed again with other words or another time."""
        if self._start and step.number == self._first and _differ(step, self._start[0]):
            self._start = None
        if self._end and step.number == self._last and _differ(step, self._end[0]):
            self._end = None

    def judge(self, _stride: int) -> None:
        """Note iterations of more than 5 times the last ones' median, and a coarse clock."""
        self._judge_clock()
        gap_ns, iterations, number, line = self._widest
        usual_ns = median(self._gaps_ns) if self._gaps_ns else 0
        if not 0 < 5 * usual_ns < gap_ns:
            return
        what = f"iteration {number}, inside the window, took"
        step = "step takes"
        if iterations > 1:
            what = f"up to iteration {number}, inside the window, an iteration took"
            step = "is"
        took, median_s = f"{gap_ns / SECOND_NS:.3f} s", f"{usual_ns / SECOND_NS:.3f} s"
        self._notes.add("GAP", f"line {line}: {what} {took}; the median {step} {median_s}")

    def _judge_clock(self) -> None:
        """Note a window that begins and ends on a whole second: its clock has no fractions.

        A clock with microseconds does so once in 10 ** 12 windows.
        """
        start, end, origin_ns = self.start, self.end, self._origin_ns
        if not (start and end) or origin_ns is None or end.clock_ns <= start.clock_ns:
            return
        if (start.clock_ns + origin_ns) % SECOND_NS or (end.clock_ns + origin_ns) % SECOND_NS:
            return
        seconds = (end.clock_ns - start.clock_ns) // SECOND_NS
        self._notes.add(
            "COARSE-CLOCK",
            f"lines {start.line} and {end.line}: the clock shows whole seconds; the {seconds} s"
            " between them are good to 1 s",
        )

    @property
    def start(self) -> Moment | None:
        return self._moment(self._start)

    @property
    def end(self) -> Moment | None:
        return self._moment(self._end)

    def _moment(self, taken: tuple[Step, int | None] | None) -> Moment | None:
        step, clock_ns = taken or (None, None)
        if step is None or clock_ns is None:
            return None
        return Moment(step.number, clock_ns - (self._origin_ns or 0), step.line)

    @property
    def origin_ns(self) -> int | None:
        """When the first step of all was printed, by the log's own clock."""
        return self._origin_ns

    @property
    def rate(self) -> float | None:
        """Harmonic mean of the rates after the first iteration up to the last."""
        return self._rated / self._times if self._is_whole and self._times > 0 else None

    @property
    def rate_mean(self) -> float | None:
        """Arithmetic mean of the rates from the first iteration to the last."""
        found = self._rates.summary()
        return found.mean if self._is_whole and found and isfinite(found.mean) else None

    @property
    def _is_whole(self) -> bool:
        return self._start is not None and self._end is not None

    @property
    def used(self) -> tuple[int, int] | None:
        """The window, as it is told."""
        return self.ends

    @property
    def lines(self) -> tuple[int, int] | None:
        """Of the first and the last record that count, where no clock tells; here it does."""
        return None

    @property
    def latency_s(self) -> float | None:
        """Mean seconds per step, where the program prints them."""
        return None

    @property
    def digest(self) -> str:
        return self._hash.hexdigest() if self._steps else ""


def _differ(step: Step, other: Step) -> bool:
    return step.evidence != other.evidence
