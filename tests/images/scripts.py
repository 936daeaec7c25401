"""The shipped scripts of images, run on this machine."""

import os
import subprocess
from pathlib import Path

from tests import ROOT, commands

IMAGES = ROOT / "images"


def program(path: Path, text: str) -> None:
    """A small program at this path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def shell(script: str, *argv: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a shipped script, FOLDER/NAME, to its end."""
    return commands.run(
        ["sh", str(IMAGES / script), *argv], env={**os.environ, **env}, timeout_s=60
    )
