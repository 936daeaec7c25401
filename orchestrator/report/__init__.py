"""Reports of measured sweeps: JSON, CSV, DLPerf's result files, Markdown in its documents' form.

``phrases`` has the texts in English and Chinese, ``codes`` the Chinese meaning of codes;
``markdown`` puts sections together, ``placements``, ``gpus`` and ``groups`` are its three layouts.
Another format, such as HTML, is a module beside ``markdown``, and a line in
``collecting/report_files``, which writes the files. Pure; messages of programs stay as they are.
"""

from orchestrator.report.markdown import markdown
from orchestrator.report.phrases import LANGUAGES, SHARED_MACHINE, UNLOCKED, Language
from orchestrator.report.results_csv import CSV_COLUMNS, csv_text
from orchestrator.report.results_json import document
from orchestrator.report.rounding import counted, interval_words
from orchestrator.report.topology import matrix
from orchestrator.report.upstream import exports

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
