"""Figures of reports as SVG: the same bytes for the same data, with titles and words beside them.

No two things differ by color alone. A new figure is a module with ``figures(page)``, and its name
in ``of_page``.
"""

from orchestrator.model.report import Report
from orchestrator.report.figures import dots, scaling, throttling, traces
from orchestrator.report.figures.figure import Figure
from orchestrator.report.page import Language, Page, suffix

FOLDER = "figures"
"""Beside report.md."""


def of_page(page: Page) -> tuple[Figure, ...]:
    modules = (scaling, dots, traces, throttling)
    return tuple(figure for module in modules for figure in module.figures(page))


def svg_files(report: Report, language: Language) -> dict[str, str]:
    """Return the figures that report.md shows, by their paths beside it."""
    figures, end = of_page(Page(report, language)), f"{suffix(language)}.svg"
    return {f"{FOLDER}/{figure.name}{end}": figure.file() for figure in figures}
