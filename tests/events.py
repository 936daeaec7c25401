"""Events that a sweep has written down."""

import json
from pathlib import Path
from typing import Any


def events(sweep: Path, kind: str) -> list[Any]:
    """Those of one kind, in their order."""
    lines = (sweep / "events.jsonl").read_text().splitlines()
    return [event for event in map(json.loads, lines) if event["event"] == kind]
