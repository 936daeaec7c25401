"""Cells of a case's row that several tables have in common."""

from collections.abc import Sequence

from orchestrator.model.report import PublishedResult
from orchestrator.model.result import Measurement, Result
from orchestrator.report import labels, rounding
from orchestrator.report.markdown_page import Page, escaped, table

STATISTICS = ("spread", "interval", "transport")
PUBLISHED = ("published", "difference")
EVIDENCE = ("trial", "state", "transport", "codes", "log", "sha256")


def further_heads(page: Page, first: Sequence[str]) -> tuple[str, ...]:
    """Heads of the columns after DLPerf's own: ``first``, then those of ``further``."""
    return page.heads(*first, "trials", "marks")


def further(page: Page, result: Result) -> tuple[str, ...]:
    """How many trials a median is over, and its marks; so few that the table stays narrow."""
    return (rounding.of_trials(page.report, result, page.language), page.codes(result.marks))


def sureness(page: Page) -> str:
    """A table of spread, interval, transport and published result of every case."""
    published = PUBLISHED if page.report.published else ()
    rows = [
        (
            escaped(labels.of_case(page.report, result)),
            rounding.share(result.statistics.spread if result.statistics else None),
            rounding.interval_words(result.statistics, page.language)
            if result.statistics
            else rounding.NONE,
            escaped(result.transport),
            *(_speedup(page, result) for _ in _speedup_head(page)),
            *_published(page, result),
        )
        for result in page.report.results
    ]
    return table(page.heads("case", *STATISTICS, *_speedup_head(page), *published), rows)


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
    """A published number, its framework, and its GPUs."""
    return f"{published.throughput} ({escaped(published.by)})"


def _published(page: Page, result: Result) -> tuple[str, ...]:
    if not page.report.published:
        return ()
    published = page.report.published_for(result)
    if not published:
        return ("", "")
    return (printed(published[0]), rounding.signed(published[0].difference(result)))


def _speedup_head(page: Page) -> tuple[str, ...]:
    known = any(result.speedup_interval for result in page.report.results)
    return ("speedup_interval",) if known else ()


def _speedup(page: Page, result: Result) -> str:
    if result.speedup_interval is None:
        return rounding.NONE
    return rounding.ends(result.speedup_interval, page.language)
