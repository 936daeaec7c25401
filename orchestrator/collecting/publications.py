"""The published results that come with the package."""

from importlib import resources

from orchestrator.measuring import published
from orchestrator.model.report import PublishedResult


def shipped() -> tuple[PublishedResult, ...]:
    """Every published result that comes with the package."""
    text = resources.files("orchestrator").joinpath(published.FILE).read_text("utf-8")
    return published.parse_rows(text)
