"""DLPerf's ``_result.json``: average, median and speedup by placement, for scripts that read it."""

from collections.abc import Mapping, Sequence

from orchestrator.model.case import Case, distinctions
from orchestrator.model.facts import JSON
from orchestrator.model.report import Report
from orchestrator.model.result import Result
from orchestrator.report import labels

NAME = "_result.json"


def exports(report: Report) -> dict[str, JSON]:
    """Documents by file name, in the form that DLPerf's extraction scripts write.

    Those put all precisions and batch sizes under one key. Here each has a file of its own, named
    such as ``fp32_b128_result.json``; ``_result.json`` is the name where there is only one. A case
    without a valid trial is left out, and a speedup without a 1n1g case is null, not 1.0. Cases
    with names of their own stand under these.

    Source: DLPerf, extract_pytorch_logs_time.py.
    """
    groups = _groups(report)
    names = [NAME] if len(groups) == 1 else _names([group[0].case for group in groups])
    return {
        name: {report.log_prefix: _places(report, group)}
        for name, group in zip(names, groups, strict=True)
    }


def _groups(report: Report) -> Sequence[Sequence[Result]]:
    """The results that go into one file: no two of them have one key."""
    named = {report.names.get(result.case) for result in report.results}
    if report.layout.kind == "groups" and None not in named and len(named) == len(report.results):
        return [report.results] if report.results else []
    return labels.series(report)


def _places(report: Report, group: Sequence[Result]) -> Mapping[str, JSON]:
    return {
        _key(report, result.case): {
            "average_speed": round(result.statistics.mean, 2),
            "batch_size_per_device": result.case.micro_batch_size,
            "median_speed": round(result.statistics.median, 2),
            "speedup": None if result.speedup is None else round(result.speedup, 2),
        }
        for result in group
        if result.statistics
    }


def _key(report: Report, case: Case) -> str:
    name = report.names.get(case) if report.layout.kind == "groups" else None
    return name or case.token


def _names(cases: Sequence[Case]) -> list[str]:
    """A name for each, by precision, batch and whatever else tells them apart."""
    names = [
        "_".join((case.precision, f"b{case.micro_batch_size}", *words))
        for case, words in zip(cases, distinctions(cases), strict=True)
    ]
    if len(set(names)) < len(names):  # names of files hold less than values can
        names = [f"{name}_{place}" for place, name in enumerate(names, 1)]
    return [f"{name}{NAME}" for name in names]
