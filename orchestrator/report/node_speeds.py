"""A table of nodes beside one another: their speeds over that of the median node."""

from orchestrator.report.markdown_page import Page, escaped, table


def compared(page: Page) -> str:
    """A row per node, slow ones in bold."""
    found = page.report.node_speeds
    rows = [
        (_name(speed.node, slow=speed.node in found.slow), str(speed.trials), f"{speed.speed:.3f}")
        for speed in found.nodes
    ]
    return f"{page.say('node_speeds')}\n\n{table(page.heads('node', 'trials', 'speed'), rows)}"


def _name(node: str, *, slow: bool) -> str:
    return f"**{escaped(node)}**" if slow else escaped(node)
