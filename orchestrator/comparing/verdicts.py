"""Verdicts over all cases of a comparison: different, the same within the bound, or unknown."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from orchestrator import words
from orchestrator.comparing import rank_test
from orchestrator.comparing.sides import SideCase
from orchestrator.measuring import intervals
from orchestrator.model.result import Interval

LEVEL = 1 - intervals.COVERAGE
LEAST_TRIALS = 3
"""Each side needs this many for a verdict: the interval of two trials covers only 88 %."""
MOST_FURTHER = 100
"""Further trials of each side; if more are needed, no number is named."""
_SURE = 0.6  # standard deviations: three in four of a normal distribution are below
_WIDENED = 1.12  # intervals are wider than Welch's by so much, as simulated
Verdict = Literal["different", "same", "unknown"]
Gate = Literal["passed", "slower", "unknown"]


@dataclass(frozen=True, slots=True)
class ComparedCase:
    """A case that both sides have, with its verdict.

    Args:
        difference: second median / first median - 1; None if a side has no trial.
        p_holm: p of the rank test, corrected for all cases that have trials.
        reason: why it is unknown, or what weakens it, in a sentence.
        more_trials: about how many more trials of each side would decide, from and to; None if
            none of these numbers would, and if the case is decided.
        shared_trials: number of trials that are on both sides, and so prove nothing.
        gate: None without a gate.
        gate_interval: of the difference, wide enough that no case at all fails by chance.
    """

    first: SideCase
    second: SideCase
    verdict: Verdict
    difference: float | None = None
    interval: Interval | None = None
    p: float | None = None
    p_holm: float | None = None
    reason: str | None = None
    more_trials: tuple[int, int] | None = None
    shared_trials: int = 0
    gate: Gate | None = None
    gate_interval: Interval | None = None


def judge_cases(
    cases: Sequence[tuple[SideCase, SideCase]], bound: float, slower: float | None = None
) -> tuple[ComparedCase, ...]:
    """Return the verdicts on the cases, in order.

    A case is *different* if the whole interval of its difference is beyond the bound, the *same* if
    it is within the bound, else *unknown*. It passes the gate if its interval contains nothing that
    is slower by more than the limit: all cases must pass, so many cases make no wrong pass more
    probable. It fails if its whole interval is slower: one such case is enough, so this interval is
    corrected for the number of cases, by Bonferroni's method.
    """
    p = {
        number: rank_test.two_sided(first.values, second.values)
        for number, (first, second) in enumerate(cases)
        if first.values and second.values
    }
    p_holm = correct_p(p)
    return tuple(
        _judge(*pair, bound, slower, p.get(number), p_holm.get(number), len(p))
        for number, pair in enumerate(cases)
    )


def correct_p(values: Mapping[int, float]) -> dict[int, float]:
    """Return corrected p values.

    Source: Holm, Scandinavian Journal of Statistics 6 (1979), 65-70.
    """
    corrected, largest = {}, 0.0
    for rank, number in enumerate(sorted(values, key=values.__getitem__)):
        largest = max(largest, min(1.0, (len(values) - rank) * values[number]))
        corrected[number] = largest
    return corrected


def _judge(
    first: SideCase,
    second: SideCase,
    bound: float,
    slower: float | None,
    p: float | None,
    p_holm: float | None,
    tests: int,
) -> ComparedCase:
    verdict: Verdict = "unknown"
    gate: Gate | None = None if slower is None else "unknown"
    ours, theirs = ({it.sha256 for it in case.valid if it.sha256} for case in (first, second))
    shared = len(ours & theirs)
    interval = _interval(first, second, LEVEL)
    corrected = None if slower is None else _interval(first, second, LEVEL / max(tests, 1))
    if interval and min(len(first.values), len(second.values)) >= LEAST_TRIALS:
        if interval.low > bound or interval.high < -bound:
            verdict = "different"
        elif -bound <= interval.low and interval.high <= bound:
            verdict = "same"
        if corrected and slower is not None and not shared:
            if corrected.high < -slower:
                gate = "slower"
            elif interval.low >= -slower:
                gate = "passed"
    is_open = interval is not None and verdict == "unknown"
    row = ComparedCase(
        first=first,
        second=second,
        verdict=verdict,
        difference=second.median / first.median - 1 if first.median and second.median else None,
        interval=interval,
        p=p,
        p_holm=p_holm,
        more_trials=_estimate_more(first.values, second.values, bound) if is_open else None,
        shared_trials=shared,
        gate=gate,
        gate_interval=corrected,
    )
    return replace(row, reason=_explain(row, slower))


def _interval(first: SideCase, second: SideCase, outside: float) -> Interval | None:
    found = intervals.of_quotient(second.values, first.values, outside)
    return found and Interval(found.low - 1, found.high - 1, found.coverage)


def _explain(row: ComparedCase, slower: float | None) -> str | None:
    """Return why a case is unknown, or what weakens its verdict."""
    if row.shared_trials:
        same = f"{words.count(row.shared_trials, 'trial')} on both sides"
        return f"{same} tell nothing of two runs: compare with another sweep"
    if min(len(row.first.values), len(row.second.values)) < LEAST_TRIALS:
        return f"needed at least {LEAST_TRIALS} valid trials on each side, better five"
    if row.verdict == "unknown" and row.more_trials:
        low, high = row.more_trials
        return f"about {low} to {words.count(high, 'more trial')} of each would probably tell"
    if row.verdict == "unknown":
        return (
            "as far apart as the bound, or spread too wide:"
            f" {MOST_FURTHER} more trials of each would probably not tell"
        )
    own, wider = row.interval, row.gate_interval
    if row.gate != "unknown" or not own or not wider or slower is None or own.high >= -slower:
        return None
    return (
        f"slower by more than {slower:.2%} by its own interval, but not by the wider one"
        f" ({wider.low:+.2%} to {wider.high:+.2%}) that is needed for so many cases"
    )


def _estimate_more(
    first: Sequence[float], second: Sequence[float], bound: float
) -> tuple[int, int] | None:
    """Return about how many more trials of each side would decide a case, as a range.

    With the lower number the interval is as narrow as the distance of the difference from the
    bound, if both are what these trials show. The higher one holds for a wider spread, which three
    in four samples stay below, and for a smaller distance too: ``docs/compare.md`` gives how often
    both decide. None beyond ``MOST_FURTHER``.

    Source: Wilson and Hilferty, Proceedings of the National Academy of Sciences 17 (1931), 684-688.
    """
    logs = [[math.log(value) for value in values] for values in (first, second)]
    fewest, part = min(map(len, logs)), 2 / (9 * (sum(map(len, logs)) - 2))
    spread = math.sqrt(sum(map(intervals.variance, logs)))
    apart = abs(math.log(statistics.median(second) / statistics.median(first)))
    distance = abs(apart - math.log1p(bound))
    widest = spread * math.pow(1 - part - _SURE * math.sqrt(part), -1.5)

    def needed(spread: float, distance: float, surely: float) -> int | None:
        for further in range(1, MOST_FURTHER + 1):
            count = fewest + further
            wide = _WIDENED * intervals.student(LEVEL, 2 * count - 2) + surely
            if wide * spread / math.sqrt(count) <= distance:
                return further
        return None

    low = needed(spread, distance, 0.0)
    high = needed(widest, distance - _SURE * spread / math.sqrt(fewest), _SURE)
    return None if low is None or high is None else (low, high)
