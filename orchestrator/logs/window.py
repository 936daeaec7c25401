"""What a log says between the two iterations of a window, in the first epoch of a run."""

import hashlib
from collections import Counter, deque
from heapq import nsmallest
from math import inf, isfinite, nan
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from orchestrator.logs.format import Agreement, Format, Step
from orchestrator.logs.notes import Notes
from orchestrator.logs.rates import Rates
from orchestrator.model.log import RATE_TOLERANCE, SECOND_NS, Moment

if TYPE_CHECKING:
    from orchestrator.logs.run import Run

_RECENT = 100_000
"""Steps whose times are held; of more, a median of the last ones is usual enough."""
_GAP_TIMES = 5
_SAMPLED = Agreement(step=0.1)
"""Where the rate is that of one step, and others between are not printed; recorded: 6.2 %."""
_KEPT = 256
"""Hashes of steps that are compared between logs: the smallest, so that copies keep the same."""
_REPEATED = 1 / 8
"""Share of steps with the most frequent rate; recorded: 12 % of 25 steps with 2 decimals."""
_FEWER = 3
"""Decimals that a time lacks beside another, if its fraction was dropped; Python drops zeros."""


class _Pace(NamedTuple):
    """How long an iteration took.

    Args:
        took_ns: by the clock, else by the printed latency, else one over the rate.
        ahead: iterations since the step before.
        before: line of the step before.
    """

    took_ns: float
    number: int
    ahead: int
    line: int
    before: int
    rate: float


