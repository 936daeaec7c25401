"""A headless Chromium that looks at one page and ends."""

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome")
_CONSOLE = re.compile(r"CONSOLE[^\n]*")
_PATIENCE_S = 120


def program() -> str | None:
    """Return the path of Chromium; None if it is not installed."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def looked(url: str, options: Sequence[str], folder: Path) -> tuple[str, list[str]]:
    """Return what Chromium printed, and what the page wrote to its console."""
    words = (
        *(program() or NAMES[0], "--headless", "--no-sandbox", "--disable-gpu"),
        *("--disable-background-networking", "--disable-component-update", "--hide-scrollbars"),
        *("--disable-dev-shm-usage", "--enable-logging=stderr", f"--user-data-dir={folder}"),
    )
    done = subprocess.run(
        (*words, *options, url), capture_output=True, text=True, timeout=_PATIENCE_S, check=True
    )
    return done.stdout, _CONSOLE.findall(done.stderr)
