"""The README's picture is what the program prints today, and asks no server."""

import html
import re
from pathlib import Path

from tests.docs.picture import PICTURE, shown

MOST_BYTES = 40_000


def words(svg: str) -> list[str]:
    """The words in a picture, in order."""
    lines = re.findall(r"<text[^>]*>(.*?)</text>", svg)
    return html.unescape(" ".join(lines)).replace("\xa0", " ").split()


def test_the_picture_shows_what_collect_prints(tmp_path: Path) -> None:
    """About the same logs; `python -m tests.docs.picture` draws it anew."""
    drawn = words(PICTURE.read_text(encoding="utf-8"))
    assert drawn[0] == "dlperf-orch"  # its title
    assert drawn[1:] == shown(tmp_path).split()


def test_the_picture_is_small_and_names_no_server() -> None:
    """But for the name of the format that it is in."""
    svg = PICTURE.read_text(encoding="utf-8")
    assert len(svg) < MOST_BYTES
    assert re.findall(r"https?://[^\"]*", svg) == ["http://www.w3.org/2000/svg"]
    assert "@font-face" not in svg
