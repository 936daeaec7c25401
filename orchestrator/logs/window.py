"""The steps between the two iterations of a window, in the first epoch of a run."""

import hashlib
from array import array
from collections import Counter, deque
from collections.abc import Sequence
from heapq import nsmallest
from math import fsum, inf, isfinite, nan
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from orchestrator.logs.format import Agreement, Format, Step
from orchestrator.logs.header import Notes
from orchestrator.model.log import RATE_TOLERANCE, SECOND_NS, Moment

if TYPE_CHECKING:
    from orchestrator.logs.run import Run

_RECENT = 100_000
"""Steps whose times are kept; of a longer window, the last ones show what is usual."""
_GAP_TIMES = 5
_SAMPLED = Agreement(step=0.1)
"""For a rate of one step where other steps are not printed; recorded: 6.2 %."""
_KEPT = 256
"""Hashes of steps that are compared between logs: the smallest, so that copies keep the same."""
_REPEATED = 1 / 8
"""Share of steps with the most frequent rate; recorded: 12 % of 25 steps with 2 decimals."""
_FEWER = 3
"""Decimals that a time lacks beside another if its fraction was dropped; Python drops zeros."""


class _Pace(NamedTuple):
    """The time of an iteration, from the step before to a step.

    Args:
        took_ns: by the clock, else by the printed latency, else one over the rate.
        ahead: iterations between the two.
    """

    took_ns: float
    ahead: int
    before: Step
    step: Step


