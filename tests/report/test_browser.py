"""report.html as Chromium sees it: no error, no request, no fault for those who cannot see."""

import functools
import html
import json
import re
import subprocess
import threading
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import markdown_it
import pytest

from orchestrator.collecting import report_files
from orchestrator.measuring import medians
from orchestrator.model.problem import Problem
from orchestrator.report import LANGUAGES, Language, html_page, markdown
from tests.report import browser
from tests.report.pages import whole
from tests.report.test_documents import gpt_report
from tests.reported import PUBLISHED

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.long,
    pytest.mark.skipif(browser.program() is None, reason="needs Chromium, which is not installed"),
]
LINE = "DLL 2020-09-15 10:00:00.000000 - Epoch: 0 Iteration: {}  train.loss : 6.9\n"


class Heard(SimpleHTTPRequestHandler):
    """Serves files and records the requests."""

    asked: list[str]

    def log_message(self, format: str, *args: object) -> None:
        self.asked.append(format % args)


@dataclass
class Pages:
    """Reports in both languages, served on this machine."""

    folder: Path
    address: str
    asked: list[str] = field(default_factory=list)

    def url(self, language: Language, name: str = "") -> str:
        return f"{self.address}/{language}/{name or report_files.html(language)}"


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pages]:
    """Serve the report that has everything, with its logs, written as `collect` writes it."""
    folder, found, asked = tmp_path_factory.mktemp("pages"), whole(), list[str]()
    for language in LANGUAGES:
        for trial in found.trials:
            if trial.path:
                log = folder / language / trial.path
                log.parent.mkdir(parents=True, exist_ok=True)
                log.write_text("".join(LINE.format(n) for n in range(1, 150)))
        report_files.reports(folder / language, found, language)
    handler = type("Handler", (Heard,), {"asked": asked})
    serving = functools.partial(handler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), serving) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield Pages(folder, f"http://127.0.0.1:{server.server_port}", asked)
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the text of axe-core, which comes from npm for this test alone."""
    folder = tmp_path_factory.mktemp("axe")
    words = ("npm", "install", "axe-core@4", "--no-audit", "--no-fund", "--ignore-scripts")
    with suppress(OSError, subprocess.SubprocessError):
        subprocess.run(words, cwd=folder, capture_output=True, timeout=90, check=True)
    script = folder / "node_modules/axe-core/axe.min.js"
    if not script.exists():
        pytest.skip("needs axe-core, which npm could not bring")
    return script.read_text(encoding="utf-8")


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_page_asks_for_nothing_and_says_no_error(
    pages: Pages, language: Language, tmp_path: Path
) -> None:
    """Its own file alone was fetched, its console is empty, and its text is drawn."""
    pages.asked.clear()
    text, console = browser.looked(pages.url(language), ["--dump-dom"], tmp_path)
    assert console == []
    paths = {line.split()[1] for line in pages.asked} - {"/favicon.ico"}
    assert paths == {f"/{language}/{report_files.html(language)}"}
    assert text.count("<svg") == 4
    assert "LOG-CHANGED" in text


def test_every_link_resolves(pages: Pages) -> None:
    """Those to logs lead to bytes, those in the page to a place in it; so do those of report.md."""
    for name in ("report.html", "report.md"):
        text = (pages.folder / "en" / name).read_text(encoding="utf-8")
        links = set(re.findall(r'href="([^"]+)"|\]\(([^)]+\.svg)\)', text))
        assert links
        for inside, figure in links:
            if inside.startswith("#"):
                assert f'id="{inside[1:]}"' in text
                continue
            url = urllib.parse.urljoin(pages.url("en"), inside or figure)
            with urllib.request.urlopen(url) as answer:
                assert answer.status == 200
                assert answer.read()


CLICKS = """
const seen = [], pause = () => new Promise(done => setTimeout(done, 20));
const shown = place => place.tagName == 'P' && [...place.nextElementSibling.nextElementSibling
    .querySelectorAll('code')]
    .filter(line => line.checkVisibility() && line.getClientRects().length).map(l => l.textContent);
