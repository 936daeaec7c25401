"""Pictures of report.html for docs/: light, dark, paper and Chinese.

``python -m tests.docs.screenshots FOLDER`` takes them anew of the sweep in that folder, such as
``.dlperf/sweeps/ID`` after ``make demo``, with Chromium and a Chinese font, such as Debian's
fonts-wqy-zenhei. Paper is shown by its style sheet on a screen.
"""

import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from orchestrator.collecting import report_files
from orchestrator.collecting.sweep import measured
from orchestrator.report import Language
from orchestrator.state.sweep import Sweep
from tests.docs.pages import ROOT
from tests.report import browser

DARK, LIGHT = (f"--blink-settings=preferredColorScheme={number}" for number in (0, 1))
SHOTS: Mapping[str, tuple[Language, str, str]] = {
    "report-light": ("en", LIGHT, "1080,2150"),
    "report-dark": ("en", DARK, "1080,1500"),
    "report-print": ("en", LIGHT, "794,1123"),
    "report-chinese": ("zh", LIGHT, "1080,1500"),
}


def page(sweep: Sweep, name: str, language: Language) -> str:
    """Return the page of a sweep, for paper with the style of paper alone."""
    files = report_files.contents(sweep.folder, measured(sweep), language, sweep.folder)
    text = files[report_files.html(language)].decode()
    if name.endswith("print"):
        first, _, rest = text.partition('<meta http-equiv="Content-Security-Policy"')
        text = first + rest.partition("/>")[2]
        text = text.replace(
            "max-width:none;padding:0;", "max-width:none;padding:15mm;"
        )  # its margin
        return text.replace("@media print", "@media all").replace("@media screen", "@media print")
    return text


def fonts(language: Language) -> str:
    """The installed fonts that have a language's characters, as fontconfig lists them."""
    words = ("fc-list", f":lang={language}", "family")
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    if not fonts("zh"):
        sys.exit("no font has Chinese characters; needed one, such as Debian's fonts-wqy-zenhei")
    sweep = Sweep.at(Path(sys.argv[1]))
    with tempfile.TemporaryDirectory() as place:
        for name, (language, scheme, size) in SHOTS.items():
            path, to = Path(place, f"{name}.html"), ROOT / "docs" / f"{name}.png"
            path.write_text(page(sweep, name, language), encoding="utf-8")
            options = (scheme, f"--window-size={size}", f"--screenshot={to}")
            browser.looked(path.as_uri(), options, Path(place, "profile"))
