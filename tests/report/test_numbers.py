"""Every number of results.json stands where the pages say, in both formats and languages.

The rows that are expected are made from results.json alone, with rounding rules of this file; only
words, such as the head of a column, are those of the program.
"""
# ruff: noqa: RUF001 - Chinese has punctuation of its own

import html
import json
import random
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from orchestrator import report, workloads
from orchestrator.collecting import report_files
from orchestrator.model.report import Layout, LogSource, Report
from orchestrator.report import Language, page
from orchestrator.state.store import Store
from tests.report.pages import REPORTS, drawn
from tests.verifying import honest, sweeps

Row = Mapping[str, str]
Tables = Mapping[str, Sequence[Sequence[Sequence[str]]]]
SECTIONS = {
    "glance": ("Cases at a glance", "用例一览"),
    "trials": ("All trials", "全部试验"),
    "evidence": ("Evidence of each trial", "各次试验的证据"),
    "published": ("Published results", "已公布的结果"),
    "machines": ("State of the machines", "机器状态"),
    "nodes": ("Nodes beside one another", "各节点比较"),
    "lone": ("Logs", "日志"),
}
NOT_OBSERVED = {"en": "not observed", "zh": "未观测"}
DRAWN: list[Callable[[], Report]] = [
    *REPORTS.values(),
    *(partial(drawn, seed) for seed in range(50)),
]
# Decimals of medians over machines by column.
MACHINES = {
    **{"sm_clock": ("sm_mhz", 0), "memory_clock": ("memory_mhz", 0), "power": ("power_w", 0)},
    **{"temperature": ("temperature_c", 0), "utilisation": ("utilisation_pct", 0)},
    **{"others": ("others_cpus", 1), "load": ("load", 1)},
}


def tables_of_markdown(text: str) -> Tables:
    """Return the tables of report.md by the titles of their sections, without escapes."""
    found: dict[str, list[list[list[str]]]] = {}
    for part in text.split("\n## ")[1:]:
        title, _, body = part.partition("\n")
        for block in body.strip("\n").split("\n\n"):
            if block.startswith("| "):
                first, _, *rows = block.splitlines()
                cells = [line[2:-2].split(" | ") for line in (first, *rows)]
                table = [[re.sub(r"\\(.)", r"\1", it).strip() for it in row] for row in cells]
                found.setdefault(title, []).append(table)
    return found


def tables_of_html(text: str) -> Tables:
    """Return the tables of report.html by the titles of their sections."""
    found: dict[str, list[list[list[str]]]] = {}
    for part in text.split('<section><h2 id="')[1:]:
        title = html.unescape(part.partition(">")[2].partition("</h2>")[0])
        for block in re.findall("<table>.*?</table>", part, re.DOTALL):
            rows = ET.fromstring(block).iter("tr")
            table = [["".join(cell.itertext()).strip() for cell in row] for row in rows]
            found.setdefault(title, []).append(table)
    return found


@dataclass(frozen=True)
class Shown:
    """The tables of a page by the title of their section, and all of its text."""

    language: Language
    layout: Layout
    tables: Tables
    text: str

    def say(self, key: str) -> str:
        """Return the head of a column."""
        own = page.HEADS.get(key) or (key, page.WORDS[key])
        return own[self.language == "zh"]

    def rows(self, key: str) -> list[Row]:
        """Return the rows of every table of a section by the heads of their columns."""
        found: list[Row] = []
        for head, *rows in self.tables.get(SECTIONS[key][self.language == "zh"], ()):
            found += [dict(zip(head, row, strict=True)) for row in rows]
        return found

    def column(self, section: str, head: str) -> list[str]:
        """Return the cells below a head that are not empty."""
        return [cell for row in self.rows(section) if (cell := row.get(self.say(head), ""))]

    def rate(self, value: float | None) -> str:
        """Return a throughput as the layout of its documents prints it."""
        text = fixed(value, self.layout.decimals)
        if self.layout.kind == "groups" and "." in text:
            return text.rstrip("0").rstrip(".")
        return text

    def interval(self, found: Mapping[str, float] | None) -> str:
        if found is None:
            return "n/a"
        low, high, coverage = f"{found['low']:.2f}", f"{found['high']:.2f}", found["coverage"]
        if self.language == "zh":
            return f"{low} 至 {high}（{coverage:.2%}）"
        return f"{low} to {high} ({coverage:.2%})"


