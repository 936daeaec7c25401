"""Adds a workload's facts to a report's cases: names, operation counts, published results."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from orchestrator import words
from orchestrator.measuring import hardware, node_speeds, published
from orchestrator.model.case import Case
from orchestrator.model.problem import Problem
from orchestrator.model.report import PublishedResult, Report
from orchestrator.workloads import Workload

NOT_OF_THE_PROGRAM = frozenset({"folder"})  # distinguishes cases of a folder of logs
Value = TypeVar("Value")


def complete_report(
    report: Report, workload: Workload, publications: Sequence[PublishedResult]
) -> Report:
    """Return the report with its workload's layout, node speeds, and facts of each case.

    These are its name, FLOPs of a step, peak of a GPU and publications. Names in the report are
    kept. A result above the GPUs' peak is marked IMPLAUSIBLE.
    """
    own_cases: dict[Case, Case] = {}  # with the workload's parameters alone
    peaks: dict[Case, float] = {}
    for case in (result.case for result in report.results):
        params = tuple(param for param in case.params if param[0] not in NOT_OF_THE_PROGRAM)
        if all(name in workload.params.model_fields for name, _ in params):
            own_cases[case] = replace(case, params=params)
        peak = hardware.find_peak(report.gpus, case.precision)
        if case.device == "cuda" and peak is not None:
            peaks[case] = peak
    keys = _by_case(workload.published, own_cases)
    rows = {
        result.case: published.select_for_case(
            publications, result.case, key, report.image, report.gpus, result.transport
        )
        for result in report.results
        if (key := keys.get(result.case))
    }
    speeds = node_speeds.compare_nodes(report.results)
    complete = replace(
        report,
        node_speeds=speeds,
        marks=(*report.marks, *node_speeds.mark_slow_nodes(speeds)),
        layout=workload.layout,
        log_prefix=workload.log_prefix,
        names={**_by_case(workload.case_name, own_cases), **report.names},
        step_flops=_by_case(workload.step_flops, own_cases),
        peak_tflops=peaks,
        published={case: found for case, found in rows.items() if found},
    )
    checked = []
    for result in complete.results:
        reached, peak = complete.tflops_per_gpu(result), peaks.get(result.case)
        if reached is not None and peak is not None and reached > peak:
            seen, most = words.apart(reached, peak, digits=2)
            text = f"{seen} TFLOP/s on each GPU, of which {most} can be had; look at its log"
            result = replace(result, marks=(*result.marks, Problem("IMPLAUSIBLE", text)))
        checked.append(result)
    return replace(complete, results=tuple(checked))


def _by_case(
    fact_of: Callable[[Case], Value] | None, own_cases: Mapping[Case, Case]
) -> dict[Case, Value]:
    """Call a workload's function for all cases; leave out cases that it cannot answer."""
    by_case: dict[Case, Value] = {}
    if fact_of is None:
        return by_case
    for case, own in own_cases.items():
        with contextlib.suppress(KeyError, ValueError):  # a header lacks a value, or it is invalid
            by_case[case] = fact_of(own)
    return by_case
