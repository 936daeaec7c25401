"""What a reader of a sweep sees before any table: on the terminal, in report.md, in report.html."""

import re
from pathlib import Path


def first_lines(sweep: Path, said: str) -> tuple[str, str, str]:
    """The three beginnings, as words without tags.

    Args:
        said: standard output of `collect`.
    """
    text = (sweep / "report.md").read_text(encoding="utf-8").replace("\\", "").replace("**", "")
    page = (sweep / "report.html").read_text(encoding="utf-8")
    return (
        said.partition(f"\n{sweep.name}")[0],
        text.partition("\n| ")[0],
        re.sub("<[^>]*>", "", page.partition("</style>")[2].partition("<table")[0]),
    )
