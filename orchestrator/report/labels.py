"""Names of cases, and numbers as a report prints them: the only place where any is rounded."""
# ruff: noqa: RUF001 - Chinese has punctuation of its own

from collections.abc import Mapping, Sequence

from orchestrator.model.case import NAMED_BY, Case
from orchestrator.model.report import Report
from orchestrator.model.result import Interval, Result
from orchestrator.model.text import Scalar
from orchestrator.report.page import Language, Page

NONE = "n/a"


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
    parts += [f"{name} {value}" for name, value in case.axes.items() if value != 1]
    parts += [f"{name} {value}" for name, value in case.params]
    return page.listed(parts)


def settings(cases: Sequence[Case], case: Case) -> str:
    """Name the settings in which cases differ, such as ``AMP(BS=128)``."""
    own = differing(case.document(), [other.document() for other in cases])
    return f"{case.precision.upper()}({', '.join((f'BS={case.micro_batch_size}', *own))})"


def differing(case: Mapping[str, Scalar], cases: Sequence[Mapping[str, Scalar]]) -> list[str]:
    """Return the settings of a case beyond ``NAMED_BY`` that not all others share."""
    return [
        f"{name.removeprefix('params.')}={value}"
        for name, value in case.items()
        if name not in NAMED_BY and any(other.get(name) != value for other in cases)
    ]


def of_case(report: Report, result: Result) -> str:
    """Return the benchmark's name of a case, else its placement, with settings that differ."""
    own = report.names.get(result.case)
    return own or among([other.case for other in report.results], result.case)


def among(cases: Sequence[Case], case: Case) -> str:
    """Return the placement of one of these cases, with settings where they differ."""
    if len({other.comparable for other in cases}) == 1:
        return case.placement
    return f"{case.placement} {settings(cases, case)}"


def of_trials(report: Report, result: Result) -> str:
    """Return valid and planned trials in few letters, such as ``3/5``."""
    return f"{result.statistics.n if result.statistics else 0}/{report.planned(result)}"


def interval_words(interval: Interval | None, language: Language = "en") -> str:
    """Return an interval with its coverage."""
    if interval is None:
        return NONE
    low, high, coverage = interval.low, interval.high, interval.coverage
    if language == "zh":
        return f"{low:.2f} 至 {high:.2f}（{coverage:.2%}）"
    return f"{low:.2f} to {high:.2f} ({coverage:.2%})"


def fixed(value: float | None, decimals: int) -> str:
    return NONE if value is None else f"{value:.{decimals}f}"


def throughput(report: Report, value: float | None) -> str:
    """Return a rate in samples per second, as the document of the report's layout prints it."""
    printed = short if report.layout.kind == "groups" else fixed
    return printed(value, report.layout.decimals)


def short(value: float | None, decimals: int) -> str:
    """Write a number with at most so many decimals and no zeros at its end: 123.4, not 123.40."""
    if value is None:
        return NONE
    text = f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if decimals else text


def share(value: float | None) -> str:
    return NONE if value is None else f"{value:.1%}"


def signed(value: float | None) -> str:
    """Write a difference in percent, with its sign."""
    return NONE if value is None else f"{value:+z.1%}"
