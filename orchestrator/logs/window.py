"""The steps between the two iterations of a window, in the first epoch of a run."""

import hashlib
from collections import Counter
from collections.abc import Sequence
from heapq import nsmallest
from math import fsum, inf, isfinite, nan
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from orchestrator.logs.format import Agreement, Format, Step
from orchestrator.logs.header import Notes
from orchestrator.model.log import RATE_TOLERANCE, SECOND_NS, Moment

if TYPE_CHECKING:
    from orchestrator.logs.engine import Run

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


_Jump = tuple[Step | Moment, Step | Moment, float, float]
"""Two lines, and the nanoseconds between them by the clock and by the printed rates."""


class Window:
    """The steps inside a window, or the last ones of a run; all of them are evidence.

    ``start`` to ``agreement`` are those of a ``TrainingLog``, once the window is judged.

    Args:
        ends: the first and the last iteration; None for the last ``tail`` steps of the format, or
            for all.
    """

    def __init__(self, ends: tuple[int, int] | None, form: Format, notes: Notes) -> None:
        self.ends = ends
        self.used = ends
        """The first and the last iteration that count."""
        self.start: Moment | None = None
        self.end: Moment | None = None
        self.lines: tuple[int, int] | None = None
        self.latency_s: float | None = None
        self.origin_ns: int | None = None
        self.samples: float | None = None
        self.agreement = RATE_TOLERANCE
        self._form = form
        self._notes = notes
        self._steps: dict[int, Step] = {}
        """By iteration."""
        self._doubtful: set[int] = set()
        """Iterations that are printed again with other words or another time."""

    def add(self, step: Step) -> None:
        """Take the next step, if it is inside."""
        if self.origin_ns is None:
            self.origin_ns = step.clock_ns
        if self.ends and not self.ends[0] <= step.number <= self.ends[1]:
            return
        if step.stamp and step.clock_ns is None and self.ends:
            self._notes.add("MALFORMED", f"line {step.line}: there is no such date or time")
        self._steps[step.number] = step
        if self.ends is None and 0 < self._form.tail < len(self._steps):
            del self._steps[next(iter(self._steps))]

    def repeat(self, step: Step) -> None:
        """Distrust a step that is printed again with other words or another time."""
        kept = self._steps.get(step.number)
        if kept and kept.text != step.text:
            self._doubtful.add(step.number)

    def judge(self, run: "Run", stride: int, batch: float | None) -> None:
        """Note what the log lacks, iterations far longer than others, and a doubtful clock.

        Args:
            batch: samples of an iteration by the header; None if the header lacks them.
        """
        if self._form.rule == "latency":
            self._judge_records(run, stride)
        first, last = self._find_ends()
        self.start, self.end = self._find_moment(first), self._find_moment(last)
        if self._form.rule != "latency" and first and last:
            self.lines = first.line, last.line
        paces = self._list_paces()
        if not self._is_coarse():
            self._judge_clock([pace for pace in paces if pace.step.rate > 0], batch)
        if self.used and paces:
            self._judge_gap(paces)

    @property
    def is_whole(self) -> bool:
        """Return True if the log has both ends, or all records that a latency needs."""
        if self._form.rule == "latency":
            return self.lines is not None
        return all(self._find_ends())

    def _find_ends(self) -> tuple[Step | None, Step | None]:
        """Return both ends; None for one that lacks, is doubtful, or has an impossible time."""
        ends = [self._steps.get(number) for number in self.ends or ()]
        first, last = [
            step
            if step
            and step.number not in self._doubtful
            and (step.clock_ns is not None or not step.stamp)
            else None
            for step in ends or (None, None)
        ]
        return first, last

    def _find_moment(self, step: Step | None) -> Moment | None:
        if step is None or step.clock_ns is None:
            return None
        return Moment(step.number, step.clock_ns - (self.origin_ns or 0), step.line)

    def _judge_records(self, run: "Run", stride: int) -> None:
        """Take the mean latency if records follow each other from one end to the other."""
        steps, tail = [*self._steps.values()], self._form.tail
        last = run.last.number if run.last else 0
        begin, end = (steps[0].number, steps[-1].number) if steps else (0, 0)
        is_covered, needed = len(steps) == tail, f"its last {tail}"
        if self.ends:
            (first, until), is_covered = self.ends, bool(steps)
            is_covered = is_covered and begin - stride < first and until < end + stride
            is_covered, needed = is_covered and until <= last, f"the window {first}-{until}"
        is_gapless = end - begin == (len(steps) - 1) * stride
        if not is_covered or not is_gapless or self._doubtful & self._steps.keys():
            seen = f"the log has {run.steps} records, from {run.first and run.first.number}"
            needed = f"needed {needed}, one every {stride} iterations"
            self._notes.add("WINDOW", f"{seen} to {last}; {needed}")
            self._steps.clear()
            return
        self.used, self.lines = (begin, end), (steps[0].line, steps[-1].line)
        took_ns = sum(it.latency_ns if it.latency_ns and it.latency_ns > 0 else nan for it in steps)
        mean_s = took_ns / (len(steps) * SECOND_NS)  # rounded only here
        self.latency_s = mean_s if isfinite(mean_s) else None

    def _list_paces(self) -> list[_Pace]:
        paces: list[_Pace] = []
        before = None
        for step in self._steps.values():
            ahead, took_ns = step.number - before.number if before else 1, nan
            if step.stamp:
                if step.clock_ns is not None and before and before.clock_ns is not None:
                    took_ns = (step.clock_ns - before.clock_ns) / ahead
            elif step.latency_ns is not None:
                took_ns = step.latency_ns
            elif step.rate > 0 and (before or not self._form.averaged):
                took_ns = 1 / step.rate
            if isfinite(took_ns):
                paces.append(_Pace(took_ns, ahead, before or step, step))
            before = step
        return paces

    def _judge_gap(self, paces: Sequence[_Pace]) -> None:
        """Note the longest iteration if it took more than 5 times the median."""
        usual_ns = median([pace.took_ns for pace in paces])
        took_ns, _, _, step = max(paces, key=lambda pace: (pace.took_ns, pace.step.number))
        if not 0 < _GAP_TIMES * usual_ns < took_ns:
            return
        seen = (
            f"took {took_ns / SECOND_NS:.3f} s; the median step takes {usual_ns / SECOND_NS:.3f} s"
        )
        if usual_ns < 1:  # neither clock nor latency: these are one over the rates
            seen = f"has the rate {step.rate:g}; the median is {1 / usual_ns:g}"
        self._notes.add("GAP", f"{step.where}, inside the window, {seen}")

    def _is_coarse(self) -> bool:
        """Return True, and note it, if the time of an end has no fractions of a second.

        Both ends are whole seconds by chance once in 10 ** 12 windows. One end is not suspicious
        if it is printed with as many decimals as the other.
        """
        if not (self.start and self.end) or self.end.clock_ns <= self.start.clock_ns:
            return False
        ends = [self._steps[moment.iteration] for moment in (self.start, self.end)]
        whole = [step for step in ends if (step.clock_ns or 0) % SECOND_NS == 0]
        decimals = [len(step.stamp.partition(b".")[2]) for step in ends]
        if not whole or (len(whole) < 2 and max(decimals) - min(decimals) < _FEWER):
            return False
        seen = f"line {whole[0].line}: the clock shows whole seconds"
        lasted = f"the {(self.end.clock_ns - self.start.clock_ns) / SECOND_NS:g} s between the ends"
        self._notes.add("COARSE-CLOCK", f"{seen}; {lasted} of the window are good to 1 s")
        return True

    def _judge_clock(self, paces: Sequence[_Pace], batch: float | None) -> None:
        """Note steps, or a whole window, whose time by the clock contradicts the printed rates.

        Where only some steps are printed, the median of the samples that clock and rates give for
        an iteration is compared with the batch.

        Args:
            paces: of steps with a positive rate.
        """
        if not paces or not any(step.stamp for step in self._steps.values()):
            return
        usual = median([pace.took_ns * pace.step.rate for pace in paces])
        self.samples = usual / SECOND_NS
        if not self.is_whole:
            return
        agreed, start, end = self._form.agreement, self.start, self.end
        is_sampled = not self._form.averaged and any(pace.ahead > 1 for pace in paces)
        took_ns = end.clock_ns - start.clock_ns if start and end else 0
        if took_ns > 0 and not is_sampled:
            self.agreement = agreed.window + agreed.window_late_ns / took_ns
        jumps = self._find_jumps(paces, usual, _SAMPLED if is_sampled else agreed)
        rate = compute_harmonic_mean(self.rates[1:])
        if not jumps and batch and rate and start and end:
            expected_ns = batch * (end.iteration - start.iteration) / rate * SECOND_NS
            if is_sampled:
                expected_ns = took_ns * (batch / self.samples)
            least_ns = agreed.window * expected_ns + agreed.window_late_ns
            if least_ns < abs(took_ns - expected_ns) <= RATE_TOLERANCE * expected_ns:
                jumps = [(start, end, took_ns, expected_ns)]
        for before, after, by_clock_ns, by_rates_ns in jumps:
            seen = f"lines {before.line} and {after.line}: {by_clock_ns / SECOND_NS:.3f} s"
            seen = f"{seen} by the clock, {by_rates_ns / SECOND_NS:.3f} s by the printed rate"
            self._notes.add("CLOCK-JUMP", seen)

    def _find_jumps(
        self, paces: Sequence[_Pace], usual: float, limit: Agreement
    ) -> Sequence[_Jump]:
        digit = (self._form.digits or (0.0, 0.0))[0]
        expected_ns = [usual / pace.step.rate * pace.ahead for pace in paces]
        off_ns = [0.0]  # before the first step; 0 within the limit
        for pace, expected in zip(paces, expected_ns, strict=True):
            off = pace.took_ns * pace.ahead - expected
            most = (limit.step + digit / pace.step.rate / 2) * expected + limit.late_ns
            off_ns.append(off if abs(off) > most else 0.0)
        off_ns.append(0.0)
        # Beside a step that is off by as much the other way a line was printed late.
        return [
            (pace.before, pace.step, pace.took_ns * pace.ahead, expected)
            for pace, expected, before, off, after in zip(
                paces, expected_ns, off_ns, off_ns[1:], off_ns[2:], strict=False
            )
            if off and min(abs(off + before), abs(off + after)) >= 0.2 * abs(off)
        ]

    @property
    def rates(self) -> list[float]:
        return [step.rate for step in self._steps.values()]

    @property
    def digest(self) -> str:
        """Return the hash of all evidence; empty without any."""
        evidence = b"".join(step.evidence + b"\n" for step in self._steps.values())
        return hashlib.sha256(evidence).hexdigest() if evidence else ""

    @property
    def words(self) -> frozenset[bytes]:
        """Hashes of losses and rates by step; one of all where rates repeat by themselves.

        Empty if all rates are equal, which proves nothing.
        """
        counts = Counter(self.rates)
        if len(counts) < 2:
            return frozenset()
        hashes = {hashlib.blake2b(it.words, digest_size=16).digest() for it in self._steps.values()}
        steps = nsmallest(_KEPT, hashes)
        if max(counts.values()) > max(1, counts.total() * _REPEATED):
            return frozenset([hashlib.blake2b(b"".join(steps), digest_size=16).digest()])
        return frozenset(steps)


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
