"""Adds a workload's facts to a report's cases: names, operation counts, published results."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from orchestrator import words
from orchestrator.measuring import hardware, node_speeds, published
from orchestrator.measuring.hardware import Machines
from orchestrator.model.case import Case
from orchestrator.model.problem import Problem
from orchestrator.model.report import PublishedResult, Report
from orchestrator.model.result import Result
from orchestrator.workloads import Workload

NOT_OF_THE_PROGRAM = frozenset({"folder"})  # distinguishes cases of a folder of logs
Value = TypeVar("Value")


def completed(
    report: Report, workload: Workload, publications: Sequence[PublishedResult]
) -> Report:
    """Return the report with its workload's layout, node speeds, and facts of each case.

    These are its name, FLOPs of a step, peak of a GPU and publications. Names in the report are
    kept. A result above the GPUs' peak is marked IMPLAUSIBLE.
    """
    cases = [result.case for result in report.results]
    own_cases = {case: own for case in cases if (own := _select_params(workload, case))}
    speeds = node_speeds.compare_nodes(report.results)
    complete = replace(
        report,
        node_speeds=speeds,
        marks=(*report.marks, *node_speeds.mark_slow_nodes(speeds)),
        layout=workload.layout,
        log_prefix=workload.log_prefix,
        names={**_by_case(workload.case_name, own_cases), **report.names},
        step_flops=_by_case(workload.step_flops, own_cases),
        peak_tflops={
            case: peak
            for case in cases
            if case.device == "cuda"
            and (peak := hardware.find_peak(report.gpus, case.precision)) is not None
        },
        published=_published(workload, own_cases, publications, report),
    )
    return replace(
        complete,
        results=tuple(_check_peak(complete, result) for result in complete.results),
    )


def _check_peak(report: Report, result: Result) -> Result:
    """Mark a result that needs more TFLOP/s than the GPUs have."""
    reached, peak = report.tflops_per_gpu(result), report.peak_tflops.get(result.case)
    if reached is None or peak is None or reached <= peak:
        return result
    seen, most = words.apart(reached, peak, digits=2)
    text = f"{seen} TFLOP/s on each GPU, of which {most} can be had; look at its log"
    return replace(result, marks=(*result.marks, Problem("IMPLAUSIBLE", text)))


def _select_params(workload: Workload, case: Case) -> Case | None:
    """Return the case with the workload's own parameters, None if it has others."""
    params = tuple(param for param in case.params if param[0] not in NOT_OF_THE_PROGRAM)
    if any(name not in workload.params.model_fields for name, _ in params):
        return None
    return replace(case, params=params)


def _by_case(
    fact_of: Callable[[Case], Value] | None, own_cases: Mapping[Case, Case]
) -> dict[Case, Value]:
    """Call a workload's function for all cases; leave out cases that it cannot answer."""
    by_case: dict[Case, Value] = {}
    if fact_of is None:
        return by_case
    for case, own in own_cases.items():
        try:
            by_case[case] = fact_of(own)
        except (KeyError, ValueError):  # a log's header lacks a value, or has an invalid one
            continue
    return by_case


def _published(
    workload: Workload,
    own_cases: Mapping[Case, Case],
    publications: Sequence[PublishedResult],
    report: Report,
) -> dict[Case, tuple[PublishedResult, ...]]:
    search_keys = _by_case(workload.published, own_cases)
    transports = {result.case: result.transport for result in report.results}
    rows_by_case = {
        case: published.of_case(
            *(publications, case, key, report.image), Machines(report.gpus, transports[case])
        )
        for case, key in search_keys.items()
        if key is not None
    }
    return {case: rows for case, rows in rows_by_case.items() if rows}