class Window:
    """The steps inside a window, summed up.

    Args:
        ends: the first and the last iteration; None where all steps are evidence and none an end.
    """

    def __init__(self, ends: tuple[int, int] | None, form: Format, notes: Notes) -> None:
        self.ends = ends
        self.used = ends
        """The first and the last iteration that count."""
        self.lines: tuple[int, int] | None = None
        """Of these two, where the log has both."""
        self.latency_s: float | None = None
        """Mean seconds per step, where the program prints them."""
        self._form = form
        self._notes = notes
        self._first, self._last = ends or (0, 0)
        self._taken: dict[int, tuple[bytes, int | None, int]] = {}
        """Text, clock in ns and line of the ends."""
        self._decimals: dict[int, int] = {}
        self._hash = hashlib.sha256()
        self._words: set[bytes] = set()
        self._counts = Counter[float]()
        self._steps = 0
        self.origin_ns: int | None = None
        """When the first step of all was printed, by the log's own clock."""
        self._before: tuple[int, int | None, int] | None = None
        """Iteration, clock in ns if there is such a time, and line of the step before."""
        self._paces = deque[_Pace](maxlen=_RECENT)
        self._widest = _Pace(0.0, 0, 0, 0, 0, 0.0)
        self._timed = False
        self.samples: float | None = None
        """Of an iteration, by the clock and the printed rates; None where either is missing."""
        self.agreement = RATE_TOLERANCE
        """How far clock and printed rates of the window may differ, as a share."""
        self._rates = Rates()
        self._rated = self._weighed = 0
        self._times = self._slowness = 0.0

    def add(self, step: Step) -> None:
        """Take the next step, as far as it lies inside; clocks count from the first of all."""
        inside = self.ends is None or self._first <= step.number <= self._last
        if not (inside or self.origin_ns is None):
            return
        clock = self._form.clock
        clock_ns = clock(step.stamp) if clock and step.stamp else None
        if self.origin_ns is None:
            self.origin_ns = clock_ns
        if inside:
            self._take(step, clock_ns)

    def _take(self, step: Step, clock_ns: int | None) -> None:
        self._count(step)
        self._time(step, clock_ns)
        if self.ends is None:
            return
        self._rates.add(step.rate)
        if step.number > self._first or not self._form.averaged:
            self._slowness += 1 / step.rate if 0 < step.rate < inf else nan
            self._weighed += 1
        if step.number > self._first:
            self._rated += 1
            self._times += 1 / step.rate if 0 < step.rate < inf else nan
        if step.stamp and clock_ns is None:
            self._notes.add("MALFORMED", f"line {step.line}: there is no such date or time")
        if step.number in self.ends and (clock_ns is not None or not step.stamp):
            self._taken[step.number] = (step.text, clock_ns, step.line)
            self._decimals[step.number] = len(step.stamp.partition(b".")[2])

    def _count(self, step: Step) -> None:
        """Take a step as evidence, by its time and by its words."""
        self._steps += 1
        self._hash.update(step.evidence + b"\n")
        self._words.add(hashlib.blake2b(step.words, digest_size=16).digest())
        if len(self._words) > 2 * _KEPT:
            self._words = set(nsmallest(_KEPT, self._words))
        if step.rate in self._counts or len(self._counts) < _RECENT:
            self._counts[step.rate] += 1

    def _time(self, step: Step, clock_ns: int | None) -> None:
        """Take the time of an iteration: since the step before, or as it is printed."""
        number, before_ns, line = self._before or (step.number - 1, None, step.line)
        self._before = (step.number, clock_ns, step.line)
        ahead, took_ns = step.number - number, nan
        if step.stamp:
            self._timed = True
            if clock_ns is not None and before_ns is not None:
                took_ns = (clock_ns - before_ns) / ahead
        elif step.latency_ns is not None:
            took_ns = step.latency_ns
        elif step.rate > 0 and not (self._form.averaged and step.number == self._first):
            took_ns = 1 / step.rate
        if isfinite(took_ns):
            pace = _Pace(took_ns, step.number, ahead, step.line, line, step.rate)
            self._paces.append(pace)
            self._widest = max(self._widest, pace)

    def misses(self, before: int | None, after: int | None, _behind: int) -> bool | None:
        """Whether a step that was lost between these two, if there are such, could lie inside."""
        if self.ends is None:
            return False
        return (before is None or before < self._last) and (after is None or after > self._first)

    def repeat(self, step: Step, _last: Step) -> None:
        """Give up an end of the window that is printed again with other words or another time."""
        taken = self._taken.get(step.number)
        if taken and taken[0] != step.text:
            del self._taken[step.number]

    def judge(self, _run: "Run", _stride: int, batch: float | None) -> None:
        """Note iterations far longer than the others, and a clock that cannot be trusted.

        Args:
            batch: samples of an iteration by the header; None if it does not say them.
        """
        if self.is_whole:
            self.lines = self._taken[self._first][2], self._taken[self._last][2]
        if not self._judge_fractions():
            self._judge_jumps(batch)
        if self.ends is not None:
            self._judge_gap()

    def _judge_gap(self) -> None:
        """Note the longest iteration if it took more than 5 times the median."""
        widest = self._widest
        usual_ns = median([pace.took_ns for pace in self._paces]) if self._paces else 0
        if not 0 < _GAP_TIMES * usual_ns < widest.took_ns:
            return
        where = f"line {widest.line}: iteration {widest.number}, inside the window,"
        took, usual = f"{widest.took_ns / SECOND_NS:.3f} s", f"{usual_ns / SECOND_NS:.3f} s"
        if usual_ns < 1:  # neither clock nor latency: these are one over the rates
            seen = f"{where} has the rate {widest.rate:g}; the median is {1 / usual_ns:g}"
        elif self._timed and widest.ahead > 1:
            where = f"line {widest.line}: up to iteration {widest.number}, inside the window,"
            seen = f"{where} an iteration took {took}; the median is {usual}"
        else:
            seen = f"{where} took {took}; the median step takes {usual}"
        self._notes.add("GAP", seen)

    def _judge_fractions(self) -> bool:
        """Note an end of the window whose time has no fractions of a second.

        Both may be whole by themselves once in 10 ** 12 windows; one end is not, where as many
        decimals are printed as at the other.
        """
        (start, end), origin_ns = self.moments, self.origin_ns
        if not (start and end) or origin_ns is None or end.clock_ns <= start.clock_ns:
            return False
        whole = [it for it in (start, end) if (it.clock_ns + origin_ns) % SECOND_NS == 0]
        decimals = {it: self._decimals[it.iteration] for it in (start, end)}
        if len(whole) < 2:
            whole = [it for it in whole if decimals[it] + _FEWER <= max(decimals.values())]
        if not whole:
            return False
        where = f"line{'s' * (len(whole) > 1)} {' and '.join(str(it.line) for it in whole)}"
        lasted = f"{(end.clock_ns - start.clock_ns) / SECOND_NS:g} s"
        self._notes.add(
            "COARSE-CLOCK",
            f"{where}: the clock shows whole seconds; the {lasted} between the ends of the window"
            " are good to 1 s",
        )
        return True

    def _judge_jumps(self, batch: float | None) -> None:
        """Note where the clock and the printed rates disagree on the time of a step."""
        paces = [pace for pace in self._paces if pace.rate > 0]
        if not self._timed or not paces:
            return
        usual = median([pace.took_ns * pace.rate for pace in paces])
        self.samples = usual / SECOND_NS
        if not self.is_whole:
            return
        is_sampled = not self._form.averaged and any(pace.ahead > 1 for pace in paces)
        agreed = _SAMPLED if is_sampled else self._form.agreement
        digit, _ = self._form.digits or (0.0, 0.0)
        off_ns, is_off = [], []
        for pace in paces:
            expected_ns = usual / pace.rate * pace.ahead
            off_ns.append(pace.took_ns * pace.ahead - expected_ns)
            is_off.append(
                abs(off_ns[-1])
                > (agreed.step + digit / pace.rate / 2) * expected_ns + agreed.late_ns
            )
        start, end = self.moments
        if start and end and start.clock_ns < end.clock_ns and not is_sampled:
            agreed, took_ns = self._form.agreement, end.clock_ns - start.clock_ns
            self.agreement = agreed.window + agreed.window_late_ns / took_ns
        jumps = [
            pace
            for at, pace in enumerate(paces)
            if is_off[at] and not self._is_made_up_for(at, off_ns, is_off)
        ]
        for pace in jumps:
            self._note_jump(pace, usual / pace.rate * pace.ahead)
        if batch is not None and not jumps:
            self._judge_duration(batch, batch / self.samples if is_sampled else None)

    def _note_jump(self, pace: _Pace, expected_ns: float) -> None:
        took, expected = pace.took_ns * pace.ahead / SECOND_NS, expected_ns / SECOND_NS
        seen = f"lines {pace.before} and {pace.line}: {took:.3f} s by the clock"
        self._notes.add("CLOCK-JUMP", f"{seen}, {expected:.3f} s by the printed rate")

    @staticmethod
    def _is_made_up_for(at: int, off_ns: list[float], is_off: list[bool]) -> bool:
        """Return True if a neighbor is off by as much the other way: a line was printed late."""
        return any(
            is_off[other] and abs(off_ns[at] + off_ns[other]) < 0.2 * abs(off_ns[at])
            for other in (at - 1, at + 1)
            if 0 <= other < len(off_ns)
        )

    def _judge_duration(self, batch: float, share_due: float | None) -> None:
        """Note a window that took another time by its clock than by its printed rates.

        Args:
            share_due: of that time, by the median of steps that are printed now and then; None
                where all are printed.
        """
        start, end = self.moments
        rate = self.rate
        if not (start and end and rate):
            return
        took_ns = end.clock_ns - start.clock_ns
        expected_ns = batch * (self._last - self._first) / rate * SECOND_NS
        if share_due is not None:
            expected_ns = took_ns * share_due
        off_ns = abs(took_ns - expected_ns)
        agreed = self._form.agreement
        if (
            agreed.window * expected_ns + agreed.window_late_ns
            < off_ns
            <= RATE_TOLERANCE * expected_ns
        ):
            pace = _Pace(took_ns, self._last, 1, end.line, start.line, rate)
            self._note_jump(pace, expected_ns)

    @property
    def moments(self) -> tuple[Moment | None, Moment | None]:
        """Of the first and the last iteration."""
        return self._moment(self._first), self._moment(self._last)

    def _moment(self, number: int) -> Moment | None:
        _, clock_ns, line = self._taken.get(number, (b"", None, 0))
        return None if clock_ns is None else Moment(number, clock_ns - (self.origin_ns or 0), line)

    @property
    def rate(self) -> float | None:
        """Harmonic mean of the rates after the first iteration up to the last."""
        return self._rated / self._times if self.is_whole and self._times > 0 else None

    @property
    def rate_weighed(self) -> float | None:
        """Harmonic mean of the rates that are printed of steps inside the window."""
        return self._weighed / self._slowness if self.is_whole and self._slowness > 0 else None

    @property
    def rate_mean(self) -> float | None:
        """Arithmetic mean of the rates from the first iteration to the last."""
        mean = self._rates.mean if self.is_whole else None
        return mean if mean is not None and isfinite(mean) else None

    @property
    def is_whole(self) -> bool:
        return self._first in self._taken and self._last in self._taken

    @property
    def digest(self) -> str:
        return self._hash.hexdigest() if self._steps else ""

    @property
    def words(self) -> frozenset[bytes]:
        """Hashes of losses and rates by step; one of all where rates repeat by themselves.

        None where all rates are equal, which proves nothing.
        """
        if len(self._counts) < 2:
            return frozenset()
        steps = nsmallest(_KEPT, self._words)
        if max(self._counts.values()) > max(1, self._steps * _REPEATED):
            return frozenset([hashlib.blake2b(b"".join(steps), digest_size=16).digest()])
        return frozenset(steps)