def fixed(value: float | None, decimals: int) -> str:
    return "n/a" if value is None else f"{value:.{decimals}f}"


def share(value: float | None, sign: str = "") -> str:
    return "n/a" if value is None else format(value, f"{sign}.1%")


def latency(seconds: float | None) -> str:
    """Return milliseconds without zeros at their end, empty where there are none."""
    if seconds is None:
        return ""
    return f"{f'{seconds * 1000:.3f}'.rstrip('0').rstrip('.')} (ms)"


def check(document: Mapping[str, Any], html_text: str, shown: Shown) -> None:
    """Compare every section of both pages with results.json."""
    assert tables_of_html(html_text) == shown.tables
    plain = html.unescape(re.sub("<[^>]*>", " ", html_text))
    words = re.findall(r"[^\W_]+(?:[.,][0-9]+)?", re.sub("!.*", "", shown.text))
    assert set(words) <= set(re.findall(r"[^\W_]+(?:[.,][0-9]+)?", plain))
    check_cases(document, shown)
    check_trials(document, shown)
    check_published(document, shown)
    check_machines(document, shown)
    check_logs(document, shown)
    check_first_lines(document, shown)


def check_cases(document: Mapping[str, Any], shown: Shown) -> None:
    """Compare all that the number of a case is worth."""
    rows = [row for row in shown.rows("glance") if document["unit"] in row]
    others = [row for row in shown.rows("glance") if document["unit"] not in row]
    for row, case in zip(others, document["cases"], strict=bool(others)):
        assert row.get(shown.say("latency"), "") == latency(case["latency_s"])
        tflops = case["tflops_per_gpu"]
        assert row.get(shown.say("tflops"), "") == ("" if tflops is None else f"{tflops:.2f}")
    for row, case in zip(rows, document["cases"], strict=True):
        assert row[document["unit"]] == shown.rate(case["median"])
        speedup = fixed(case["speedup"], 2)
        if case["speedup"] is None and case["median"] is not None:
            speedup = "n/a (no valid 1x1)" if shown.language == "en" else "n/a（无有效的 1x1）"
        if case["speedup_interval"]:
            speedup += ", " if shown.language == "en" else "，"
            speedup += shown.interval(case["speedup_interval"])
        memory_mib, first = case["peak_memory_mib"], next(iter(case["published"]), None)
        expected = {
            "trials": f"{case['trials_valid']}/{case['trials_planned']}",
            "interval": shown.interval(case["interval"]),
            "spread": share(case["spread"]),
            "speedup": speedup,
            "efficiency": share(case["efficiency"]),
            "transport": case["transport"] or "-",
            "memory": f"{memory_mib:.0f} (MiB)" if memory_mib else "",
        }
        for key, cell in expected.items():
            assert row.get(shown.say(key), "-") in (cell, cell or "-"), key
        marks = row.get(shown.say("marks"), "")
        assert all(mark["code"] in marks for mark in case["marks"])
        cell = row.get(shown.say("published"), "")
        assert cell.startswith(f"{first['throughput']} (" if first else "")
        assert cell.endswith(share(first["difference"], "+z") if first else "")
        assert bool(cell) == bool(first)


