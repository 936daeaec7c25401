"""The tables of docs/codes-nodes.md, from the table of findings.

``python -m tests.docs.codes`` writes them anew, between their two comments.
"""

import re

from orchestrator.model import findings
from tests.docs.pages import ROOT

PAGE = ROOT / "docs/codes-nodes.md"
TABLE = re.compile(r"(<!-- findings: ([^>]+) -->\n).*?(<!-- end of findings -->)", re.DOTALL)
HEAD = "| code | means | usual cause | what to do |\n|---|---|---|---|\n"


def written() -> str:
    """The page as it should be: with the tables that the findings give."""
    text = PAGE.read_text(encoding="utf-8")
    return TABLE.sub(lambda found: f"{found[1]}{HEAD}{rows(found[2])}{found[3]}", text)


def rows(section: str) -> str:
    """A row for each code of a section; a warning is called one."""
    return "".join(
        f"| `{code}` | {kind.means}{' (warning)' if kind.severity == 'warning' else ''}"
        f" | {kind.cause} | {kind.fix} |\n"
        for code, kind in findings.table()[section].items()
    )


if __name__ == "__main__":
    PAGE.write_text(written(), encoding="utf-8")
