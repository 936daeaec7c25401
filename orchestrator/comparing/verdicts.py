"""Verdicts over all cases of a comparison: different, the same within the bound, or unknown."""

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
Verdict = Literal["different", "same", "unknown"]
Gate = Literal["passed", "slower", "unknown"]


@dataclass(frozen=True, slots=True)
class ComparedCase:
    """A case that both sides have, with its verdict.

    Args:
        difference: second median / first median - 1; None if a side has no trial.
        p_holm: p of the rank test, corrected for all cases that have trials.
        reason: why it is unknown, or what weakens it, in a sentence.
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
    row = ComparedCase(
        first=first,
        second=second,
        verdict=verdict,
        difference=second.median / first.median - 1 if first.median and second.median else None,
        interval=interval,
        p=p,
        p_holm=p_holm,
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
    if row.verdict == "unknown":
        return "as far apart as the bound, or spread too wide: more trials of each may tell"
    own, wider = row.interval, row.gate_interval
    if row.gate != "unknown" or not own or not wider or slower is None or own.high >= -slower:
        return None
    return (
        f"slower by more than {slower:.2%} by its own interval, but not by the wider one"
        f" ({wider.low:+.2%} to {wider.high:+.2%}) that is needed for so many cases"
    )
