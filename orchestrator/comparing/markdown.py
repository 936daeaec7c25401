"""A comparison as Markdown, for the summary of a CI job."""

from orchestrator.comparing import table
from orchestrator.comparing.comparison import Comparison
from orchestrator.report import as_markdown

METHOD = (
    "The interval is that of B / A - 1 by Welch's method; it covers 95 % unless it says otherwise."
    " A case is different if all of it is beyond the bound, the same if all of it is within. p is"
    " that of the exact two-sided rank test (van der Waerden), corrected by Holm's method."
)


def markdown(comparison: Comparison) -> str:
    """The whole page."""
    escaped = as_markdown.escaped
    first, second = table.sides(comparison)
    rows = table.rows(comparison)
    width = len(table.HEAD) if any(row[-1] for row in rows) else len(table.HEAD) - 1
    gate = [f"**{escaped(comparison.gate)}**"] if comparison.gate else []
    parts = [
        "## Comparison",
        f"- {escaped(first)}\n- {escaped(second)}",
        *gate,
        as_markdown.table(table.HEAD[:width], [row[:width] for row in rows]),
        f"{escaped(comparison.first.unit)}; {table.HIGHER}. {METHOD}",
        "\n".join(f"- {escaped(text)}" for text in table.remarks(comparison)),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"