class Window:
    """The steps inside a window, summed up.

    Args:
        ends: the first and the last iteration; None if all steps are evidence and none is an end.
    """

    def __init__(self, ends: tuple[int, int] | None, form: Format, notes: Notes) -> None:
        self.ends = ends
        self.used = ends
        """The first and the last iteration that count."""
        self.lines: tuple[int, int] | None = None
        """Lines of these two, if the log has both."""
        self.latency_s: float | None = None
        """Mean seconds per step, if the program prints them."""
        self.origin_ns: int | None = None
        """When the first step of the run was printed, by the log's own clock."""
        self.samples: float | None = None
        """Of an iteration, by the clock and the printed rates; None if either is missing."""
        self.agreement = RATE_TOLERANCE
        """The largest difference between clock and printed rates of the window, as a share."""
        self._form = form
        self._notes = notes
        self._first, self._last = ends or (0, 0)
        self._hash = hashlib.sha256()
        self._words: set[bytes] = set()
        self._rates = array("d")
        self._steps = deque[tuple[Step, int | None]](maxlen=_RECENT)
        """Each with its clock in ns, None if there is no such time."""
        self._taken: dict[int, tuple[Step, int | None]] = {}
        """The ends, likewise."""

    def covers(self, number: int) -> bool:
        """Return True if an iteration is inside."""
        return self.ends is None or self._first <= number <= self._last

    def add(self, step: Step) -> None:
        """Take the next step, if it is inside."""
        is_inside = self.covers(step.number)
        if not is_inside and self.origin_ns is not None:
            return
        clock = self._form.clock
        clock_ns = clock(step.stamp) if clock and step.stamp else None
        if self.origin_ns is None:
            self.origin_ns = clock_ns
        if not is_inside:
            return
        self._include(step, clock_ns)
        if self.ends is None:
            return
        if step.stamp and clock_ns is None:
            self._notes.add("MALFORMED", f"line {step.line}: there is no such date or time")
        if step.number in self.ends and (clock_ns is not None or not step.stamp):
            self._taken[step.number] = step, clock_ns

    def _include(self, step: Step, clock_ns: int | None) -> None:
        """Count a step as evidence, by its time and by its words."""
        self._hash.update(step.evidence + b"\n")
        self._words.add(hashlib.blake2b(step.words, digest_size=16).digest())
        if len(self._words) > 2 * _KEPT:
            self._words = set(nsmallest(_KEPT, self._words))
        self._rates.append(step.rate)
        self._steps.append((step, clock_ns))

    def misses(self, before: int | None, after: int | None, _behind: int) -> bool | None:
        """Return True if a step that was lost between these two could be inside."""
        if self.ends is None:
            return False
        return (before is None or before < self._last) and (after is None or after > self._first)

    def repeat(self, step: Step, _last: Step) -> None:
        """Drop an end of the window that is printed again with other words or another time."""
        taken = self._taken.get(step.number)
        if taken and taken[0].text != step.text:
            del self._taken[step.number]

    def judge(self, _run: "Run", _stride: int, batch: float | None) -> None:
        """Note iterations far longer than the others, and a clock that cannot be trusted.

        Args:
            batch: samples of an iteration by the header; None if the header lacks them.
        """
        if self.is_whole:
            self.lines = self._taken[self._first][0].line, self._taken[self._last][0].line
        paces = self._paces()
        if not self._judge_fractions():
            self._judge_clock([pace for pace in paces if pace.step.rate > 0], batch)
        if self.ends is not None:
            self._judge_gap(paces)

    def _paces(self) -> list[_Pace]:
        """Return all times that are known."""
        paces: list[_Pace] = []
        before, before_ns = None, None
        for step, clock_ns in self._steps:
            ahead, took_ns = step.number - before.number if before else 1, nan
            if step.stamp:
                if clock_ns is not None and before_ns is not None:
                    took_ns = (clock_ns - before_ns) / ahead
            elif step.latency_ns is not None:
                took_ns = step.latency_ns
            elif step.rate > 0 and not (self._form.averaged and step.number == self._first):
                took_ns = 1 / step.rate
            if isfinite(took_ns):
                paces.append(_Pace(took_ns, ahead, before or step, step))
            before, before_ns = step, clock_ns
        return paces

    def _judge_gap(self, paces: Sequence[_Pace]) -> None:
        """Note the longest iteration if it took more than 5 times the median."""
        if not paces:
            return
        usual_ns = median([pace.took_ns for pace in paces])
        longest = max(paces, key=lambda pace: (pace.took_ns, pace.step.number))
        if not 0 < _GAP_TIMES * usual_ns < longest.took_ns:
            return
        step, usual = longest.step, f"{usual_ns / SECOND_NS:.3f} s"
        took = f"{longest.took_ns / SECOND_NS:.3f} s"
        where = f"line {step.line}: iteration {step.number}, inside the window,"
        if usual_ns < 1:  # neither clock nor latency: these are one over the rates
            seen = f"{where} has the rate {step.rate:g}; the median is {1 / usual_ns:g}"
        elif self._is_timed and longest.ahead > 1:
            where = f"line {step.line}: up to iteration {step.number}, inside the window,"
            seen = f"{where} an iteration took {took}; the median is {usual}"
        else:
            seen = f"{where} took {took}; the median step takes {usual}"
        self._notes.add("GAP", seen)

    def _judge_fractions(self) -> bool:
        """Note an end of the window whose time has no fractions of a second.

        Both ends are whole seconds by chance once in 10 ** 12 windows. One end is not suspicious
        if it is printed with as many decimals as the other.
        """
        (start, end), origin_ns = self.moments, self.origin_ns
        if not (start and end) or origin_ns is None or end.clock_ns <= start.clock_ns:
            return False
        whole = [it for it in (start, end) if (it.clock_ns + origin_ns) % SECOND_NS == 0]
        if len(whole) < 2:
            decimals = {
                it: len(step.stamp.partition(b".")[2]) for it, (step, _) in self._taken.items()
            }
            most = max(decimals.values())
            whole = [it for it in whole if decimals[it.iteration] + _FEWER <= most]
        if not whole:
            return False
        where = f"line{'s' if len(whole) > 1 else ''} {' and '.join(str(it.line) for it in whole)}"
        lasted = f"{(end.clock_ns - start.clock_ns) / SECOND_NS:g} s"
        self._notes.add(
            "COARSE-CLOCK",
            f"{where}: the clock shows whole seconds; the {lasted} between the ends of the window"
            " are good to 1 s",
        )
        return True

    def _judge_clock(self, paces: Sequence[_Pace], batch: float | None) -> None:
        """Note steps whose time by the clock contradicts the printed rates.

        Args:
            paces: of steps with a positive rate.
        """
        if not self._is_timed or not paces:
            return
        usual = median([pace.took_ns * pace.step.rate for pace in paces])
        self.samples = usual / SECOND_NS
        (start, end), form = self.moments, self._form
        if not self.is_whole:
            return
        is_sampled = not form.averaged and any(pace.ahead > 1 for pace in paces)
        if start and end and start.clock_ns < end.clock_ns and not is_sampled:
            late_ns, lasted_ns = form.agreement.window_late_ns, end.clock_ns - start.clock_ns
            self.agreement = form.agreement.window + late_ns / lasted_ns
        limit, digit = _SAMPLED if is_sampled else form.agreement, (form.digits or (0.0, 0.0))[0]
        expected_ns = [usual / pace.step.rate * pace.ahead for pace in paces]
        off_ns = [
            pace.took_ns * pace.ahead - expected
            for pace, expected in zip(paces, expected_ns, strict=True)
        ]
        is_off = [
            abs(off) > (limit.step + digit / pace.step.rate / 2) * expected + limit.late_ns
            for pace, off, expected in zip(paces, off_ns, expected_ns, strict=True)
        ]
        jumps = [
            at for at, off in enumerate(is_off) if off and not _is_made_up_for(at, off_ns, is_off)
        ]
        for at in jumps:
            took_ns = paces[at].took_ns * paces[at].ahead
            self._note_jump(paces[at].before, paces[at].step, took_ns, expected_ns[at])
        if batch is not None and not jumps:
            self._judge_duration(batch, is_sampled)

    def _judge_duration(self, batch: float, is_sampled: bool) -> None:
        """Note a window whose time by the clock contradicts its printed rates.

        Where only some steps are printed, the median of the samples that clock and rates give for
        an iteration is compared with the batch.
        """
        start, end = self.moments
        if not (start and end and self.rate and self.samples):
            return
        took_ns = end.clock_ns - start.clock_ns
        expected_ns = batch * (self._last - self._first) / self.rate * SECOND_NS
        if is_sampled:
            expected_ns = took_ns * (batch / self.samples)
        agreed = self._form.agreement
        least_ns = agreed.window * expected_ns + agreed.window_late_ns
        if least_ns < abs(took_ns - expected_ns) <= RATE_TOLERANCE * expected_ns:
            self._note_jump(start, end, took_ns, expected_ns)

    def _note_jump(
        self, before: Step | Moment, step: Step | Moment, took_ns: float, expected_ns: float
    ) -> None:
        took, expected = f"{took_ns / SECOND_NS:.3f} s", f"{expected_ns / SECOND_NS:.3f} s"
        seen = f"lines {before.line} and {step.line}: {took} by the clock"
        self._notes.add("CLOCK-JUMP", f"{seen}, {expected} by the printed rate")

    @property
    def _is_timed(self) -> bool:
        return any(step.stamp for step, _ in self._steps)

    @property
    def moments(self) -> tuple[Moment | None, Moment | None]:
        """The times of the first and the last iteration, from the run's first step on."""
        return self._moment(self._first), self._moment(self._last)

    def _moment(self, number: int) -> Moment | None:
        if number not in self._taken:
            return None
        step, clock_ns = self._taken[number]
        if clock_ns is None:
            return None
        return Moment(number, clock_ns - (self.origin_ns or 0), step.line)

    @property
    def rate(self) -> float | None:
        """Harmonic mean of the rates after the first iteration up to the last."""
        return compute_harmonic_mean(self._rates[1:]) if self.is_whole else None

    @property
    def rate_weighed(self) -> float | None:
        """Harmonic mean of the rates that are printed of steps inside the window."""
        rates = self._rates[1:] if self._form.averaged else self._rates
        return compute_harmonic_mean(rates) if self.is_whole else None

    @property
    def rate_mean(self) -> float | None:
        """Arithmetic mean of the rates from the first iteration to the last."""
        mean = compute_mean(self._rates) if self.is_whole else nan
        return mean if isfinite(mean) else None

    @property
    def is_whole(self) -> bool:
        """True if the log has both ends."""
        return self._first in self._taken and self._last in self._taken

    @property
    def digest(self) -> str:
        """Hash of all evidence; empty without any."""
        return self._hash.hexdigest() if self._rates else ""

    @property
    def words(self) -> frozenset[bytes]:
        """Hashes of losses and rates by step; one of all where rates repeat by themselves.

        Empty if all rates are equal, which proves nothing.
        """
        counts = Counter(self._rates)
        if len(counts) < 2:
            return frozenset()
        steps = nsmallest(_KEPT, self._words)
        if max(counts.values()) > max(1, len(self._rates) * _REPEATED):
            return frozenset([hashlib.blake2b(b"".join(steps), digest_size=16).digest()])
        return frozenset(steps)


