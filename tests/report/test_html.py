"""report.html: one file, whole, the same for the same data, and nothing in it that is obeyed."""

import base64
import hashlib
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from orchestrator import report
from orchestrator.model.facts import JSON
from orchestrator.model.problem import Problem
from orchestrator.model.report import Layout, LogSource, LoneLog, Report
from orchestrator.model.site import Finding
from orchestrator.report import markup
from tests.report.pages import sources, whole
from tests.reported import LOG, PUBLISHED, SEED_AMP, SHA256, folder, logged, results, sweep

HOSTILE = "<script>alert(1)</script>\"'`]]>--&amp;|\\\x1b[31m\u202e<img src=x onerror=y>"
VOID = {"meta", "br", "circle", "line", "path", "polyline", "rect"}


class Read(HTMLParser):
    """What a browser finds in a page: elements, ids, links, text."""

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
    """Everything that comes from logs, nodes and files has a name that wants to be obeyed."""
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
    read = Read(report.html_page(whole(), language, sources(whole())))
    assert len(read.ids) == len(set(read.ids))
    inside = {address[1:] for address in read.links if address.startswith("#")}
    assert inside <= set(read.ids)
    outside = {address for address in read.links if not address.startswith("#")}
    assert outside == {source.path for source in sources(whole()).values()}


def test_the_page_begins_with_what_was_measured_and_whether_it_counts() -> None:
    """Before the first table: title, verdict, cluster, time, version, command, what to know."""
    page = report.html_page(whole(), "en", {})
    first = page[: page.index("<table")]
    for words in (
        *("INCOMPLETE: 24 of 28 trials", "v100x4: vs[001-004], Tesla V100-SXM2-16GB x 8"),
        *("2026-09-15 10:11:12 UTC", "dlperf-orch 0.0.9; this report by "),
        *("dlperf-orch sweep rn50-amp --inventory v100x4", "LOG-CHANGED"),
    ):
        assert words in first, words


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
    text = report.markdown(hostile(HOSTILE.replace("`", "")))
    text = re.sub("`[^`\n]+`", "", text)  # what is code is not obeyed
    assert "<script" not in text
    assert "\u202e" not in text


@pytest.mark.parametrize("language", report.LANGUAGES)
def test_same_data_gives_the_same_bytes(language: report.Language) -> None:
    """Of the page and of every figure."""
    first, again = whole(), whole()
    assert report.html_page(first, language, {}) == report.html_page(again, language, {})
    assert report.svg_files(first, language) == report.svg_files(again, language)


def test_a_page_without_figures_and_facts_is_whole() -> None:
    """A folder of logs: nothing to know, no environment, no findings."""
    page = report.html_page(folder(LoneLog("a.txt", LOG, 6098.37, ())), "en", {})
    read = Read(page)
    assert "no trial is left out, and nothing is marked" in read.words
    assert "svg" not in read.tags
    assert "6098.37" in read.words
    for name in ("environment", "figures", "machines"):
        assert f'id="{name}"' not in page
        assert f'href="#{name}"' not in page


def test_a_clean_site_says_that_checks_found_nothing() -> None:
    """Rather than an empty table."""
    page = report.html_page(sweep(results(SEED_AMP), shared_machine=True), "en", {})
    assert "No check found anything to object to." in page
    assert "SHARED-MACHINE: nodes of this cluster are one machine." in page


def test_groups_have_their_names_and_numbers() -> None:
    """GPT: a row for each named case, with latency, memory and TFLOP/s."""
    (one,) = results({"1x1": (4.92, 4.93)})
    trials = tuple(logged(trial, latency_s=3.25, memory_mib=11958) for trial in one.trials)
    found = sweep((replace(one, trials=trials),), layout=Layout(kind="groups"))
    found = replace(
        found, names={one.case: "2D_8"}, step_flops={one.case: 1e14}, peak_tflops={one.case: 125.0}
    )
    words = Read(report.html_page(found, "en", {})).words
    for cell in ("2D_8", "3250 (ms)", "11958 (MiB)"):
        assert cell in words
    empty: dict[str, JSON] = report.document(replace(found, results=()))
    assert empty["cases"] == []
    assert "2D_8" not in report.html_page(replace(found, results=()), "en", {})


def test_a_trial_of_which_nothing_is_known_has_no_part_of_its_own() -> None:
    """Neither log nor reason; and a cluster without facts is its name alone."""
    (one,) = results({"1x1": (800.0,)})
    bare = replace(one.trials[0], path="", log=None)
    page = report.html_page(sweep((replace(one, trials=(bare,)),), environment={}), "en", {})
    assert "<strong>1n1g-r50_b256_amp_1" not in page
    assert "No trial of this case has a log." in page
    assert "<dd>v100x4</dd>" in page


def test_machines_stand_with_what_is_known_of_them() -> None:
    """Their state, their speeds beside one another, or both; a slow one is named so."""
    found, slow = (
        whole(),
        ">0.910</td><td>SLOW-NODE (a node is slower than the others)<",
    )
    page = report.html_page(found, "en", {})
    assert slow in page
    assert slow not in report.html_page(replace(found, node_speeds=()), "en", {})
    bare = replace(found, results=())
    assert slow in report.html_page(bare, "en", {})
    assert "When clocks were held down" not in report.html_page(bare, "en", {})


@pytest.mark.parametrize(
    ("language", "words"),
    [("en", "by number of processes"), ("zh", "随进程数的变化")],
)
def test_processes_on_cpus_are_not_called_gpus(language: report.Language, words: str) -> None:
    """Where no case ran on a GPU, tables and figures count processes."""
    page = report.html_page(sweep(results(SEED_AMP, device="cpu")), language, {})
    assert words in page
    before = page.partition('id="method"')[0]
    assert "GPU" not in re.sub("Tesla[^<]*|<style>.*?</style>", "", before, flags=re.DOTALL)


def test_a_code_stands_once_in_a_cell() -> None:
    """However many nodes gave a trial the same mark."""
    (one,) = results({"2x8": (11000.0,)})
    mark = Problem("CPU-LOADED", "node vs001: 0.9"), Problem("CPU-LOADED", "node vs002: 0.8")
    found = sweep((replace(one, trials=(replace(one.trials[0], marks=mark),)),))
    cell = "CPU-LOADED (others used the node's CPUs): node vs001: 0.9; node vs002: 0.8"
    assert f">{cell}</td>" in report.html_page(found, "en", {})
    assert f"| {cell} |" in report.markdown(found)
