"""How tests of packages build the wheel of this checkout."""

import subprocess
import sys
from pathlib import Path

from tests import ROOT


def built(folder: Path) -> Path:
    """A wheel of this checkout in a folder."""
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder)]
    subprocess.run([*build, str(ROOT)], check=True, capture_output=True, timeout=300)
    (wheel,) = folder.glob("*.whl")
    return wheel
