"""Cells of a case's row that several tables have in common."""

from collections.abc import Sequence

from orchestrator.model.report import PublishedResult
from orchestrator.model.result import Measurement, Result
from orchestrator.report import numbers
from orchestrator.report.page import Page, escaped

STATISTICS = ("trials", "spread", "interval", "transport")
PUBLISHED = ("published", "difference")
EVIDENCE = ("trial", "state", "transport", "codes", "log", "sha256")


def further_heads(page: Page, first: Sequence[str]) -> tuple[str, ...]:
    """Heads of what stands behind the columns of the documents, ``first`` before the others."""
    published = PUBLISHED if page.report.published else ()
    return page.heads(*first, *STATISTICS, *published, "marks")


def further(page: Page, result: Result) -> tuple[str, ...]:
    """How a median came about, what was published, and what a reader should know."""
    said = result.statistics
    return (
        numbers.counted(page.report, result, page.language),
        numbers.share(said.spread if said else None),
        numbers.interval_words(said, page.language) if said else numbers.NONE,
        escaped(result.transport),
        *_published(page, result),
        page.codes(result.marks),
    )


def evidence(page: Page, trial: Measurement) -> tuple[str, ...]:
    """What a trial came to, and the bytes that its number came from."""
    return (
        str(trial.repeat),
        page.say_or(f"state.{trial.state}", escaped(trial.state)),
        escaped(trial.transport),
        escaped(page.codes((*trial.problems, *trial.marks))),
        escaped(trial.evidence.log if trial.evidence else ""),
        trial.evidence.sha256[:12] if trial.evidence else "",
    )


def printed(known: PublishedResult) -> str:
    """A published number and what it is of."""
    return f"{known.throughput} ({escaped(known.framework)})"


def _published(page: Page, result: Result) -> tuple[str, ...]:
    if not page.report.published:
        return ()
    known = page.report.known(result)
    if not known:
        return ("", "")
    return (printed(known[0]), numbers.signed(known[0].difference(result)))