def check_trials(document: Mapping[str, Any], shown: Shown) -> None:
    """Compare each trial's number, state, seconds, log and digest; the canary's come last."""
    watched = document["canary"]
    every = [trial for case in document["cases"] for trial in case["trials"]]
    every += watched["trials"] if watched else []
    for row, trial in zip(shown.rows("trials"), every, strict=True):
        assert row[shown.say("trial")] == str(trial["repeat"])
        assert row[document["unit"]] == shown.rate(trial["throughput"])
        said = row.get(shown.say("reasons"), "")
        assert all(it["code"] in said for it in (*trial["problems"], *trial["marks"]))
        state = trial["state"]
        assert row[shown.say("state")] == (state if shown.language == "en" else page.WORDS[state])
    logged = [trial for trial in every if trial["log"]]
    for row, trial in zip(shown.rows("evidence"), logged, strict=True):
        seconds = "" if trial["measured_s"] is None else f"{trial['measured_s']:.1f}"
        assert row.get(shown.say("measured_s"), "") == seconds
        assert row["sha256"] == trial["sha256"][:12]
        assert row[shown.say("log")] == trial["log"]
        assert row[shown.say("trial")] == str(trial["repeat"])
    if watched:
        assert f"{watched['bound']:.1%}" in shown.text


def check_published(document: Mapping[str, Any], shown: Shown) -> None:
    every = [(case, one) for case in document["cases"] for one in case["published"]]
    for row, (case, one) in zip(shown.rows("published"), every, strict=True):
        assert row[shown.say("measured")] == shown.rate(case["median"])
        assert row[shown.say("published")].startswith(f"{one['throughput']} (")
        assert row[shown.say("difference")] == share(one["difference"], "+z")


def check_machines(document: Mapping[str, Any], shown: Shown) -> None:
    """Compare medians over the valid trials and their nodes, and the speed of each node."""
    counting = [
        (case, valid)
        for case in document["cases"]
        if (valid := [trial for trial in case["trials"] if trial["state"] == "valid"])
    ]
    nothing = NOT_OBSERVED[shown.language]
    for key, (name, digits) in MACHINES.items():
        values = [
            [it[name] for trial in valid for it in trial["machines"] if it[name] is not None]
            for _, valid in counting
        ]
        cells = shown.column("machines", key)
        if cells:
            assert cells == [f"{median(it):.{digits}f}" if it else nothing for it in values]
        elif key not in ("others", "load"):
            assert not any(values)
    energies = shown.column("machines", "energy")
    for cell, (case, _) in zip(energies, counting, strict=bool(energies)):
        joules = case["energy_per_sample_j"]
        assert (cell == nothing) == (joules is None)
        assert joules is None or float(cell) == pytest.approx(joules, abs=0.0005)
    speeds = [(row[shown.say("trials")], row[shown.say("speed")]) for row in shown.rows("nodes")]
    assert speeds == [(str(it["trials"]), f"{it['speed']:.3f}") for it in document["node_speeds"]]


def check_logs(document: Mapping[str, Any], shown: Shown) -> None:
    for row, log in zip(shown.rows("lone"), document["logs"], strict=True):
        assert row[document["unit"]] == fixed(log["throughput"], 2)
        assert row[shown.say("mean_rate")] == fixed(log["rate"] and log["rate"]["mean"], 2)
        for head, key in (("ranks", "world_size"), ("batch", "micro_batch_size")):
            assert row[shown.say(head)] == str(log["config"].get(key, "?"))


