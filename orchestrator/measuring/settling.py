"""Decides when a case needs no further trial, and which trial may begin, by outcomes alone.

A case has settled once at least ``min`` trials from the first one on are valid, without a gap, and
their interval is narrow enough. Extra trials start only after the earlier ones are valid. So the
trials that are run do not depend on how many run at once, or on where a sweep was interrupted.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from orchestrator import words
from orchestrator.measuring import medians
from orchestrator.model.case import Case
from orchestrator.model.experiment import Method, Repeats
from orchestrator.model.plan import Plan, Trial
from orchestrator.model.problem import Problem
from orchestrator.model.result import Result, Statistics

Values = Mapping[str, float | None]
"""Throughputs of valid outcomes by trial name; None or absent without one."""


class Series:
    """The trials of a plan's cases by repeat."""

    def __init__(self, plan: Plan) -> None:
        self._by_case = plan.by_case
        self._repeats = plan.method.repeats

    def settle(self, case: Case, values: Values) -> Statistics | None:
        """Return the statistics by which a case has settled, None if it has not, or never can."""
        if not isinstance(self._repeats, Repeats):
            return None
        known = []
        for trial in self._by_case[case]:
            if (value := values.get(trial.name)) is None:
                break
            known.append(value)
        return narrow(known, self._repeats)

    def not_needed(self, values: Values) -> frozenset[str]:
        """Return the names of trials without a valid outcome whose case has settled."""
        return frozenset(
            trial.name
            for case, trials in self._by_case.items()
            if self.settle(case, values)
            for trial in trials
            if values.get(trial.name) is None
        )

    def ready(
        self, pending: Sequence[Trial], running: Collection[Trial], values: Values
    ) -> tuple[Trial, ...]:
        """Return the pending trials that may begin now, in their order.

        A canary runs alone, so that its measurements are comparable; later trials wait for it.
        """
        if any(trial.canary for trial in running):
            return ()
        canary = next((place for place, trial in enumerate(pending) if trial.canary), len(pending))
        before = tuple(trial for trial in pending[:canary] if self._may_begin(trial, values))
        return before if before or running else tuple(pending[canary : canary + 1])

    def _may_begin(self, trial: Trial, values: Values) -> bool:
        if not isinstance(self._repeats, Repeats):
            return True
        if self.settle(trial.case, values):
            return False
        return trial.repeat <= self._repeats.min or all(
            values.get(earlier.name) is not None
            for earlier in self._by_case[trial.case]
            if earlier.repeat < trial.repeat
        )


def narrow(values: Sequence[float], often: Repeats) -> Statistics | None:
    """Return the statistics of a case's values if these are enough, else None."""
    totals = medians.summary(values) if len(values) >= often.min else None
    wide = width(totals) if totals else None
    return None if wide is None or wide > often.share else totals


def width(statistics: Statistics) -> float | None:
    """Return the interval's width as a share of the median, None for a single trial."""
    interval = statistics.interval
    return None if interval is None else (interval.high - interval.low) / statistics.median


def describe(statistics: Statistics) -> str:
    """Return in words how narrow a settled case's interval is, and its coverage."""
    covered = statistics.interval.coverage if statistics.interval else 0.0
    return (
        f"settled after {words.count(statistics.n, 'trial')}: its interval is"
        f" {width(statistics) or 0:.2%} of the median wide; on average over all cases {covered:.1%}"
        " of such intervals hold the median"
    )


def mark_unsettled(result: Result, method: Method) -> Result:
    """Mark a result UNSETTLED if nothing is left to run and its interval is too wide."""
    often, totals = method.repeats, result.statistics
    if not isinstance(often, Repeats):
        return result
    values = [trial.throughput for trial in result.valid if trial.throughput is not None]
    if narrow(values, often):
        return replace(result, settled=True)
    if any(trial.state == "planned" for trial in result.trials):
        return replace(result, settled=False)
    text = f"after {words.count(totals.n if totals else 0, 'valid trial')}"
    if (wide := width(totals) if totals else None) is not None:
        seen = words.apart(wide, often.share, "%", 2)[0]
        text += f" its interval is {seen} of the median wide"
    unsettled = Problem("UNSETTLED", f"{text}; needed at most {often.until_interval}")
    return replace(result, settled=False, marks=(*result.marks, unsettled))
