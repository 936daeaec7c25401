"""Good files, and a table of bad ones: what is wrong, where, and what must be said of it."""

import json
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent
INVENTORY, PLAYBOOK, IMAGE = (
    (FOLDER / "good" / f"{kind}.yaml").read_text() for kind in ("inventory", "playbook", "image")
)
KINDS = {"inventory": INVENTORY, "playbook": PLAYBOOK, "image": IMAGE}


@dataclass(frozen=True)
class Bad:
    """A bad file: its content, the line and column where it is bad, and words of the mistake."""

    name: str
    content: str
    place: tuple[int, int]
    words: str


def bad_file(number: int, fault: str, kind: str, old: str, new: str, words: str) -> Bad:
    """Make the file that a row describes.

    Args:
        fault: the row of the fault catalogue.
        kind: the good file in which ``old``, or all for ``*``, is replaced by ``new``.
        new: with the sign ▶, which is not written, where the mistake must point.
    """
    good = KINDS[kind]
    assert old == "*" or old in good, f"{old!r} is not in the {kind}"
    marked = new if old == "*" else good.replace(old, new, 1)
    before = marked.split("▶")[0]
    place = (before.count("\n") + 1, len(before) - before.rfind("\n"))
    return Bad(f"{number:03}-{fault.lower()}-{kind}", marked.replace("▶", ""), place, words)


_ROWS = (FOLDER / "bad_files.jsonl").read_text().splitlines()
BAD = tuple(bad_file(number, *json.loads(row)) for number, row in enumerate(_ROWS))
