"""Cells of a case's row that several tables have in common."""

from collections.abc import Sequence

from orchestrator.model.report import PublishedResult
from orchestrator.model.result import Measurement, Result
from orchestrator.report import rounding
from orchestrator.report.markdown_page import Page, escaped

STATISTICS = ("trials", "spread", "interval", "transport")
PUBLISHED = ("published", "difference")
EVIDENCE = ("trial", "state", "transport", "codes", "log", "sha256")


def further_heads(page: Page, first: Sequence[str]) -> tuple[str, ...]:
    """Heads of the columns after DLPerf's own: ``first``, then those of ``further``."""
    published = PUBLISHED if page.report.published else ()
    return page.heads(*first, *STATISTICS, *published, "marks")


def further(page: Page, result: Result) -> tuple[str, ...]:
    """Trials, spread, interval, transport, published result and marks of a case."""
    statistics = result.statistics
    return (
        rounding.counted(page.report, result, page.language),
        rounding.share(statistics.spread if statistics else None),
        rounding.interval_words(statistics, page.language) if statistics else rounding.NONE,
        escaped(result.transport),
        *_published(page, result),
        page.codes(result.marks),
    )


def evidence(page: Page, trial: Measurement) -> tuple[str, ...]:
    """Repeat, state, transport, codes, log and sha256 of a trial."""
    return (
        str(trial.repeat),
        page.say_or(f"state.{trial.state}", escaped(trial.state)),
        escaped(trial.transport),
        escaped(page.codes((*trial.problems, *trial.marks))),
        escaped(trial.evidence.log if trial.evidence else ""),
        trial.evidence.sha256[:12] if trial.evidence else "",
    )


def printed(published: PublishedResult) -> str:
    """A published number and its framework."""
    return f"{published.throughput} ({escaped(published.framework)})"


def _published(page: Page, result: Result) -> tuple[str, ...]:
    if not page.report.published:
        return ()
    published = page.report.published_for(result)
    if not published:
        return ("", "")
    return (printed(published[0]), rounding.signed(published[0].difference(result)))