def check_first_lines(document: Mapping[str, Any], shown: Shown) -> None:
    """Compare the verdict's counts, the best number, and the duration."""
    said = document["verdict"]
    first = re.search("(?:COMPLETE|MARKED|NO RESULT)[:：](.*)", shown.text)
    assert first
    numbers = [int(number) for number in re.findall("[0-9]+", first[1])]
    assert {said["trials_valid"], said["trials"]} <= set(numbers)
    medians = [case for case in document["cases"] if case["median"] is not None]
    if medians:
        assert {said["cases_with_result"], said["cases"]} <= set(numbers)
        best = max(medians, key=lambda case: case["median"])
        sentence = shown.text[: shown.text.index("What" if shown.language == "en" else "内容")]
        assert f"{shown.rate(best['median'])} {document['unit']}" in sentence
        assert not best["interval"] or shown.interval(best["interval"]) in sentence
    if document["ran_s"] is not None:
        hours, minutes = divmod(int(document["ran_s"]) // 60, 60)
        rest = int(document["ran_s"]) % 60
        words = {
            "en": f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s",
            "zh": f"{hours} 小时 {minutes} 分" if hours else f"{minutes} 分 {rest} 秒",
        }
        assert words[shown.language] in shown.text


def show(markdown: str, language: Language, layout: Layout) -> Shown:
    text = html.unescape(re.sub(r"\\(.)", r"\1", markdown))
    return Shown(language, layout, tables_of_markdown(markdown), text)


@pytest.mark.parametrize("language", report.LANGUAGES)
@pytest.mark.parametrize("number", range(len(DRAWN)))
def test_every_number_stands_where_the_pages_say(number: int, language: Language) -> None:
    """Of placements and GPT's names, sweeps and folders; report.html has what report.md has."""
    found = DRAWN[number]()
    markdown = report.markdown(found, language)
    shown = show(markdown, language, found.layout)
    document = json.loads(json.dumps(report.document(found), allow_nan=False))
    check(document, report.html_page(found, language, {}), shown)


@pytest.mark.parametrize("seed", range(8))
def test_every_number_of_a_measured_sweep_stands_where_the_pages_say(
    tmp_path: Path, seed: int
) -> None:
    """Of files that `collect` wrote from logs, some of them damaged, in both languages."""
    recorded = honest.drawn(random.Random(f"numbers {seed}"))
    workload = workloads.find(recorded.workload)
    assert workload is not None
    language = report.LANGUAGES[seed % 2]
    folder = sweeps.collected(Store(tmp_path), recorded, language, strict=seed % 3 == 0).folder
    document = json.loads((folder / report_files.RESULTS).read_text())
    markdown = (folder / f"report{report.suffix(language)}.md").read_text()
    page_text = (folder / report_files.html(language)).read_text()
    check(document, page_text, show(markdown, language, workload.layout))


def test_lines_of_logs_stand_beside_their_text_in_the_page() -> None:
    """With the whole digest of the log."""
    found = next(it for it in map(drawn, range(60)) if it.results and it.results[0].valid)
    trial = found.results[0].valid[0]
    assert trial.log is not None
    source = {trial.path: LogSource("x.log", ((40, "first"), (140, "last")))}
    text = html.unescape(re.sub("<[^>]*>", "", report.html_page(found, "en", source)))
    assert f"{trial.path}, lines in the log: 40, 140, sha256 {trial.log.sha256}" in text
    assert "40: first140: last" in text.replace("\n", "")
    assert "40: first" not in report.markdown(found)


@pytest.mark.parametrize("number", range(len(DRAWN)))
def test_every_number_of_a_case_with_a_result_is_in_the_figures(number: int) -> None:
    """Each trial with its difference from the median, and each median of a series of sizes."""
    found = DRAWN[number]()
    document: Any = json.loads(json.dumps(report.document(found)))
    shown = Shown("en", found.layout, {}, "")
    measured = [case for case in document["cases"] if case["median"] is not None]
    points = [
        f"{it['trial']}: {shown.rate(it['throughput'])} ({share(difference, '+z')})"
        for case in measured
        for it in case["trials"]
        if it["throughput"] is not None
        for difference in [it["throughput"] / case["median"] - 1]
    ]
    assert sorted(titles(found, "trials")) == sorted(points)
    medians = {
        f"{case['case']['placement']}: {shown.rate(case['median'])} {document['unit']}"
        for case in measured
    }
    assert {*titles(found, "scaling")} - {"published"} <= medians


def titles(found: Report, name: str) -> list[str]:
    """Return what is shown of the signs of a figure to those who point at them."""
    text = html.unescape(report.svg_files(found, "en").get(f"figures/{name}.svg", ""))
    return re.findall("<title>(.*?)</title>", text)


@pytest.mark.parametrize("language", report.LANGUAGES)
def test_decimals_of_a_layout_hold_in_pages_and_figures(language: Language) -> None:
    """392.2 never stands beside 392.23 for one number."""
    found = replace(REPORTS["placements"](), layout=Layout(decimals=1), canary=None, lone=())
    text = report.markdown(found, language) + report.html_page(found, language, {})
    text += "".join(report.svg_files(found, language).values())
    assert "802.9 images/s" in text
    assert "802.90" not in text
    assert "11991.90" not in text
