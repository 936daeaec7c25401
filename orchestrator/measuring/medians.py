"""The result of a case: median, interval, marks, speedup over its 1x1 case; drift of a canary."""

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from orchestrator import nodeset, words
from orchestrator.measuring import intervals, validity
from orchestrator.model.case import Case
from orchestrator.model.problem import Problem
from orchestrator.model.result import Measurement, Result, Statistics, Watched

PLAUSIBLE_EFFICIENCY = 1.05
WIDE_SPREAD = 0.10
OUTLIER_FROM = 5  # trials; of 3 values of a normal distribution one in ten would be an outlier
OUTLIER_MADS = 14.826  # ten standard deviations of a normal distribution
LEAST_DRIFT = 0.02
LEARNT_FROM = 3  # valid trials; the spread of fewer means nothing
# Keys of the provenance that a case and the 1x1 case of its speedup must share.
ALIKE = (
    *("image", "kernel", "driver", "torch", "cpus"),
    *("arch", "num_classes", "image_size", "memory_format", "data_backend"),
)


def result(case: Case, trials: Sequence[Measurement]) -> Result:
    """Return a case's result over its trials, without speedup and efficiency.

    A valid trial that is far from the others is marked, but counts.
    """
    agreed = list(validity.agreeing(trials))
    counted = _values(agreed)
    values, places = [*counted.values()], [*counted]
    for index, share in find_outliers(values).items():
        trial = agreed[places[index]]
        off = words.apart(abs(share), 0.0, "%")[0]
        where = "above" if share > 0 else "below"
        text = f"{off} {where} the median of {words.count(len(values), 'trial')}"
        agreed[places[index]] = replace(trial, marks=(*trial.marks, Problem("OUTLIER", text)))
    totals = summary(values) if values else None
    valid = [trial for trial in agreed if trial.state == "valid"]
    seen = Counter(code for trial in valid for code in dict.fromkeys(it.code for it in trial.marks))
    marks = [Problem(code, f"in {words.count(count, 'trial')}") for code, count in seen.items()]
    if totals is not None and totals.spread is not None and totals.spread > WIDE_SPREAD:
        marks.append(Problem("WIDE-SPREAD", f"{totals.spread:.1%} between the lowest and highest"))
    sets = dict.fromkeys(nodeset.fold(sorted(trial.nodes)) for trial in valid if trial.nodes)
    if len(sets) > 1:
        marks.append(Problem("NODE-SETS", f"its trials ran on {' and on '.join(sets)}"))
    if packed := [trial for trial in valid if trial.beside]:
        cases = sorted({name.partition("-")[0] for trial in packed for name in trial.beside})
        text = f"in {words.count(len(packed), 'trial')}, beside trials of {', '.join(cases)}"
        marks.append(Problem("BESIDE", text))
    return Result(case, tuple(agreed), totals, None, None, tuple(marks))


def _values(trials: Sequence[Measurement]) -> dict[int, float]:
    """Return the throughputs of valid trials by index."""
    return {
        place: trial.throughput
        for place, trial in enumerate(trials)
        if trial.state == "valid" and trial.throughput is not None
    }


def find_outliers(values: Sequence[float]) -> dict[int, float]:
    """Return values that are far from the others: by index, the distance as a share of the median.

    Far is more than 14.826 median absolute deviations; fewer than 5 values have no outliers.

    Source: Iglewicz and Hoaglin (1993); the threshold is hyperfine's, src/outlier_detection.rs.
    """
    if len(values) < OUTLIER_FROM:
        return {}
    middle = statistics.median(values)
    spread = statistics.median(abs(value - middle) for value in values)
    return {
        index: value / middle - 1
        for index, value in enumerate(values)
        if spread and abs(value - middle) / spread > OUTLIER_MADS
    }


def summary(values: Sequence[float]) -> Statistics:
    median, low, high = statistics.median(values), min(values), max(values)
    return Statistics(
        n=len(values),
        median=median,
        mean=statistics.fmean(values),
        low=low,
        high=high,
        spread=(high - low) / median if len(values) > 1 else None,
        interval=intervals.of_median(values),
    )


def compared(results: Sequence[Result]) -> tuple[Result, ...]:
    """Return the results by ranks, then nodes, with speedup and efficiency over their 1x1 case.

    Every table, figure and file of a report keeps this order.
    """
    results = sorted(results, key=lambda result: (result.case.world_size, result.case.nodes))
    baselines = {
        result.case.comparable: result
        for result in results
        if result.case.world_size == 1 and result.statistics is not None
    }
    return tuple(_compare(result, baselines.get(result.case.comparable)) for result in results)


def _compare(result: Result, baseline: Result | None) -> Result:
    if result.median is None or baseline is None or baseline.median is None:
        return result
    # All valid trials share the provenance of the first one.
    here, there = (next((it.provenance for it in of.valid), {}) for of in (result, baseline))
    differs = [key for key in ALIKE if key in here and key in there and here[key] != there[key]]
    if differs:
        seen = "; ".join(f"{key} is {here[key]}, in the 1x1 case {there[key]}" for key in differs)
        return replace(result, marks=(*result.marks, Problem("BASELINE-DIFFERS", seen)))
    speedup = result.median / baseline.median
    efficiency = speedup / result.case.world_size
    marks = result.marks
    if efficiency > PLAUSIBLE_EFFICIENCY:
        seen = f"efficiency {efficiency:.3f}: more than {result.case.world_size} ranks can give"
        marks += (Problem("IMPLAUSIBLE", f"{seen}; look at the 1x1 case"),)
    interval = None
    if result is not baseline:
        ours, theirs = ([*_values(of.trials).values()] for of in (result, baseline))
        interval = intervals.of_quotient(ours, theirs)
    return replace(
        result, speedup=speedup, efficiency=efficiency, marks=marks, speedup_interval=interval
    )


def judge_canary(
    case: Case, places: Sequence[str], trials: Sequence[Measurement], result: Result | None
) -> Watched:
    """Return the canary's trials, marked DRIFT if they differ by more than the case's own trials.

    Args:
        places: when each trial was measured: start, middle or end.
        result: of the same case over its own trials; None without any.
    """
    agreed = tuple(validity.agreeing(trials))
    totals, bound = result.statistics if result else None, LEAST_DRIFT
    if totals and totals.spread and totals.n >= LEARNT_FROM:
        bound = max(totals.spread, LEAST_DRIFT)
    valid = {places[place]: value for place, value in _values(agreed).items()}
    drift = summary([*valid.values()]).spread if valid else None
    marks: tuple[Problem, ...] = ()
    if drift is not None and drift > bound:
        seen = ", ".join(f"{value:.2f} at the {place}" for place, value in valid.items())
        share, most = words.apart(drift, bound, "%")
        text = f"{share} between {seen}; expected at most {most}: the machines changed"
        marks = (Problem("DRIFT", text),)
    return Watched(case, tuple(places), agreed, drift, bound, marks)
