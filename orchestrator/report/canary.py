"""The section on a sweep's canary: the same case at its start, middle and end."""

from orchestrator.model.result import Watched
from orchestrator.report import cells, rounding
from orchestrator.report.markdown_page import Page, escaped


def section(page: Page, watched: Watched) -> str:
    """What was measured when, each with its evidence."""
    decimals = page.report.layout.decimals
    first = next((trial.throughput for trial in watched.trials if trial.throughput), None)
    rows = [
        (
            page.say(f"place.{place}"),
            rounding.fixed(trial.throughput, decimals),
            rounding.signed(trial.throughput / first - 1 if first and trial.throughput else None),
            *cells.trial(page, trial)[1:],
            *cells.place(trial),
        )
        for place, trial in zip(watched.places, watched.trials, strict=True)
    ]
    head = (*page.heads("place"), page.report.layout.throughput, *page.heads("to_first"))
    case = f"{watched.case.placement}, {watched.case.micro_batch_size}, {watched.case.precision}"
    words = page.say("watched", case=escaped(case), bound=watched.bound)
    return f"{words}\n\n{cells.told((*head, *page.heads(*cells.TRIAL[1:], *cells.PLACE)), rows)}"
