"""What a sweep keeps, and what runs of it."""

import json
from pathlib import Path
from typing import Any

from tests.conftest import Place

FLOOD = """\
import os, sys
head = b"DLL begins\\n"
os.write(1, head)
left = {left}
while left:
    left -= os.write(1, b"x" * min(left, 1 << 16))
"""


def outcome(place: Place, log: str) -> Any:
    """Return the outcome that is kept beside a log."""
    return json.loads((place.sweep() / "logs" / log).with_suffix(".json").read_text())


def states(place: Place) -> list[str]:
    """Return the states of all attempts that have an outcome, in order."""
    return [event["state"] for event in place.events("outcome")]


def running(place: Place, rank: int = 0) -> list[Path]:
    """Return the open gates of tasks that have not ended."""
    opened = place.opened(rank)
    return [path for path in opened if not path.with_suffix(".end").exists() and path.exists()]
