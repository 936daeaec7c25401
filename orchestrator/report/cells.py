"""Cells of a case's row that several tables have in common."""

from collections.abc import Sequence

from orchestrator.model.report import PublishedResult
from orchestrator.model.result import Measurement, Result
from orchestrator.report import labels, rounding
from orchestrator.report.markdown_page import Page, escaped, table

STATISTICS = ("marks", "spread", "interval", "transport")
PUBLISHED = ("published", "difference")
TRIAL = ("trial", "state", "codes")
PLACE = ("transport", "log", "sha256")


def sureness(page: Page) -> str:
    """A table of marks, spread, interval, transport and published result of every case."""
    published = PUBLISHED if page.report.published else ()
    rows = [
        (
            escaped(labels.of_case(page.report, result)),
            page.codes(result.marks),
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
    return told(page.heads("case", *STATISTICS, *_speedup_head(page), *published), rows)


def told(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table without the columns in which nobody tells anything."""
    kept = [place for place in range(len(head)) if {row[place] for row in rows} - {"", "-"}]
    return table([head[place] for place in kept], [[row[place] for place in kept] for row in rows])


def trial(page: Page, found: Measurement) -> tuple[str, ...]:
    """Repeat, state and codes of a trial: the cells of ``TRIAL``."""
    return (
        str(found.repeat),
        page.say_or(f"state.{found.state}", escaped(found.state)),
        escaped(page.codes((*found.problems, *found.marks))),
    )


def evidence(page: Page) -> str:
    """A table of what the number of every trial stands on."""
    rows = [
        (escaped(labels.of_case(page.report, result)), str(found.repeat), *place(found))
        for group in labels.series(page.report)
        for result in group
        for found in result.trials
    ]
    return told(page.heads("case", "trial", *PLACE), rows)


def place(trial: Measurement) -> tuple[str, ...]:
    """Transport, log and sha256 of a trial: the cells of ``PLACE``."""
    return (
        escaped(trial.transport),
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
