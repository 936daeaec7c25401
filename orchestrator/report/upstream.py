"""DLPerf's ``_result.json``: average, median and speedup by placement, for scripts that read it."""

from collections.abc import Sequence

from orchestrator.model.case import distinctions
from orchestrator.model.facts import JSON
from orchestrator.model.report import Report
from orchestrator.model.result import Result
from orchestrator.report import labels

NAME = "_result.json"


def exports(report: Report) -> dict[str, JSON]:
    """Return documents by file name, in the form that DLPerf's extraction scripts write.

    Those put all precisions and batch sizes under one key. Here each has a file of its own, named
    such as ``fp32_b128_result.json``; ``_result.json`` is the name if there is only one. A case
    without a valid trial is left out, and a speedup without a 1n1g case is null, not 1.0. Cases
    with names of their own are listed by these names.

    Source: DLPerf, extract_pytorch_logs_time.py.
    """
    groups: Sequence[Sequence[Result]] = labels.series(report)
    own = report.names if report.layout.kind == "groups" else {}
    names = {own.get(result.case, "") for result in report.results} - {""}
    if names and len(names) == len(report.results):
        groups = [report.results]
    return {
        file: {
            report.log_prefix: {
                own.get(result.case) or result.case.token: {
                    "average_speed": round(result.statistics.mean, 2),
                    "batch_size_per_device": result.case.micro_batch_size,
                    "median_speed": round(result.statistics.median, 2),
                    "speedup": None if result.speedup is None else round(result.speedup, 2),
                }
                for result in group
                if result.statistics
            }
        }
        for file, group in zip(_files(groups), groups, strict=True)
    }


def _files(groups: Sequence[Sequence[Result]]) -> list[str]:
    """Return a file name for each group, by precision, batch and other settings that differ."""
    if len(groups) == 1:
        return [NAME]
    cases = [group[0].case for group in groups]
    names = [
        "_".join((case.precision, f"b{case.micro_batch_size}", *words))
        for case, words in zip(cases, distinctions(cases), strict=True)
    ]
    if len(set(names)) < len(names):  # names of files hold less than values can
        names = [f"{name}_{place}" for place, name in enumerate(names, 1)]
    return [f"{name}{NAME}" for name in names]
