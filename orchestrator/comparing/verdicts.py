"""Verdicts over all cases of a comparison: different, the same within the bound, or unknown."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from orchestrator import words
from orchestrator.comparing import rank_test
from orchestrator.measuring import intervals
from orchestrator.model.result import Interval

LEVEL = 1 - intervals.COVERAGE
LEAST_TRIALS = 3
"""Each side needs this many for a verdict: the interval of two trials covers only 88 %."""
MOST_FURTHER = 100
"""Further trials of each side; if more are needed, no number is named."""
_SURE = 0.6  # standard deviations: three in four of a normal distribution are below
_WIDENED = 1.12  # intervals are wider than Welch's by so much, as simulated
Kind = Literal["different", "same", "unknown"]
Gate = Literal["passed", "slower", "unknown"]


@dataclass(frozen=True, slots=True)
class Samples:
    """The valid trials of one case on both sides, in samples per second; higher is better.

    Args:
        first, second: may be empty; a published result is one value.
        bound: the largest difference that counts as noise, such as 0.01.
        shared: number of trials that are on both sides, and so prove nothing.
        published: True if a side is a published value, which has no trials.
    """

    first: tuple[float, ...]
    second: tuple[float, ...]
    bound: float
    shared: int = 0
    published: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on a case.

    Args:
        difference: second median / first median - 1; None if a side has no trial.
        interval: of the difference; None if a side has fewer than two trials.
        p: of the exact rank test, two-sided.
        p_holm: p, corrected for all cases that have trials.
        more: about how many more trials of each side would decide, from and to; None if none of
            these numbers would, and if the case is decided.
        reason: why it is unknown, or what weakens it, in a sentence; else empty.
        gate: "slower" by more than the gate's limit, or not; None without a gate.
        gate_interval: of the difference, wide enough that no case at all fails by chance.
    """

    kind: Kind
    difference: float | None
    interval: Interval | None = None
    p: float | None = None
    p_holm: float | None = None
    more: tuple[int, int] | None = None
    reason: str = ""
    gate: Gate | None = None
    gate_interval: Interval | None = None


def judge_cases(cases: Sequence[Samples], slower: float | None = None) -> tuple[Verdict, ...]:
    """Return the verdicts on the cases, in order.

    A case is *different* if the whole interval of its difference is beyond the bound, the *same* if
    it is within the bound, else *unknown*.

    Args:
        slower: the gate's limit. A case passes if its interval contains nothing slower by more than
            this. All cases must pass, so many cases make no wrong pass more probable. A case fails
            if its whole interval is slower. One such case is enough, so this interval is corrected
            for the number of cases, by Bonferroni's method.
    """
    measured = [case for case in cases if _is_measured(case)]
    p = [rank_test.two_sided(case.first, case.second) for case in measured]
    tested = iter(zip(p, _holm(p), strict=True))
    return tuple(
        _verdict(case, next(tested), slower, len(measured))
        if _is_measured(case)
        else _unmeasured(case, slower)
        for case in cases
    )


def _is_measured(case: Samples) -> bool:
    return bool(case.first and case.second) and not case.published


def _holm(values: Sequence[float]) -> list[float]:
    """Return corrected p values.

    Source: Holm, Scandinavian Journal of Statistics 6 (1979), 65-70.
    """
    corrected, largest = list(values), 0.0
    for rank, place in enumerate(sorted(range(len(values)), key=lambda place: values[place])):
        largest = max(largest, min(1.0, (len(values) - rank) * values[place]))
        corrected[place] = largest
    return corrected


def _difference(case: Samples) -> float:
    return statistics.median(case.second) / statistics.median(case.first) - 1


def _unmeasured(case: Samples, slower: float | None) -> Verdict:
    has_both = case.first and case.second
    return Verdict(
        kind="unknown",
        difference=_difference(case) if has_both else None,
        reason="published: one value, no trials" if has_both else "no valid trial on one side",
        gate=None if slower is None else "unknown",
    )


