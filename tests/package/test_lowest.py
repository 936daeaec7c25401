"""The lowest versions that are allowed are those that are tested."""

import re
import tomllib

from tests import ROOT


def test_lower_bounds_are_the_versions_that_make_lowest_installs() -> None:
    """A bound that nobody has tried is no promise."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    tested = [
        line.replace("==", ">=")
        for line in (ROOT / "tests/lowest.txt").read_text().splitlines()
        if not line.startswith("#")
    ]
    assert declared == tested


def test_no_pattern_repeats_a_group_possessively() -> None:
    """Python before 3.11.5 matches those wrongly: python/cpython#106052."""
    possessive = re.compile(r"\)(?:[*+?]|\{[0-9,]+\})\+")
    sources = (ROOT / "orchestrator").rglob("*.py")
    assert not [path for path in sources if possessive.search(path.read_text())]
