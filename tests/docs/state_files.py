"""The files of a state folder, held against docs/files.md."""

import re
from pathlib import Path

from tests.docs.pages import ROOT, rows

# The words of the page that stand for names, as they may be.
NAMES = {
    "CLUSTER": r"[\w.-]+",
    "SHA256SUMS": "SHA256SUMS",
    "SHA256": "[0-9a-f]{64}",
    "NUMBER": "[0-9]+",
    "JOB": "[0-9]+",
    "PID": "[0-9]+",
    "ID": r"[\w.-]+-[0-9]{8}-[0-9]{6}-[0-9a-f]{6}",
    "PLACE": "[0-9]+n[0-9]+g",
    "NAME": r"[\w.-]+",
    "TRIAL": r"[\w.-]+",
    "ATTEMPT": "a[1-9][0-9]*",
    "RANK": "[0-9]+",
    "WORD": "[a-z]+",
    "FIGURE": "[a-z0-9-]+",
    "TIME": "[0-9TZ:-]+",
}


def table(page: str) -> list[str]:
    """The first cells of a page's tables, without their backquotes."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return [word for cells in rows(text) for word in re.findall("`([^`]+)`", cells[0])]


def pattern(name: str) -> re.Pattern[str]:
    """What a name on the page stands for."""
    words = re.split(f"({'|'.join(NAMES)})", name)
    return re.compile("".join(NAMES.get(word) or re.escape(word) for word in words))


def left(state: Path) -> set[str]:
    """The files of a state folder by their paths in it, without those of no content, as locks."""
    files = [path for path in state.rglob("*") if path.is_file() and path.stat().st_size]
    return {path.relative_to(state).as_posix() for path in files}


def untold(state: Path) -> set[str]:
    """Those that the page does not name."""
    told = [pattern(name) for name in table("files.md")]
    return {name for name in left(state) if not any(it.fullmatch(name) for it in told)}
