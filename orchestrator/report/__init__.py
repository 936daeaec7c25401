"""Reports of measured sweeps: JSON, CSV, DLPerf's result files, Markdown in its documents' form.

Markdown comes in English and in Chinese; what programs, nodes and logs said stays as they said it.
"""

from orchestrator.report.markdown import markdown
from orchestrator.report.numbers import counted, interval_words
from orchestrator.report.results_csv import CSV_COLUMNS, csv_text
from orchestrator.report.results_json import document
from orchestrator.report.topology import matrix
from orchestrator.report.upstream import exports
from orchestrator.report.words import LANGUAGES, SHARED_MACHINE, UNLOCKED, Language

__all__ = [
    "CSV_COLUMNS",
    "LANGUAGES",
    "SHARED_MACHINE",
    "UNLOCKED",
    "Language",
    "counted",
    "csv_text",
    "document",
    "exports",
    "interval_words",
    "markdown",
    "matrix",
]
