"""A comparison as Markdown, for the summary of a CI job."""

from orchestrator.comparing import table
from orchestrator.comparing.comparison import Comparison
from orchestrator.report import markdown_page

METHOD = (
    "p is that of the exact two-sided rank test (van der Waerden), corrected by Holm's method"
    " for the cases whose trials could be further apart than the bound. The interval is that of the"
    " ratio B / A - 1; it covers 95 % unless it says otherwise."
)


def markdown(comparison: Comparison) -> str:
    """The whole page."""
    escaped = markdown_page.escaped
    first, second = table.sides(comparison)
    gate = [f"**{escaped(comparison.gate)}**"] if comparison.gate else []
    parts = [
        "## Comparison",
        f"- {escaped(first)}\n- {escaped(second)}",
        *gate,
        markdown_page.table(table.HEAD, table.rows(comparison)),
        f"{escaped(comparison.first.unit)}; {table.HIGHER}. {METHOD}",
        "\n".join(f"- {escaped(text)}" for text in table.remarks(comparison)),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"
