"""The steps between the two iterations of a window, in the first epoch of a run."""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from heapq import nsmallest
from math import fsum, inf, isfinite, nan
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from orchestrator.logs.format import Agreement, Format, Step
from orchestrator.logs.header import Notes
from orchestrator.model.log import RATE_TOLERANCE, SECOND_NS, Moment, TrainingLog

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
    """The time of an iteration, from the step before to a step, ``ahead`` iterations later.

    Args:
        took_ns: by the clock, else by the printed latency, else one over the rate.
    """

    took_ns: float
    ahead: int
    before: Step
    step: Step


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
        """Return both ends; None for one that lacks, is doubtful, or has an impossible time."""
        first, last = (
            step
            if (step := self._steps.get(number))
            and number not in self._doubtful
            and (step.clock_ns is not None or not step.stamp)
            else None
            for number in self._ends or (-1, -1)
        )
        return first, last

    def measure(
        self, log: TrainingLog, run: "Run", stride: int, batch: float | None
    ) -> TrainingLog:
        """Return the log with its window.

        Note what it lacks, iterations far longer than others, and a doubtful clock.

        Args:
            batch: samples of an iteration by the header; None if the header lacks them.
        """
        form, is_latency = self._form, self._form.rule == "latency"
        log = replace(log, window=self._ends, origin_ns=self._origin_ns)
        if is_latency:
            log = self._measure_records(log, run, stride)
        first, last = self.find_ends()
        log = replace(
            log,
            start=self._find_moment(first),
            end=self._find_moment(last),
            lines=(first.line, last.line) if first and last and not is_latency else log.lines,
        )
        paces = self._list_paces()
        if not self._is_coarse(log):
            log = self._judge_clock(log, [pace for pace in paces if pace.step.rate > 0], batch)
        if log.window and paces:
            self._judge_gap(paces)
        steps = self._steps.values()
        rates = [step.rate for step in steps] if log.lines else []
        mean, after_first = compute_mean(rates), compute_harmonic_mean(rates[1:])
        whole = compute_harmonic_mean(rates)
        evidence = b"".join(step.evidence + b"\n" for step in steps)
        return replace(
            log,
            window_rate=whole if is_latency else after_first,
            window_mean=mean if isfinite(mean) else None,
            window_weighed=after_first if form.averaged else whole,
            digest=hashlib.sha256(evidence).hexdigest() if evidence else "",
            words=self._hash_words(),
        )

    def _find_moment(self, step: Step | None) -> Moment | None:
        if step is None or step.clock_ns is None:
            return None
        return Moment(step.number, step.clock_ns - (self._origin_ns or 0), step.line)

    def _measure_records(self, log: TrainingLog, run: "Run", stride: int) -> TrainingLog:
        """Take the mean latency if records follow each other from one end to the other."""
        steps, tail = [*self._steps.values()], self._form.tail
        last = run.last.number if run.last else 0
        begin, end = (steps[0].number, steps[-1].number) if steps else (0, 0)
        is_covered, needed = len(steps) == tail, f"its last {tail}"
        if self._ends:
            (first, until), is_covered = self._ends, bool(steps)
            is_covered = is_covered and begin - stride < first and until < end + stride
            is_covered, needed = is_covered and until <= last, f"the window {first}-{until}"
        is_gapless = end - begin == (len(steps) - 1) * stride
        if not is_covered or not is_gapless or self._doubtful & self._steps.keys():
            seen = f"the log has {run.steps} records, from {run.first and run.first.number}"
            needed = f"needed {needed}, one every {stride} iterations"
            self._notes.add("WINDOW", f"{seen} to {last}; {needed}")
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

    def _judge_clock(
        self, log: TrainingLog, paces: Sequence[_Pace], batch: float | None
    ) -> TrainingLog:
        """Note steps, or a whole window, whose time by the clock contradicts the printed rates.

        Where only some steps are printed, the median of the samples that clock and rates give for
        an iteration is compared with the batch.

        Args:
            paces: of steps with a positive rate.
        """
        if not paces or not any(step.stamp for step in self._steps.values()):
            return log
        usual = median([pace.took_ns * pace.step.rate for pace in paces])
        samples, agreement = usual / SECOND_NS, RATE_TOLERANCE
        if not log.lines:
            return replace(log, samples=samples)
        agreed, start, end = self._form.agreement, log.start, log.end
        is_sampled = not self._form.averaged and any(pace.ahead > 1 for pace in paces)
        took_ns = end.clock_ns - start.clock_ns if start and end else 0
        if took_ns > 0 and not is_sampled:
            agreement = agreed.window + agreed.window_late_ns / took_ns
        jumps = self._find_jumps(paces, usual, _SAMPLED if is_sampled else agreed)
        rate = compute_harmonic_mean([step.rate for step in self._steps.values()][1:])
        if not jumps and batch and rate and start and end:
            expected_ns = batch * (end.iteration - start.iteration) / rate * SECOND_NS
            if is_sampled:
                expected_ns = took_ns * (batch / samples)
            least_ns = agreed.window * expected_ns + agreed.window_late_ns
            if least_ns < abs(took_ns - expected_ns) <= RATE_TOLERANCE * expected_ns:
                jumps = [(start.line, end.line, took_ns, expected_ns)]
        for before, after, by_clock_ns, by_rates_ns in jumps:
            seen = f"lines {before} and {after}: {by_clock_ns / SECOND_NS:.3f} s"
            seen = f"{seen} by the clock, {by_rates_ns / SECOND_NS:.3f} s by the printed rate"
            self._notes.add("CLOCK-JUMP", seen)
        return replace(log, samples=samples, agreement=agreement)

    def _find_jumps(
        self, paces: Sequence[_Pace], usual: float, limit: Agreement
    ) -> Sequence[tuple[int, int, float, float]]:
        """Return two lines, and the nanoseconds between them by the clock and by the rates."""
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
            (pace.before.line, pace.step.line, pace.took_ns * pace.ahead, expected)
            for pace, expected, before, off, after in zip(
                paces, expected_ns, off_ns, off_ns[1:], off_ns[2:], strict=False
            )
            if off and min(abs(off + before), abs(off + after)) >= 0.2 * abs(off)
        ]

    def _hash_words(self) -> frozenset[bytes]:
        """Hash losses and rates by step; make it one hash where rates repeat by themselves.

        Equal rates prove nothing, and have no hash.
        """
        counts = Counter(step.rate for step in self._steps.values())
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
