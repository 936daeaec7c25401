"""Verdicts over all cases of a comparison: different, the same within the bound, or unknown."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from orchestrator import words
from orchestrator.comparing import rank_test, sizes
from orchestrator.measuring import intervals
from orchestrator.model.result import Interval

LEVEL = 1 - intervals.COVERAGE
LEAST_TRIALS = 3
"""Each side needs this many for a verdict: the interval of two trials covers only 88 %."""
Kind = Literal["different", "same", "unknown"]
Gate = Literal["passed", "slower", "unknown"]


@dataclass(frozen=True, slots=True)
class Samples:
    """The valid trials of one case on both sides, in samples per second; higher is better.

    Args:
        first, second: maybe empty; one value alone where somebody published it.
        bound: up to which a difference is noise, such as 0.01.
        shared: how many trials are on both sides, so that they tell nothing.
        published: whether a side is a published value, which has no trials.
    """

    first: tuple[float, ...]
    second: tuple[float, ...]
    bound: float
    shared: int = 0
    published: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the trials of a case say.

    Args:
        difference: second median / first median - 1; None where a side has no trial.
        interval: of the difference; None where a side has fewer than two trials.
        p: of the exact rank test, two-sided.
        p_holm: the same, corrected for all cases that have trials.
        more: about how many more trials of each side would tell, from and to; None where none of
            these numbers would, and where nothing is left to tell.
        reason: why it is unknown, or what weakens it, in a sentence; empty otherwise.
        gate: whether it is slower by more than the gate's limit; None without one.
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


def judged(cases: Sequence[Samples], slower: float | None = None) -> tuple[Verdict, ...]:
    """Return the verdicts on the cases, in order.

    A case is *different* if the whole interval of its difference is beyond the bound, the *same* if
    it is within, and else *unknown*.

    Args:
        slower: the gate. A case passes if its interval has nothing slower by more than this: all
            cases must pass, so that no number of them makes a wrong pass more probable. It fails if
            its interval is slower throughout. One such case is enough to fail, so that this
            interval is corrected for the number of cases, by Bonferroni's method.
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
        more = sizes.more(case.first, case.second, case.bound)
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
            f" {sizes.MOST} more trials of each would probably not tell"
        )
    low, high = more
    return f"about {low} to {words.count(high, 'more trial')} of each would probably tell"
