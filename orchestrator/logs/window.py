"""The steps between the two iterations of a window, in the first epoch of a run."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from math import fsum, inf, isfinite, nan
from statistics import median
from typing import NamedTuple

from orchestrator.logs.format import Agreement, Format, Step
from orchestrator.logs.header import Notes
from orchestrator.model.log import RATE_TOLERANCE, SECOND_NS, Moment, TrainingLog

_GAP_TIMES = 5
_SAMPLED = Agreement(step=0.1)
"""For a rate of one step where other steps are not printed; recorded: 6.2 %."""
_LATE = 0.2
"""Share of a step that is too long, by which the next one must be shorter if a line was late."""
_FEWER = 3
"""Decimals that a time lacks beside another if its fraction was dropped; Python drops zeros."""


class _Interval(NamedTuple):
    """The iterations from one printed step to the next.

    Args:
        took_ns: of one iteration, by the clock, else by its latency, else one over its rate.
    """

    before: Step
    step: Step
    iterations: int
    took_ns: float


class Window:
    """The steps inside a window, or the last ones of a run; all of them are evidence.

    Args:
        ends: the first and the last iteration; None for the last ``tail`` steps of the format, or
            for all.
    """

    def __init__(self, ends: tuple[int, int] | None, form: Format, notes: Notes) -> None:
        self._ends = ends
        self._form = form
        self._notes = notes
        self._origin_ns: int | None = None
        self._steps: dict[int, Step] = {}
        """By iteration."""
        self._doubtful: set[int] = set()
        """Iterations that are printed again with other words or another time."""

    def add(self, step: Step) -> None:
        """Take the next step, if it is inside."""
        if self._origin_ns is None:
            self._origin_ns = step.clock_ns
        if self._ends and not self._ends[0] <= step.number <= self._ends[1]:
            return
        if step.stamp and step.clock_ns is None and self._ends:
            self._notes.add("MALFORMED", f"line {step.line}: there is no such date or time")
        self._steps[step.number] = step
        if self._ends is None and 0 < self._form.tail < len(self._steps):
            del self._steps[next(iter(self._steps))]

    def repeat(self, step: Step) -> None:
        """Distrust a step that is printed again with other words or another time."""
        kept = self._steps.get(step.number)
        if kept and (kept.text, kept.stamp) != (step.text, step.stamp):
            self._doubtful.add(step.number)

    def find_ends(self) -> tuple[Step | None, Step | None]:
        """Return both ends, None for one that cannot be measured; two None without a window."""
        first, last = self._ends or (-1, -1)
        return self._find_end(first), self._find_end(last)

    def _find_end(self, iteration: int) -> Step | None:
        """Return a step; None if it is missing or doubtful, or its time does not exist."""
        step = self._steps.get(iteration)
        if step is None or iteration in self._doubtful:
            return None
        return None if step.stamp and step.clock_ns is None else step

    def measure(self, log: TrainingLog, stride: int, batch: float | None) -> TrainingLog:
        """Return the log with its window.

        Note what the window lacks, iterations far longer than others, and a doubtful clock.

        Args:
            batch: samples of an iteration by the header; None if the header lacks them.
        """
        log = replace(log, window=self._ends, origin_ns=self._origin_ns)
        is_latency = self._form.rule == "latency"
        log = self._measure_latency(log, stride) if is_latency else self._measure_ends(log)
        intervals = self._list_intervals()
        if not self._is_coarse(log):
            log = self._compare_clock_with_rates(log, intervals, batch)
        if log.window and intervals:
            self._judge_gap(intervals)
        rates = [step.rate for step in self._steps.values()] if log.lines else []
        mean, whole = compute_mean(rates), compute_harmonic_mean(rates)
        after_first = compute_harmonic_mean(rates[1:])
        evidence = b"".join(step.evidence + b"\n" for step in self._steps.values())
        return replace(
            log,
            window_rate=whole if is_latency else after_first,
            window_mean=mean if isfinite(mean) else None,
            window_weighed=after_first if self._form.averaged else whole,
            digest=hashlib.sha256(evidence).hexdigest() if evidence else "",
        )

    def _measure_ends(self, log: TrainingLog) -> TrainingLog:
        """Set the moments of both ends, and the lines between which the window is."""
        first, last = self.find_ends()
        return replace(
            log,
            start=self._find_moment(first),
            end=self._find_moment(last),
            lines=(first.line, last.line) if first and last else None,
        )

    def _find_moment(self, step: Step | None) -> Moment | None:
        if step is None or step.clock_ns is None:
            return None
        return Moment(step.number, step.clock_ns - (self._origin_ns or 0), step.line)

    def _measure_latency(self, log: TrainingLog, stride: int) -> TrainingLog:
        """Set the mean latency if records follow each other from one end to the other."""
        steps, tail = [*self._steps.values()], self._form.tail
        begin, end = (steps[0].number, steps[-1].number) if steps else (0, 0)
        is_covered, needed = len(steps) == tail, f"its last {tail}"
        if self._ends:
            first, until = self._ends
            needed = f"the window {first}-{until}"
            is_covered = bool(steps) and begin - stride < first and until < end + stride
            is_covered = is_covered and until <= (log.last_iteration or 0)
        is_gapless = end - begin == (len(steps) - 1) * stride
        if not is_covered or not is_gapless or self._doubtful & self._steps.keys():
            seen = f"the log has {log.steps} records, from {log.first_iteration}"
            needed = f"needed {needed}, one every {stride} iterations"
            self._notes.add("WINDOW", f"{seen} to {log.last_iteration}; {needed}")
            self._steps.clear()
            return log
        took_ns = sum(it.latency_ns if it.latency_ns and it.latency_ns > 0 else nan for it in steps)
        mean_s = took_ns / (len(steps) * SECOND_NS)  # rounded only here
        return replace(
            log,
            window=(begin, end),
            lines=(steps[0].line, steps[-1].line),
            latency_s=mean_s if isfinite(mean_s) else None,
        )

    def _list_intervals(self) -> list[_Interval]:
        """Return intervals with a known time; without a clock the first step has one, too."""
        intervals: list[_Interval] = []
        before = None
        for step in self._steps.values():
            ahead, took_ns = step.number - before.number if before else 1, nan
            if step.stamp:
                if step.clock_ns is not None and before and before.clock_ns is not None:
                    took_ns = (step.clock_ns - before.clock_ns) / ahead
            elif step.latency_ns is not None:
                took_ns = step.latency_ns
            # A first rate that is a mean is also that of steps before the window.
            elif step.rate > 0 and (before or not self._form.averaged):
                took_ns = 1 / step.rate
            if isfinite(took_ns):
                intervals.append(_Interval(before or step, step, ahead, took_ns))
            before = step
        return intervals

    def _judge_gap(self, intervals: Sequence[_Interval]) -> None:
        """Note the longest iteration if it took more than 5 times the median."""
        usual_ns = median([it.took_ns for it in intervals])
        longest = max(intervals, key=lambda it: (it.took_ns, it.step.number))
        step, took_ns = longest.step, longest.took_ns
        if not 0 < _GAP_TIMES * usual_ns < took_ns:
            return
        seen = (
            f"took {took_ns / SECOND_NS:.3f} s; the median step takes {usual_ns / SECOND_NS:.3f} s"
        )
        if usual_ns < 1:  # neither clock nor latency: these are one over the rates
            seen = f"has the rate {step.rate:g}; the median is {1 / usual_ns:g}"
        self._notes.add("GAP", f"{step.where}, inside the window, {seen}")

    def _is_coarse(self, log: TrainingLog) -> bool:
        """Return True, and note it, if the time of an end has no fractions of a second.

        Both ends are whole seconds by chance once in 10 ** 12 windows. One end is not suspicious
        if it is printed with as many decimals as the other.
        """
        if not (log.start and log.end) or log.end.clock_ns <= log.start.clock_ns:
            return False
        ends = [self._steps[moment.iteration] for moment in (log.start, log.end)]
        whole = [step for step in ends if (step.clock_ns or 0) % SECOND_NS == 0]
        decimals = [len(step.stamp.partition(b".")[2]) for step in ends]
        if not whole or (len(whole) < 2 and max(decimals) - min(decimals) < _FEWER):
            return False
        seen = f"line {whole[0].line}: the clock shows whole seconds"
        lasted = f"the {(log.end.clock_ns - log.start.clock_ns) / SECOND_NS:g} s between the ends"
        self._notes.add("COARSE-CLOCK", f"{seen}; {lasted} of the window are good to 1 s")
        return True

    def _compare_clock_with_rates(
        self, log: TrainingLog, intervals: Sequence[_Interval], batch: float | None
    ) -> TrainingLog:
        """Note steps, or a whole window, whose time by the clock contradicts the printed rates.

        The median of time x rate is the number of samples of an iteration by the log itself; each
        interval is compared with it, whatever the header says.
        """
        intervals = [it for it in intervals if it.step.rate > 0]
        if not intervals or not any(step.stamp for step in self._steps.values()):
            return log
        samples = median([it.took_ns * it.step.rate for it in intervals]) / SECOND_NS
        log = replace(log, samples=samples)
        if not log.lines:
            return log
        is_sampled = not self._form.averaged and any(it.iterations > 1 for it in intervals)
        limits = _SAMPLED if is_sampled else self._form.agreement
        jumped = self._find_jumps(intervals, samples * SECOND_NS, limits)
        if not (log.start and log.end):
            return log
        agreed, took_ns = self._form.agreement, log.end.clock_ns - log.start.clock_ns
        rate = compute_harmonic_mean([step.rate for step in self._steps.values()][1:])
        if not jumped and batch and rate:
            expected_ns = batch * (log.end.iteration - log.start.iteration) / rate * SECOND_NS
            if is_sampled and samples:  # rates of single steps do not sum up to a window
                expected_ns = took_ns * (batch / samples)
            least_ns = agreed.window * expected_ns + agreed.window_late_ns
            if least_ns < abs(took_ns - expected_ns) <= RATE_TOLERANCE * expected_ns:
                self._note_jump(log.start.line, log.end.line, took_ns, expected_ns)
        if took_ns <= 0 or is_sampled:
            return log
        return replace(log, agreement=agreed.window + agreed.window_late_ns / took_ns)

    def _find_jumps(
        self, intervals: Sequence[_Interval], samples_ns: float, limits: Agreement
    ) -> bool:
        """Note the intervals that are off by more than the limits; return True if there is any.

        An interval beside one that is off by as much the other way is no jump: a line was late.
        ``samples_ns`` is nanoseconds x rate of an iteration.
        """
        digit = (self._form.digits or (0.0, 0.0))[0]
        expected_ns = [samples_ns / it.step.rate * it.iterations for it in intervals]
        off_ns = []  # 0 within the limits
        for it, expected in zip(intervals, expected_ns, strict=True):
            off = it.took_ns * it.iterations - expected
            most = (limits.step + digit / it.step.rate / 2) * expected + limits.late_ns
            off_ns.append(off if abs(off) > most else 0.0)
        has_jumps = False
        neighbors = zip([0.0, *off_ns], [*off_ns[1:], 0.0], strict=False)
        for it, expected, off, beside in zip(
            intervals, expected_ns, off_ns, neighbors, strict=True
        ):
            if off and min(abs(off + other) for other in beside) >= _LATE * abs(off):
                has_jumps = True
                took_ns = it.took_ns * it.iterations
                self._note_jump(it.before.line, it.step.line, took_ns, expected)
        return has_jumps

    def _note_jump(self, begin: int, end: int, by_clock_ns: float, by_rates_ns: float) -> None:
        seen = f"lines {begin} and {end}: {by_clock_ns / SECOND_NS:.3f} s"
        seen = f"{seen} by the clock, {by_rates_ns / SECOND_NS:.3f} s by the printed rate"
        self._notes.add("CLOCK-JUMP", seen)


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
