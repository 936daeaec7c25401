"""Numbers as a report prints them: the only place where any of them is rounded."""
# ruff: noqa: RUF001 - Chinese has punctuation of its own

from orchestrator.model.report import Report
from orchestrator.model.result import Interval, Result
from orchestrator.report.phrases import Language

NONE = "n/a"


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
    """Write a number with so many decimals."""
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
    """Write a share in percent."""
    return NONE if value is None else f"{value:.1%}"


def signed(value: float | None) -> str:
    """Write a difference in percent, with its sign."""
    return NONE if value is None else f"{value:+z.1%}"
