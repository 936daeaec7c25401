"""Names of cases in reports, and of groups of cases that differ in placement alone."""

from collections.abc import Sequence

from orchestrator.model.case import AXES, Case
from orchestrator.model.report import Report
from orchestrator.model.result import Result
from orchestrator.report.page import Page


def series(report: Report) -> list[list[Result]]:
    """Group the results whose cases differ only in placement."""
    by_settings: dict[tuple[object, ...], list[Result]] = {}
    for result in report.results:
        by_settings.setdefault(result.case.comparable, []).append(result)
    return list(by_settings.values())


def of_series(page: Page, group: Sequence[Result]) -> str:
    """Name all settings that the cases of a group have in common."""
    case = group[0].case
    parts = [
        case.precision.upper(),
        page.text(f"batch size {case.micro_batch_size}", f"批大小 {case.micro_batch_size}"),
        page.text(f"on {case.device}", f"设备 {case.device}"),
    ]
    parts += [
        f"{axis.name} {value}"
        for axis in AXES
        if (value := getattr(case, axis.name)) != axis.default
    ]
    parts += [f"{name} {value}" for name, value in case.params]
    return page.listed(parts)


def settings(cases: Sequence[Case], case: Case) -> str:
    """Name the settings in which cases differ, such as ``AMP(BS=128)``."""
    others = [other.document() for other in cases]
    own = case.document()
    names = (
        "device",
        *(axis.name for axis in AXES),
        *(f"params.{name}" for name, _ in case.params),
    )
    differing = [
        f"{name.removeprefix('params.')}={own[name]}"
        for name in names
        if any(other.get(name) != own[name] for other in others)
    ]
    return f"{case.precision.upper()}({', '.join((f'BS={case.micro_batch_size}', *differing))})"


def of_case(report: Report, result: Result) -> str:
    """Return the benchmark's name of a case, else its placement, with settings that differ."""
    own = report.names.get(result.case)
    return own or among([other.case for other in report.results], result.case)


def among(cases: Sequence[Case], case: Case) -> str:
    """Return the placement of one of these cases, with settings where they differ."""
    if len({other.comparable for other in cases}) == 1:
        return case.placement
    return f"{case.placement} {settings(cases, case)}"