def _verdict(
    case: Samples, tested: tuple[float, float], slower: float | None, cases: int
) -> Verdict:
    interval = _interval(case, LEVEL)
    enough = min(len(case.first), len(case.second)) >= LEAST_TRIALS
    kind = _kind(interval, case.bound) if interval and enough else "unknown"
    gate_interval = None if slower is None else _interval(case, LEVEL / cases)
    gate = None if slower is None else _gate(case, interval, gate_interval, slower)
    more = None
    if interval is not None and kind == "unknown":
        more = estimate_more_trials(case)
    return Verdict(
        kind=kind,
        difference=_difference(case),
        interval=interval,
        p=tested[0],
        p_holm=tested[1],
        more=more,
        reason=_reason(case, kind, interval, more)
        or _unsure(gate, interval, gate_interval, slower),
        gate=gate,
        gate_interval=gate_interval,
    )


def _interval(case: Samples, outside: float) -> Interval | None:
    found = intervals.of_quotient(case.second, case.first, outside)
    return found and Interval(found.low - 1, found.high - 1, found.coverage)


def _kind(interval: Interval, bound: float) -> Kind:
    if interval.low > bound or interval.high < -bound:
        return "different"
    return "same" if -bound <= interval.low and interval.high <= bound else "unknown"


def _gate(
    case: Samples, interval: Interval | None, corrected: Interval | None, slower: float
) -> Gate:
    enough = min(len(case.first), len(case.second)) >= LEAST_TRIALS
    if case.shared or interval is None or corrected is None or not enough:
        return "unknown"
    if corrected.high < -slower:
        return "slower"
    return "passed" if interval.low >= -slower else "unknown"


def _unsure(
    gate: Gate | None, interval: Interval | None, corrected: Interval | None, slower: float | None
) -> str:
    """Return why the gate does not fail a case whose own interval is beyond its limit."""
    if gate != "unknown" or not (interval and corrected and slower) or interval.high >= -slower:
        return ""
    return (
        f"slower by more than {slower:.2%} by its own interval, but not by the wider one"
        f" ({corrected.low:+.2%} to {corrected.high:+.2%}) that is needed for so many cases"
    )


def _reason(
    case: Samples, kind: Kind, interval: Interval | None, more: tuple[int, int] | None
) -> str:
    if case.shared:
        same = f"{words.count(case.shared, 'trial')} on both sides"
        return f"{same} tell nothing of two runs: compare with another sweep"
    if interval is None:
        return "one trial of a side has no spread: needed at least two of each, better five"
    if kind != "unknown":
        return ""
    if more is None:
        return (
            "as far apart as the bound, or spread too wide:"
            f" {MOST_FURTHER} more trials of each would probably not tell"
        )
    low, high = more
    return f"about {low} to {words.count(high, 'more trial')} of each would probably tell"


def estimate_more_trials(case: Samples) -> tuple[int, int] | None:
    """Return about how many more trials of each side would decide a case, as a range.

    With the lower number the interval is as narrow as the distance of the difference from the
    bound, if both are what these trials show. The higher one holds for a wider spread and a smaller
    distance too: ``docs/compare.md`` gives how often both decide. None beyond ``MOST_FURTHER``.
    """
    logs = [[math.log(value) for value in values] for values in (case.first, case.second)]
    fewest, freedom = min(map(len, logs)), sum(map(len, logs)) - 2
    spread = math.sqrt(sum(map(intervals.variance, logs)))
    apart = abs(math.log(statistics.median(case.second) / statistics.median(case.first)))
    distance = abs(apart - math.log1p(case.bound))
    error = _SURE * spread / math.sqrt(fewest)
    low = _needed(fewest, spread, distance, 0.0)
    high = _needed(fewest, spread * _widest(freedom), distance - error, _SURE)
    return None if low is None or high is None else (low, high)


def _needed(size: int, spread: float, distance: float, surely: float) -> int | None:
    for further in range(1, MOST_FURTHER + 1):
        count = size + further
        wide = _WIDENED * intervals.student(0.05, 2 * count - 2) + surely
        if wide * spread / math.sqrt(count) <= distance:
            return further
    return None


def _widest(freedom: int) -> float:
    """Return the quotient of true and observed spread that three in four samples stay below.

    Source: Wilson and Hilferty, Proceedings of the National Academy of Sciences 17 (1931), 684-688.
    """
    part = 2 / (9 * freedom)
    return math.pow(1 - part - _SURE * math.sqrt(part), -1.5)
