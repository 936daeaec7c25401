"""The picture in the README: what `collect` prints about logs that were really recorded.

``python -m tests.docs.picture`` draws it anew into docs/collect.svg.
"""

import io
import shlex
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

from tests import commands
from tests.commands import on_terminal
from tests.docs.pages import ROOT
from tests.docs.recorded import lay

PICTURE = ROOT / "docs/collect.svg"
COLUMNS = 100
COMMAND = "collect --logs logs --workload ngc_pytorch_rn50 --window 20:60"
PROGRAM = (sys.executable, "-c", "from orchestrator.__main__ import main; main()")
# rich's own form without its web font: whoever looks at it asks no server.
FORM = (Path(__file__).parent / "picture_form.svg").read_text()


def shown(folder: Path) -> str:
    """Return what a person sees who types the command where the recorded logs are."""
    lay(folder / "logs")
    env = commands.environment(PYTHONPATH=str(ROOT))
    words = (*PROGRAM, *shlex.split(COMMAND))
    said = on_terminal(words, columns=COLUMNS, cwd=folder, env=env)
    return f"$ dlperf-orch {COMMAND}\n{said}"


def drawn(text: str) -> str:
    """Draw the text as a picture."""
    console = Console(record=True, file=io.StringIO(), width=COLUMNS, highlight=False)
    console.print(Text(f"{text.rstrip()}\n"), soft_wrap=False)  # or its last line is cut off below
    svg = console.export_svg(title="dlperf-orch", code_format=FORM, unique_id="collect")
    return "\n".join(line.rstrip() for line in svg.splitlines() if line.strip()) + "\n"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        PICTURE.write_text(drawn(shown(Path(place))), encoding="utf-8")
