"""Verdicts over all cases of a comparison: different, the same within the bound, or unknown."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from orchestrator import words
from orchestrator.comparing import rank_test, ratios, sizes
from orchestrator.model.result import Interval

LEVEL = 0.05
DIFFERENT = 0.04
"""The level of calling a case different: what is left to 5 % is for simulations' own chance."""
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
        interval: of the difference; None where it would cover nothing.
        p: of the exact rank test, two-sided.
        p_holm: the same, corrected for the cases that could differ by more than the bound.
        needs: trials per side that would probably tell; None where no number would, and where
            nothing is left to tell.
        reason: why it is unknown, or what weakens it, in a sentence; empty otherwise.
        gate: whether it is slower by more than the gate's limit; None without one.
    """

    kind: Kind
    difference: float | None
    interval: Interval | None
    p: float | None
    p_holm: float | None
    needs: int | None
    reason: str
    gate: Gate | None = None


@dataclass(frozen=True, slots=True)
class _Tested:
    """The three exact tests of a case; p is 1 where there is nothing to test."""

    differs: float
    within: float
    not_slower: float


@dataclass(frozen=True, slots=True)
class _Limits:
    """Of how many cases a claim is made, and the gate's limit."""

    measured: int
    far: int
    slower: float | None

    def level(self, case: Samples, difference: float) -> float:
        """That of the claim that a case's difference suggests, corrected for all that make it."""
        if abs(difference) > case.bound:
            return DIFFERENT / max(1, self.far)
        return LEVEL / max(1, self.measured)


def judged(cases: Sequence[Samples], slower: float | None = None) -> tuple[Verdict, ...]:
    """The verdicts on the cases, in order.

    A case is *different* where the rank test finds one distribution improbable and the medians are
    further apart than the bound, the *same* where it finds a difference of the bound or more
    improbable in both directions. Each kind of claim is wrong about no case at all in 19 of 20
    comparisons: its p values are corrected by Holm's method over the cases that have trials. Those
    whose trials could not be further apart than the bound, however they were dealt out to the two
    sides, claim no difference, so that none is corrected for them.

    Args:
        slower: the gate: a case fails if it is different and slower by more than this; it passes
            if such a difference is improbable. The one and the other need trials.

    Source: Holm, Scandinavian Journal of Statistics 6 (1979), 65-70; what cannot be claimed does
        not count: Tarone, Biometrics 46 (1990), 515-522; two one-sided tests at half of the level,
        as an interval of 95 % has them: Schuirmann, Journal of Pharmacokinetics and
        Biopharmaceutics 15 (1987), 657-680.
    """
    tested = [_tested(case, slower) for case in cases]
    measured = [place for place, case in enumerate(cases) if _is_measured(case)]
    far = [place for place in measured if _could_differ(cases[place])]
    differs = _holm(far, [test.differs for test in tested])
    within = _holm(measured, [test.within for test in tested])
    not_slower = _holm(measured, [test.not_slower for test in tested])
    limits = _Limits(len(measured), len(far), slower)
    verdicts = []
    for place, case in enumerate(cases):
        corrected = _Tested(differs[place], within[place], not_slower[place])
        verdicts.append(_verdict(case, tested[place], corrected, limits))
    return tuple(verdicts)


def _is_measured(case: Samples) -> bool:
    return bool(case.first and case.second) and not case.published


def _could_differ(case: Samples) -> bool:
    """Whether the same values, dealt out to the sides in another way, could exceed the bound."""
    values, size, other = sorted((*case.first, *case.second)), len(case.first), len(case.second)
    up = ratios.difference(values[:size], values[size:])
    down = ratios.difference(values[other:], values[:other])
    return up > case.bound or down < -case.bound


def _tested(case: Samples, slower: float | None) -> _Tested:
    if not _is_measured(case):
        return _Tested(1.0, 1.0, 1.0)
    low, high = 1 - case.bound, 1 + case.bound
    within = max(_reached(case, low)[1], _reached(case, high)[0]) if low > 0 else 1.0
    not_slower = 1.0 if slower is None else _reached(case, 1 - slower)[1]
    differs = rank_test.two_sided(case.first, case.second)
    return _Tested(differs, min(1.0, 2 * within), min(1.0, 2 * not_slower))


def _reached(case: Samples, factor: float) -> tuple[float, float]:
    """Both tails, if the second side were the first one times a factor."""
    return rank_test.tails([value * factor for value in case.first], case.second)


def _holm(places: Sequence[int], values: Sequence[float]) -> list[float]:
    """Corrected p values; what is not among those cases keeps its own and does not count."""
    corrected, largest = list(values), 0.0
    ordered = sorted(places, key=lambda place: values[place])
    for rank, place in enumerate(ordered):
        largest = max(largest, min(1.0, (len(ordered) - rank) * values[place]))
        corrected[place] = largest
    return corrected


def _verdict(case: Samples, tested: _Tested, corrected: _Tested, limits: _Limits) -> Verdict:
    slower = limits.slower
    if not (case.first and case.second):
        return _unmeasured(None, "no valid trial on one side", slower)
    difference = ratios.difference(case.first, case.second)
    if case.published:
        return _unmeasured(difference, "published: one value, no trials", slower)
    kind: Kind = "unknown"
    if corrected.within <= LEVEL:
        kind = "same"
    elif corrected.differs <= DIFFERENT and abs(difference) > case.bound:
        kind = "different"
    level = limits.level(case, difference)
    needs = _needs(case, difference, level) if kind == "unknown" else None
    reason = _reason(case, needs, level) if kind == "unknown" else ""
    if case.shared:
        same = f"{words.count(case.shared, 'trial')} on both sides"
        reason = f"{same} tell nothing of two runs: compare with another sweep"
    return Verdict(
        kind=kind,
        difference=difference,
        interval=ratios.interval(case.first, case.second),
        p=tested.differs,
        p_holm=corrected.differs,
        needs=needs,
        reason=reason,
        gate=None if slower is None else _gate(case, kind, difference, (corrected, slower)),
    )


def _unmeasured(difference: float | None, reason: str, slower: float | None) -> Verdict:
    gate: Gate | None = None if slower is None else "unknown"
    return Verdict("unknown", difference, None, None, None, None, reason, gate)


def _gate(case: Samples, kind: Kind, difference: float, tested: tuple[_Tested, float]) -> Gate:
    corrected, slower = tested
    if case.shared:
        return "unknown"
    if kind == "different" and difference < -slower:
        return "slower"
    return "passed" if corrected.not_slower <= LEVEL else "unknown"


def _needs(case: Samples, difference: float, level: float) -> int | None:
    """Trials per side: to see the difference, or that it is no larger than the bound."""
    apart = abs(math.log1p(difference))
    bound = math.log1p(case.bound)
    distance = apart if abs(difference) > case.bound else bound - apart
    size = sizes.telling(sizes.spread(case.first, case.second), distance, level)
    now = min(len(case.first), len(case.second))
    return size if size is None else max(size, now + 1)


def _reason(case: Samples, needs: int | None, level: float) -> str:
    first, second = len(case.first), len(case.second)
    if rank_test.least(first, second) > level:
        few = f"{first} and {second} trials are too few for any claim"
        least = f"needed {sizes.least_each(level)} of each"
        if needs is None:
            return f"{few}: {least}; 1000 that scatter like these would not tell"
        return f"{few}: {least}; {needs} of each would probably tell"
    if needs is None:
        return "as far apart as the bound, or spread too wide: 1000 trials of each would not tell"
    return f"{needs} trials of each would probably tell"
