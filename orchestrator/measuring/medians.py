"""The result of a case: median, interval, speedup over its 1x1 case, efficiency."""

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from orchestrator import nodeset, words
from orchestrator.measuring import intervals, series, validity
from orchestrator.model.case import Case
from orchestrator.model.problem import Problem
from orchestrator.model.result import Measurement, Result, Statistics

PLAUSIBLE_EFFICIENCY = 1.05
WIDE_SPREAD = 0.10
# What must not differ between a case and the 1x1 case that its speedup is taken over.
ALIKE = (
    *("image", "kernel", "driver", "torch", "cpus"),
    *("arch", "num_classes", "image_size", "memory_format", "data_backend"),
)


def result(case: Case, trials: Sequence[Measurement]) -> Result:
    """A case's result over its trials, without speedup and efficiency."""
    agreed = tuple(_with_outliers(tuple(validity.agreeing(trials))))
    values = _values(agreed)
    totals = summary(values) if values else None
    valid = [trial for trial in agreed if trial.state == "valid"]
    seen = Counter(code for trial in valid for code in dict.fromkeys(it.code for it in trial.marks))
    marks = [Problem(code, f"in {words.count(count, 'trial')}") for code, count in seen.items()]
    if totals is not None and totals.spread is not None and totals.spread > WIDE_SPREAD:
        marks.append(Problem("WIDE-SPREAD", f"{totals.spread:.1%} between the lowest and highest"))
    marks += [*_trend(values), *_node_sets(agreed), *_beside(agreed)]
    return Result(case, agreed, totals, None, None, tuple(marks))


def _values(trials: Iterable[Measurement]) -> list[float]:
    """The throughputs of the valid trials."""
    return [
        trial.throughput
        for trial in trials
        if trial.state == "valid" and trial.throughput is not None
    ]


def _with_outliers(trials: Sequence[Measurement]) -> Iterable[Measurement]:
    """The trials; a valid one that is far from the others is marked, and counts all the same."""
    valid = [trial for trial in trials if trial.state == "valid" and trial.throughput is not None]
    far = series.outliers(_values(valid))
    off_by = {valid[index].trial: share for index, share in far.items()}
    for trial in trials:
        if (share := off_by.get(trial.trial)) is None:
            yield trial
            continue
        where = "above" if share > 0 else "below"
        off = words.apart(abs(share), 0.0, "%")[0]
        text = f"{off} {where} the median of {words.count(len(valid), 'trial')}"
        yield replace(trial, marks=(*trial.marks, Problem("OUTLIER", text)))


def _trend(values: Sequence[float]) -> Iterable[Problem]:
    """The mark of trials that rise or fall one after another."""
    if (change := series.trend(values)) is not None:
        way = "rises" if change > 0 else "falls"
        yield Problem("TREND", f"it {way} by {abs(change):.1%} over {len(values)} trials")


def _node_sets(trials: Sequence[Measurement]) -> Iterable[Problem]:
    """The mark of a median over trials that ran on more than one set of nodes."""
    valid = [trial for trial in trials if trial.state == "valid" and trial.nodes]
    sets = dict.fromkeys(nodeset.fold(sorted(trial.nodes)) for trial in valid)
    if len(sets) > 1:
        yield Problem("NODE-SETS", f"its trials ran on {' and on '.join(sets)}")


def _beside(trials: Sequence[Measurement]) -> Iterable[Problem]:
    """The mark of a median over trials that did not have the cluster to themselves."""
    packed = [trial for trial in trials if trial.state == "valid" and trial.beside]
    cases = dict.fromkeys(name.partition("-")[0] for trial in packed for name in trial.beside)
    if packed:
        counted = words.count(len(packed), "trial")
        yield Problem("BESIDE", f"in {counted}, beside trials of {', '.join(sorted(cases))}")


def compared(results: Sequence[Result]) -> tuple[Result, ...]:
    """Return the results by ranks, then nodes, with speedup and efficiency over their 1x1 case.

    Every table, figure and file of a report keeps this order. Equal sizes stay as they come.
    """
    results = sorted(results, key=lambda result: (result.case.world_size, result.case.nodes))
    baselines = {
        result.case.comparable: result
        for result in results
        if result.case.world_size == 1 and result.statistics is not None
    }
    return tuple(_compared(result, baselines.get(result.case.comparable)) for result in results)


def summary(values: Sequence[float]) -> Statistics:
    """Statistics of at least one value."""
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
        marks += (
            Problem(
                "IMPLAUSIBLE",
                f"efficiency {efficiency:.3f}: more than {result.case.world_size} ranks can give;"
                " look at the 1x1 case",
            ),
        )
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
    """The provenance of the first valid trial, which all valid ones share."""
    return next((trial.provenance for trial in result.valid), {})
