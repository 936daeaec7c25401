"""Reports of measured sweeps: JSON, CSV, DLPerf's result files, Markdown and HTML.

``sections`` builds the content once, as a ``tree``; ``as_markdown`` and ``as_html`` write it.
A text stands where it is used, in both languages; ``phrases`` has those that are shared. Another
format is a module beside ``as_markdown``, and a line in ``collecting/report_files``. Pure.
"""

from collections.abc import Sequence

from orchestrator import words
from orchestrator.model.report import Report
from orchestrator.report.as_html import html_page
from orchestrator.report.as_markdown import markdown
from orchestrator.report.figures import FOLDER as FIGURES
from orchestrator.report.figures import of_page
from orchestrator.report.labels import interval_words, of_trials
from orchestrator.report.node_facts import matrix
from orchestrator.report.page import Page
from orchestrator.report.phrases import LANGUAGES, Language, suffix
from orchestrator.report.results import case_document, csv_text, document, exports
from orchestrator.report.tables import of_terminal
from orchestrator.report.tree import text
from orchestrator.report.verdict import lines, sentences

__all__ = [
    "LANGUAGES",
    "Language",
    "case_document",
    "csv_text",
    "document",
    "exports",
    "first_lines",
    "html_page",
    "interval_words",
    "markdown",
    "matrix",
    "of_trials",
    "suffix",
    "svg_files",
    "terminal_tables",
]


def svg_files(report: Report, language: Language) -> dict[str, str]:
    """Return the figures that report.md shows, by their paths beside it."""
    figures = of_page(Page(report, language))
    end = f"{suffix(language)}.svg"
    return {f"{FIGURES}/{figure.name}{end}": figure.file() for figure in figures}


def first_lines(report: Report) -> list[str]:
    """Return the lines before the table of a terminal: the verdict, and a line for each code."""
    page = Page(report, "en")
    items = (f"  {words.printable(begin + rest)}" for begin, rest in lines(page))
    return [*sentences(page), *items]


def terminal_tables(report: Report) -> list[tuple[str, Sequence[str], list[list[str]]]]:
    """Return the tables of a terminal: title, head, and rows of cells."""
    tables = of_terminal(Page(report, "en"))
    return [(it.title, it.head, [[*map(text, row)] for row in it.rows]) for it in tables]
