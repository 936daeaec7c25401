"""Figures of reports as SVG: the same bytes for the same data, with titles and words beside them.

``scaling``, ``dots``, ``traces`` and ``throttling`` each draw one sort; ``figure`` has the shapes,
``scales`` the arithmetic, ``style`` the colors. No two things differ by color alone.
A new figure is a module with ``figures(page)``, and its name in ``FIGURES``.
"""

from orchestrator.report.figures import dots, scaling, throttling, traces
from orchestrator.report.figures.figure import Figure
from orchestrator.report.figures.style import CSS
from orchestrator.report.page import Page

FIGURES = (scaling, dots, traces, throttling)
FOLDER = "figures"
"""Beside report.md."""

__all__ = ["CSS", "FIGURES", "FOLDER", "Figure", "of_page"]


def of_page(page: Page) -> tuple[Figure, ...]:
    return tuple(figure for module in FIGURES for figure in module.figures(page))
