"""Detects drift of the machines during a sweep, by its canary."""

from collections.abc import Sequence
from statistics import median

from orchestrator import words
from orchestrator.measuring import validity
from orchestrator.model.case import Case
from orchestrator.model.problem import Problem
from orchestrator.model.result import Measurement, Result, Watched

LEAST_BOUND = 0.02
LEARNT_FROM = 3  # valid trials; the spread of fewer means nothing


def watched(
    case: Case, places: Sequence[str], trials: Sequence[Measurement], result: Result | None
) -> Watched:
    """Return the canary's trials, marked DRIFT if they differ by more than the case's own trials.

    Args:
        places: when each trial was measured: start, middle or end.
        result: of the same case over its own trials; None without any.
    """
    agreed = tuple(validity.agreeing(trials))
    totals, bound = result.statistics if result else None, LEAST_BOUND
    if totals and totals.spread and totals.n >= LEARNT_FROM:
        bound = max(totals.spread, LEAST_BOUND)
    valid = {
        place: trial.throughput
        for place, trial in zip(places, agreed, strict=True)
        if trial.state == "valid" and trial.throughput is not None
    }
    drift = (max(valid.values()) - min(valid.values())) / median(valid.values()) if valid else None
    marks: tuple[Problem, ...] = ()
    if drift is not None and drift > bound:
        seen = ", ".join(f"{value:.2f} at the {place}" for place, value in valid.items())
        share, most = words.apart(drift, bound, "%")
        text = f"{share} between {seen}; expected at most {most}: the machines changed"
        marks = (Problem("DRIFT", text),)
    return Watched(case, tuple(places), agreed, drift if len(valid) > 1 else None, bound, marks)