(async () => {
    for (const link of document.querySelectorAll('td a[href^="#"], th a[href^="#"]')) {
        link.click(); await pause();
        const place = document.getElementById(decodeURIComponent(link.hash.slice(1)));
        const top = place.getBoundingClientRect().top;
        seen.push([link.textContent, place.tagName, shown(place), top > -2 && top < innerHeight]);
    }
    document.body.textContent = 'FOUND' + JSON.stringify(seen);
})();
"""


def test_who_clicks_on_a_number_sees_the_lines_of_its_log(pages: Pages, tmp_path: Path) -> None:
    """A trial's number opens its two lines; a case's median leads to its trials, with theirs."""
    copy = scripted(pages, "en", "clicks", CLICKS)
    options = ["--dump-dom", "--virtual-time-budget=60000", "--window-size=1080,800"]
    clicked = found_by(browser.looked(pages.url("en", copy), options, tmp_path)[0])
    assert all(in_sight for *_, in_sight in clicked)
    lines = {text: shown for text, place, shown, _ in clicked if place == "P"}
    report = whole()
    numbers = [trial.throughput for trial in report.trials if trial.path]
    assert set(lines) == {f"{number:.2f}" for number in numbers}
    for number, shown in lines.items():
        first, last = shown
        assert first.startswith("40: DLL 2020"), number
        assert last.startswith("140: DLL 2020"), number
    cases = [text for text, place, *_ in clicked if place == "H3"]
    assert "802.90" in cases
    assert "1x4 AMP(BS=256)" in cases


def scripted(pages: Pages, language: Language, name: str, script: str, of: str = "") -> str:
    """Write a copy of the page that may run a script; return its name."""
    page = (pages.folder / language / (of or report_files.html(language))).read_text("utf-8")
    bare = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page)
    copy = pages.folder / language / f"{name}.html"
    copy.write_text(bare.replace("</body>", f"<script>{script}</script></body>"))
    return copy.name


def found_by(text: str) -> Any:
    """Return the result of the script of a copy."""
    said = re.search(r"FOUND(\[.*\])", html.unescape(text), re.DOTALL)
    assert said, text[-500:]
    return json.loads(said[1])


WIDE = """
const cut = [...document.querySelectorAll('section > .wide-content')]
    .filter(box => box.scrollWidth > box.clientWidth + 1).map(box => box.ariaLabel);
document.body.textContent = 'FOUND' + JSON.stringify([innerWidth, ...cut]);
"""


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("width", [1080, 718])
def test_no_table_is_cut_at_its_right_edge(
    pages: Pages, language: Language, width: int, tmp_path: Path
) -> None:
    """On a screen, and on A4 less Chromium's margins, with the style of paper alone."""
    folder = pages.folder / language
    text = (folder / report_files.html(language)).read_text(encoding="utf-8")
    if width == 718:
        for medium, other in (("screen", "speech"), ("print", "all")):
            text = text.replace(f"@media {medium}", f"@media {other}")
    (folder / "sized.html").write_text(text, encoding="utf-8")
    assert wide(pages, language, width, tmp_path, "sized.html") == [width]


def test_no_table_of_named_cases_is_cut(pages: Pages, tmp_path: Path) -> None:
    """GPT's, each with repeats, marks, a peak of memory and a published value."""
    found = gpt_report()
    marks = tuple(Problem(code, "seen") for code in LONG_MARKS)
    named = tuple(
        replace(
            medians.result(one.case, [replace(it, repeat=n) for it in one.trials for n in (1, 2)]),
            marks=marks,
        )
        for one in found.results
    )
    published = {one.case: (PUBLISHED,) for one in named}
    page = html_page(replace(found, results=named, published=published), "en", {})
    (pages.folder / "en" / "gpt.html").write_text(page, encoding="utf-8")
    assert wide(pages, "en", 1080, tmp_path, "gpt.html") == [1080]


