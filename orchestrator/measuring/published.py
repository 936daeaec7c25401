"""Adds a workload's facts to a report's cases, and the published results comparable with them."""

import contextlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from orchestrator import nodeset, words
from orchestrator.measuring import hardware, node_speeds
from orchestrator.model.case import Case
from orchestrator.model.problem import Problem
from orchestrator.model.report import PublishedResult, Report
from orchestrator.workloads import Published, Workload

NOT_OF_THE_PROGRAM = frozenset({"folder"})  # distinguishes cases of a folder of logs
Value = TypeVar("Value")
_VERSION = re.compile(r"[0-9]+(?:\.[0-9]+)+")


def select_for_case(
    publications: Iterable[PublishedResult],
    case: Case,
    key: Published,
    image: str,
    gpus: Sequence[str] = (),
    transport: str = "-",
) -> tuple[PublishedResult, ...]:
    """Return the published results of a case, those of the image's version first.

    Args:
        image: such as ``oneflow-0.2.0``, with its version at the end.
        gpus, transport: hardware of the case; results of other kinds are left out.
    """
    batch = key.batch or str(case.micro_batch_size)
    rows_of_case = [
        row
        for row in publications
        if any(nodeset.fits(row.framework, pattern) for pattern in key.frameworks)
        and (row.model, row.batch) == (key.model, batch)
        and row.precision in key.precision
        and (row.nodes, row.gpus_per_node) == (case.nodes, case.gpus_per_node)
        and hardware.is_comparable(row.hardware, row.interconnect, gpus, transport)
    ]
    last = image.rpartition("-")[2]
    version = last if _VERSION.fullmatch(last) else None
    return tuple(sorted(rows_of_case, key=lambda row: version not in row.framework.split("-")))


def select(
    publications: Iterable[PublishedResult], patterns: Mapping[str, str]
) -> tuple[PublishedResult, ...]:
    """Return results whose fields match glob patterns, such as ``framework``: ``oneflow-*``."""
    return tuple(
        row
        for row in publications
        if all(nodeset.fits(getattr(row, name), glob) for name, glob in patterns.items())
    )


def complete_report(
    report: Report, workload: Workload, publications: Sequence[PublishedResult]
) -> Report:
    """Return the report with its workload's layout, node speeds, and facts of each case.

    Names in the report are kept. A result above the GPUs' peak is marked IMPLAUSIBLE.
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
        result.case: select_for_case(
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
