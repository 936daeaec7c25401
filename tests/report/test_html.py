"""report.html: one file, whole, the same for the same data, and nothing in it that is obeyed."""

import base64
import hashlib
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from orchestrator import report
from orchestrator.model.problem import Problem
from orchestrator.model.report import LogSource, LoneLog, Report
from orchestrator.model.site import Finding
from orchestrator.report import markup
from tests.report.pages import sources, whole
from tests.reported import LOG, PUBLISHED, SHA256, folder, results, sweep

HOSTILE = "<script>alert(1)</script>\"'`]]>--&amp;|\\\x1b[31m\u202e<img src=x onerror=y>"
MARKUP = "a|b`c`<img src=x>*d*_e_[f](g)\\&\n# h\x1b[31m"
HARMLESS = r"a\|b\`c\`&lt;img src=x>\*d\*\_e\_\[f\](g)\\&amp; # h \[31m"
VOID = {"meta", "br", "circle", "line", "path", "polyline", "rect"}


class Read(HTMLParser):
    """Reads elements, ids, links and text of a page, as a browser does."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.words = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        values = dict(attrs)
        self.ids += [values["id"] or ""] if "id" in values else []
        self.links += [values["href"] or ""] if "href" in values else []
        assert not [name for name in values if name.startswith("on") or name in ("src", "style")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data


def hostile(name: str = HOSTILE) -> Report:
    """Return a report in which every text from logs, nodes and files is this name."""
    lone = LoneLog(name, LOG, None, (Problem("WINDOW", name),))
    one, two = results({"1x1": (800.0, None), "2x8": (11000.0,)}, device=name)
    trace = ((1, 9, 1.0, 2.0, 3.0),)
    trials = [
        replace(
            trial,
            trial=name,
            state=name,
            problems=(Problem("X", name),),
            marks=(Problem("Y", name),),
            path=name,
            log=replace(LOG, lines=(1, 2), trace=trace, window=(2, 8)),
            transport=name,
        )
        for trial in one.trials
    ]
    device = markup.clean(name).replace(" ", "")
    return sweep(
        (replace(one, trials=tuple(trials)), two),
        title=name,
        source=name,
        experiment=name,
        workload=name,
        cluster=name,
        image=name,
        image_digest=name,
        lone=(lone,),
        environment={name: {name: name}},
        topologies={name: f"GPU0 GPU1 {device}\nGPU0 X NV2 PIX\nGPU1 NV2 X SYS\n"},
        published={one.case: (replace(PUBLISHED, framework=name, source=name),)},
        names={one.case: name},
        created=name,
        commands=(name,),
        written_by=name,
        findings=(Finding("error", name, name, name, name, name),),
    )


def test_the_page_is_one_file_that_may_fetch_nothing() -> None:
    """Its policy allows its own style by hash and nothing else; the hash is that of the style."""
    page = report.html_page(whole(), "en", sources(whole()))
    (policy,) = re.findall('http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    (style,) = re.findall("<style>(.*?)</style>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy.replace("&#x27;", "'").startswith(
        f"default-src 'none'; style-src 'sha256-{digest}'"
    )
    assert not {"script", "img", "link", "iframe"} & Read(page).tags
    assert "url(" not in style
    assert "@import" not in style


@pytest.mark.parametrize("language", report.LANGUAGES)
def test_every_link_has_its_place(language: report.Language) -> None:
    """In the page, or the path of a log; and no two places have one name."""
    page = report.html_page(whole(), language, sources(whole()))
    read = Read(page)
    assert f'<html lang="{"zh-Hans" if language == "zh" else "en"}">' in page
    assert len(read.ids) == len(set(read.ids))
    inside = {address[1:] for address in read.links if address.startswith("#")}
    assert inside <= set(read.ids)
    outside = {address for address in read.links if not address.startswith("#")}
    assert outside == {source.path for source in sources(whole()).values()}


def test_each_number_leads_to_the_lines_of_its_log() -> None:
    """From a trial's number to its part of the page, which has the lines and the log's address."""
    page = report.html_page(whole(), "en", sources(whole()))
    place = re.search('<a href="#([^"]*)">803.69</a>', page)
    assert place
    part = page[page.index(f'id="{place[1]}"') :]
    part = part[: part.index("</pre>")]
    assert 'href="logs/1n1g/r50_b256_amp_1.log"' in part
    assert "<code>40: DLL 2020 - Epoch: 0 Iteration: 25</code>" in part
    assert "<code>140: DLL 2020 - Iteration: 125</code>" in part
    assert SHA256 in part


def test_names_from_outside_are_shown_and_not_obeyed() -> None:
    """No element, attribute, control character or turn of direction of theirs is left."""
    found = hostile()
    source = {HOSTILE: LogSource("a/<b>?#%.log", ((1, HOSTILE),))}
    page = report.html_page(found, "en", source)
    read = Read(page)
    assert not {"script", "img"} & read.tags
    assert "<script" not in page
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert "<script>alert(1)</script>" in read.words
    assert "a/%3Cb%3E%3F%23%25.log" in read.links
    for svg in report.svg_files(found, "en").values():
        assert "<script" not in svg
        assert "]]>" not in svg


def test_names_from_outside_are_no_markup_of_report_md() -> None:
    """Neither Markdown, HTML nor a terminal takes a name, a header or a message for its own."""
    text = report.markdown(hostile(MARKUP))
    assert MARKUP not in text
    assert "\x1b" not in text
    assert f"# {HARMLESS}\n" in text
    assert f"- Measured from: {HARMLESS}\n" in text
    assert f"| X: {HARMLESS}; Y: {HARMLESS} |" in text
    assert f"| WINDOW (the log does not cover the window): {HARMLESS} |" in text
    assert text.count("\n```") == 2
    assert sum(line.startswith("# ") for line in text.splitlines()) == 1
    text = re.sub("`[^`\n]+`", "", report.markdown(hostile(HOSTILE.replace("`", ""))))
    assert "<script" not in text
    assert "\u202e" not in text
    lone = LoneLog("a\nb.txt", LOG, 6098.37, ())
    _, (_, _, cells) = report.terminal_tables(folder(lone))
    assert cells[0][-1] == "a\\nb.txt"


@pytest.mark.parametrize("language", report.LANGUAGES)
def test_same_data_gives_the_same_bytes(language: report.Language) -> None:
    first, again = whole(), whole()
    assert report.html_page(first, language, {}) == report.html_page(again, language, {})
    assert report.svg_files(first, language) == report.svg_files(again, language)


def test_sections_without_content_have_no_place_and_no_link() -> None:
    """As of a folder of logs: no environment, no figures, no machines."""
    page = report.html_page(folder(LoneLog("a.txt", LOG, 6098.37, ())), "en", {})
    read = Read(page)
    assert "no trial is left out, and nothing is marked" in read.words
    assert "svg" not in read.tags
    for name in ("environment", "figures", "machines"):
        assert f'id="{name}"' not in page
        assert f'href="#{name}"' not in page


def test_a_trial_of_which_nothing_is_known_has_no_part_of_its_own() -> None:
    (one,) = results({"1x1": (800.0,)})
    bare = replace(one.trials[0], path="", log=None)
    page = report.html_page(sweep((replace(one, trials=(bare,)),), environment={}), "en", {})
    assert "<strong>1n1g-r50_b256_amp_1" not in page
    assert "No trial of this case has a log." in page
    assert "<dd>v100x4</dd>" in page
