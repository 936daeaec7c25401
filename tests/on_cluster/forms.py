"""The form of a program's log: its lines with numbers, paths and repetitions left out."""

import re

from tests import SAMPLES

RECORDED = SAMPLES / "real-upstream"
_MASKS = (
    (re.compile(r"0x[0-9a-f]+"), "N"),
    (re.compile(r"(?<![\w.])\.{0,2}/[\w./:-]+"), "PATH"),
    (re.compile(r"(?<![A-Za-z_\d])-?\d+(?:[.:-]\d+)*(?:e-?\d+)?"), "N"),
    (re.compile(r"N +\|"), "N |"),  # the rest of a table's cell
)


def of(text: str) -> list[str]:
    """The lines, each once where it is repeated at once with other numbers."""
    found: list[str] = []
    for line in text.splitlines():
        for pattern, word in _MASKS:
            line = pattern.sub(word, line)
        if found[-1:] != [line]:
            found.append(line)
    return found


def text_of(name: str) -> str:
    """A recorded log of a real program."""
    return (RECORDED / name).read_text()


def recorded(name: str) -> list[str]:
    """The form of a recorded log of a real program."""
    return of(text_of(name))
