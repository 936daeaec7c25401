"""The pages that people read: their fenced blocks, tables and links."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("**/*.md")])
_FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)
_ROW = re.compile(r"^\|(.+)\|$", re.MULTILINE)
_FILE = re.compile(r"# ((?:[\w.-]+/)*[\w.-]+\.ya?ml)\n")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: str
    language: str
    text: str

    @property
    def name(self) -> str:
        """How tests call it: its page and its first command."""
        return f"{self.page}: {self.text.splitlines()[0].partition('  #')[0].rstrip()}"

    @property
    def file(self) -> str:
        """The file that a reader makes of it, which its first line names; empty if none."""
        found = _FILE.match(self.text) if self.language == "yaml" else None
        return found[1] if found else ""


def called(path: Path) -> str:
    """A page's path in the repository."""
    return path.relative_to(ROOT).as_posix()


def blocks(path: Path) -> Iterator[Block]:
    """The fenced blocks of a page, in order."""
    for indent, language, text in _FENCE.findall(path.read_text(encoding="utf-8")):
        plain = "".join(line.removeprefix(indent) for line in text.splitlines(keepends=True))
        yield Block(called(path), language, plain)


def rows(text: str) -> Iterator[tuple[str, ...]]:
    """The cells of each row of a page's tables, without heads and rules."""
    for line in _ROW.findall(text):
        cells = tuple(cell.strip() for cell in line.split("|"))
        if cells[0].startswith("`"):
            yield cells


def prose(path: Path) -> str:
    """A page without its fenced blocks."""
    return _FENCE.sub("", path.read_text(encoding="utf-8"))