def _is_made_up_for(at: int, off_ns: Sequence[float], is_off: Sequence[bool]) -> bool:
    """Return True if a neighbor is off by as much the other way: a line was printed late."""
    return any(
        is_off[other] and abs(off_ns[at] + off_ns[other]) < 0.2 * abs(off_ns[at])
        for other in (at - 1, at + 1)
        if 0 <= other < len(off_ns)
    )


def compute_mean(rates: Sequence[float]) -> float:
    """Return the mean of rates, NaN if it is undefined: without any, or of inf and -inf."""
    try:
        return fsum(rates) / len(rates)
    except (ArithmeticError, ValueError):
        return nan


def compute_harmonic_mean(rates: Sequence[float]) -> float | None:
    """Return the harmonic mean of rates, None without any or with one that is not positive."""
    times = 0.0
    for rate in rates:
        times += 1 / rate if 0 < rate < inf else nan
    return len(rates) / times if times > 0 else None


class Records(Window):
    """The records of a log without a clock inside a window, or the last ones of a run.

    All of them are evidence: each gives the mean time of its steps.
    """

    def __init__(self, ends: tuple[int, int] | None, form: Format, notes: Notes) -> None:
        super().__init__(ends, form, notes)
        self._records = deque[Step](maxlen=None if ends else form.tail)
        self._repeated: int | None = None

    def add(self, step: Step) -> None:
        """Take the next record, if it is inside."""
        if self.covers(step.number):
            self._records.append(step)

    def misses(self, before: int | None, after: int | None, behind: int) -> bool | None:
        """Return True if a lost record could be inside; None if only the end of the log shows it.

        Args:
            behind: how many records came after it.
        """
        if self.ends is not None:
            return super().misses(before, after, behind)
        return behind < self._form.tail if after is None else None

    def repeat(self, step: Step, last: Step) -> None:
        """Distrust a record that is printed again with other text."""
        if self.covers(step.number) and step.text != last.text:
            self._repeated = step.number

    def judge(self, run: "Run", stride: int, _batch: float | None) -> None:
        """Sum up the records; note if the log lacks one, or has two for one step."""
        if run.first and run.last and not self._is_covered(run.last.number, stride):
            seen = f"the log has {run.steps} records, from {run.first.number} to {run.last.number}"
            needed = f"needed its last {self._form.tail}, one every {stride} iterations"
            if self.ends:
                seen = f"the window {self._first}-{self._last}: {seen}"
                needed = f"needed one every {stride} iterations, up to {self._last}"
            self._notes.add("WINDOW", f"{seen}; {needed}")
            return
        latencies_ns = 0.0
        for step in self._records:
            self._include(step, None)
            latencies_ns += step.latency_ns if step.latency_ns and step.latency_ns > 0 else nan
        first, last = self._records[0], self._records[-1]
        self.used, self.lines = (first.number, last.number), (first.line, last.line)
        mean_s = latencies_ns / (len(self._records) * SECOND_NS)  # rounded only here
        self.latency_s = mean_s if isfinite(mean_s) else None
        self._judge_gap(self._paces())

    def _is_covered(self, last: int, stride: int) -> bool:
        """Return True if the records follow each other from one end of the window to the other."""
        if not self._records:
            return False
        begin, end = self._records[0].number, self._records[-1].number
        is_doubtful = self._repeated is not None and begin <= self._repeated <= end
        if is_doubtful or end - begin != (len(self._records) - 1) * stride:
            return False
        if self.ends is None:
            return len(self._records) == self._form.tail
        return begin - stride < self._first and self._last < end + stride and self._last <= last

    @property
    def rate(self) -> float | None:
        """Harmonic mean of the rates of all records."""
        return compute_harmonic_mean(self._rates)

    @property
    def is_whole(self) -> bool:
        """True if no record is missing or doubtful."""
        return bool(self._rates)
