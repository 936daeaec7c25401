"""The result of a case: median, interval, marks, speedup over its 1x1 case, efficiency."""

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from orchestrator import nodeset, words
from orchestrator.measuring import intervals, validity
from orchestrator.model.case import Case
from orchestrator.model.problem import Problem
from orchestrator.model.result import Measurement, Result, Statistics

PLAUSIBLE_EFFICIENCY = 1.05
WIDE_SPREAD = 0.10
OUTLIER_FROM = 5  # trials; of 3 values of a normal distribution one in ten would be an outlier
OUTLIER_MADS = 14.826  # ten standard deviations of a normal distribution
# Keys of the provenance that a case and the 1x1 case of its speedup must share.
ALIKE = (
    *("image", "kernel", "driver", "torch", "cpus"),
    *("arch", "num_classes", "image_size", "memory_format", "data_backend"),
)


def result(case: Case, trials: Sequence[Measurement]) -> Result:
    """Return a case's result over its trials, without speedup and efficiency."""
    agreed = tuple(_mark_outliers(tuple(validity.agreeing(trials))))
    values = _values(agreed)
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
    return Result(case, agreed, totals, None, None, tuple(marks))


def _values(trials: Iterable[Measurement]) -> list[float]:
    return [
        trial.throughput
        for trial in trials
        if trial.state == "valid" and trial.throughput is not None
    ]


def _mark_outliers(trials: Sequence[Measurement]) -> Iterable[Measurement]:
    """Yield the trials; a valid one that is far from the others is marked, but counts."""
    valid = [trial for trial in trials if trial.state == "valid" and trial.throughput is not None]
    far = find_outliers(_values(valid))
    off_by = {valid[index].trial: share for index, share in far.items()}
    for trial in trials:
        if (share := off_by.get(trial.trial)) is None:
            yield trial
            continue
        where = "above" if share > 0 else "below"
        off = words.apart(abs(share), 0.0, "%")[0]
        text = f"{off} {where} the median of {words.count(len(valid), 'trial')}"
        yield replace(trial, marks=(*trial.marks, Problem("OUTLIER", text)))


def find_outliers(values: Sequence[float]) -> dict[int, float]:
    """Return values that are far from the others: by index, the distance as a share of the median.

    Far is more than 14.826 median absolute deviations; fewer than 5 values have no outliers.

    Source: Iglewicz and Hoaglin (1993); the threshold is hyperfine's, src/outlier_detection.rs.
    """
    middle = statistics.median(values) if values else 0.0
    spread = statistics.median(abs(value - middle) for value in values) if values else 0.0
    if len(values) < OUTLIER_FROM or spread == 0:
        return {}
    return {
        index: value / middle - 1
        for index, value in enumerate(values)
        if abs(value - middle) / spread > OUTLIER_MADS
    }


def compared(results: Sequence[Result]) -> tuple[Result, ...]:
    """Return the results by ranks, then nodes, with speedup and efficiency over their 1x1 case.

    Every table, figure and file of a report keeps this order. Equal sizes keep their order.
    """
    results = sorted(results, key=lambda result: (result.case.world_size, result.case.nodes))
    baselines = {
        result.case.comparable: result
        for result in results
        if result.case.world_size == 1 and result.statistics is not None
    }
    return tuple(_compared(result, baselines.get(result.case.comparable)) for result in results)


def summary(values: Sequence[float]) -> Statistics:
    """Return the statistics of at least one value."""
    ordered = sorted(values)
    median = statistics.median(ordered)
    return Statistics(
        n=len(ordered),
        median=median,
        mean=statistics.fmean(ordered),
        low=ordered[0],
        high=ordered[-1],
        spread=(ordered[-1] - ordered[0]) / median if len(ordered) > 1 else None,
        interval=intervals.of_median(ordered),
    )


def _compared(result: Result, baseline: Result | None) -> Result:
    if result.statistics is None or baseline is None or baseline.statistics is None:
        return result
    here, there = _provenance(result), _provenance(baseline)
    differs = [key for key in ALIKE if key in here and key in there and here[key] != there[key]]
    if differs:
        seen = "; ".join(f"{key} is {here[key]}, in the 1x1 case {there[key]}" for key in differs)
        return replace(result, marks=(*result.marks, Problem("BASELINE-DIFFERS", seen)))
    speedup = result.statistics.median / baseline.statistics.median
    efficiency = speedup / result.case.world_size
    marks = result.marks
    if efficiency > PLAUSIBLE_EFFICIENCY:
        seen = f"efficiency {efficiency:.3f}: more than {result.case.world_size} ranks can give"
        marks += (Problem("IMPLAUSIBLE", f"{seen}; look at the 1x1 case"),)
    return replace(
        result,
        speedup=speedup,
        efficiency=efficiency,
        marks=marks,
        speedup_interval=None
        if result is baseline
        else intervals.of_quotient(_values(result.trials), _values(baseline.trials)),
    )


def _provenance(result: Result) -> Mapping[str, str]:
    """Return the provenance of the first valid trial, which all valid ones share."""
    return next((trial.provenance for trial in result.valid), {})
