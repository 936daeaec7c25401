"""Reports of measured sweeps: JSON, CSV, DLPerf's result files, Markdown and HTML. Pure.

``sections`` builds the content once, as a ``tree``; ``as_markdown`` and ``as_html`` write it.
A text stands where it is used, in both languages; ``page`` has those that are shared, and
``codes.toml`` explains the codes of problems and marks. Another format is a module beside
``as_markdown``, and a line in ``collecting/report_files``.
"""

from orchestrator.report.as_html import html_page as html_page
from orchestrator.report.as_markdown import markdown as markdown
from orchestrator.report.figures import svg_files as svg_files
from orchestrator.report.page import LANGUAGES as LANGUAGES
from orchestrator.report.page import Language as Language
from orchestrator.report.page import suffix as suffix
from orchestrator.report.results import case_document as case_document
from orchestrator.report.results import csv_text as csv_text
from orchestrator.report.results import document as document
from orchestrator.report.results import exports as exports
from orchestrator.report.tables import terminal_tables as terminal_tables
from orchestrator.report.verdict import first_lines as first_lines
