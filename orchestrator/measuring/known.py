"""What is known of a report's cases beyond what was measured: names, operations, publications."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from orchestrator.measuring import published
from orchestrator.model.case import Case
from orchestrator.model.problem import Problem
from orchestrator.model.report import PublishedResult, Report
from orchestrator.model.result import Result
from orchestrator.workloads import Workload

NOT_OF_THE_PROGRAM = frozenset({"folder"})  # where a log lies tells cases apart, not programs
Value = TypeVar("Value")


def completed(
    report: Report, workload: Workload, publications: Sequence[PublishedResult]
) -> Report:
    """The report with its workload's layout, and all that the workload knows of its cases.

    Names that the report has already are kept.
    """
    cases = [result.case for result in report.results]
    asked = {case: own for case in cases if (own := _of_the_program(workload, case))}
    found = replace(
        report,
        layout=workload.layout,
        log_prefix=workload.log_prefix,
        names={**_each(workload.case_name, asked), **report.names},
        step_flops=_each(workload.step_flops, asked),
        published=_published(workload, asked, publications, report.image),
    )
    return replace(found, results=tuple(_doubted(found, result) for result in found.results))


def _doubted(report: Report, result: Result) -> Result:
    """The result, marked if it would take more than the GPUs can give."""
    reached, peak = report.tflops_per_gpu(result), report.peak_tflops
    if reached is None or peak is None or reached <= peak:
        return result
    words = f"{reached:.2f} TFLOP/s on each GPU, of which {peak:g} can be had; look at its log"
    return replace(result, marks=(*result.marks, Problem("IMPLAUSIBLE", words)))


def _of_the_program(workload: Workload, case: Case) -> Case | None:
    """The case as the workload knows it; None if it has parameters of something else."""
    params = tuple(param for param in case.params if param[0] not in NOT_OF_THE_PROGRAM)
    if any(name not in workload.params.model_fields for name, _ in params):
        return None
    return replace(case, params=params)


def _each(what: Callable[[Case], Value] | None, asked: Mapping[Case, Case]) -> dict[Case, Value]:
    """By case, what a workload says of it; a case of which it says nothing is left out."""
    found: dict[Case, Value] = {}
    if what is None:
        return found
    for case, own in asked.items():
        try:
            found[case] = what(own)
        except (KeyError, ValueError):  # of a folder: a header lacks a value, or has an odd one
            continue
    return found


def _published(
    workload: Workload,
    asked: Mapping[Case, Case],
    publications: Sequence[PublishedResult],
    image: str,
) -> dict[Case, tuple[PublishedResult, ...]]:
    called = _each(workload.published, asked)
    found = {
        case: published.of_case(publications, case, words, image)
        for case, words in called.items()
        if words is not None
    }
    return {case: rows for case, rows in found.items() if rows}
