"""What a sweep keeps, and what runs of it."""

import json
from pathlib import Path

from tests.conftest import Place

FLOOD = """\
import os, sys
head = b"DLL begins\\n"
os.write(1, head)
left = {left}
while left:
    left -= os.write(1, b"x" * min(left, 1 << 16))
"""


def outcome(place: Place, log: str) -> dict[str, object]:
    found = json.loads((place.sweep() / "logs" / log).with_suffix(".json").read_text())
    assert isinstance(found, dict)
    return found


def running(place: Place, rank: int = 0) -> list[Path]:
    """Gates that have opened for tasks that have not ended."""
    opened = place.opened(rank)
    return [path for path in opened if not path.with_suffix(".end").exists() and path.exists()]