GITHUB = """
body{margin:0;font:16px/1.5 "DejaVu Sans Condensed",sans-serif}
main{box-sizing:border-box;width:1080px;padding:32px}
table{display:block;width:max-content;max-width:100%;overflow:auto;border-collapse:collapse}
th,td{padding:6px 13px;border:1px solid}code{font-size:85%;white-space:break-spaces}
main{overflow-wrap:break-word}img{max-width:100%}pre{overflow:auto}
"""
"""Sizes of its style sheet; that font is about as wide as those which it asks for."""
LONG_MARKS = ("TRANSPORT-UNPROVEN", "ALIEN-PROCESS", "BASELINE-DIFFERS", "CPU-LOADED", "NODE-SETS")


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_table_of_report_md_is_cut_on_github(language: Language, tmp_path: Path) -> None:
    """In its column of 1,080 pixels, also with many long marks; figures are not wider either."""
    found = whole()
    marks = tuple(Problem(code, "seen") for code in LONG_MARKS)
    first, *others = found.results
    where = {"nodes": ("vs001", "vs002"), "measured_s": 123.4}
    trials = tuple(replace(trial, marks=marks, **where) for trial in first.trials)  # type: ignore[arg-type] # one field of each type
    found = replace(found, results=(replace(first, trials=trials, marks=marks), *others))
    text = markdown_it.MarkdownIt("commonmark").enable("table").render(markdown(found, language))
    script = WIDE.replace("section > .wide-content", "table, pre, img, li, p")
    script = script.replace("box.ariaLabel", "box.innerText")
    page = f"<meta charset='utf-8'><style>{GITHUB}</style><main>{text}</main><body>"
    (tmp_path / "md.html").write_text(f"{page}<script>{script}</script>", encoding="utf-8")
    url = (tmp_path / "md.html").as_uri()
    options = ["--dump-dom", "--window-size=1080,800"]
    seen, *cut = found_by(browser.looked(url, options, tmp_path / "profile")[0])
    assert (seen, cut) == (1080, [])


FIGURES = """
const boxes = [...document.querySelectorAll('figure')];
const cut = boxes.filter(box => box.scrollWidth > box.clientWidth + 1).map(box => box.innerText);
const letters = [...document.querySelectorAll('figure svg')].map(
    svg => 12 * svg.getBoundingClientRect().width / svg.viewBox.baseVal.width);
parent.document.body.textContent =
    'FOUND' + JSON.stringify([innerWidth, Math.min(...letters), ...cut]);
"""


@pytest.mark.parametrize("width", [360, 390])
def test_a_phone_shows_all_figures_whole(pages: Pages, width: int, tmp_path: Path) -> None:
    """None of them scrolls sideways, and their smallest letters are 7 pixels high at least."""
    copy = scripted(pages, "en", f"phone-{width}", f"onload = () => {{{FIGURES}}}")
    frame = pages.folder / "en" / f"frame-{width}.html"  # no window of Chromium is so narrow
    frame.write_text(
        f"<body><iframe src='{copy}' style='border:0;width:{width}px'></iframe></body>"
    )
    seen, letters, *cut = found_by(
        browser.looked(pages.url("en", frame.name), ["--dump-dom"], tmp_path)[0]
    )
    assert (seen, cut) == (width, [])
    assert letters > 7


def wide(pages: Pages, language: Language, width: int, folder: Path, name: str = "") -> Any:
    """Return the width of the window, and the tables that are wider than their place in it."""
    copy = scripted(pages, language, f"wide-{width}", WIDE, name)
    options = ["--dump-dom", f"--window-size={width},800"]
    return found_by(browser.looked(pages.url(language, copy), options, folder)[0])


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("scheme", ["0", "1"], ids=["dark", "light"])
def test_axe_finds_no_serious_fault(
    pages: Pages, axe: str, language: Language, scheme: str, tmp_path: Path
) -> None:
    """In light and in dark; the copy that it looks at may run its script, the report may not.

    Nor are two regions of one name, such as figures of one sort, beside one another.
    """
    run = "axe.run().then(r=>{document.body.textContent='FOUND'+JSON.stringify(r.violations)})"
    copy = scripted(pages, language, f"axe-{scheme}", f"{axe}\n{run}")
    options = ["--dump-dom", "--virtual-time-budget=60000"]
    options.append(f"--blink-settings=preferredColorScheme={scheme}")
    faults = found_by(browser.looked(pages.url(language, copy), options, tmp_path)[0])
    serious = [
        fault
        for fault in faults
        if fault["impact"] in ("serious", "critical") or fault["id"] == "landmark-unique"
    ]
    assert [(fault["id"], fault["nodes"][0]["html"]) for fault in serious] == []
