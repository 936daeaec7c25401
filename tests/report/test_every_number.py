"""Every number of results.json stands where the page says, in both formats and languages.

The rows that are expected are made from results.json alone, with rounding rules of this file; only
words, such as the head of a column, are those of the program.
"""
# ruff: noqa: RUF001 - Chinese has punctuation of its own

import html
import json
import random
import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from orchestrator import report, workloads
from orchestrator.collecting import report_files
from orchestrator.model.experiment import Method, Repeats
from orchestrator.model.log import Moment
from orchestrator.model.report import Layout, LogSource, Report
from orchestrator.model.result import NOT_NEEDED, Result
from orchestrator.model.telemetry import Energy
from orchestrator.report import Language, page
from orchestrator.state.store import Store
from tests.report.test_one_source import drawn
from tests.reported import sweep
from tests.verifying import honest, sweeps

Row = Mapping[str, str]
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


@dataclass(frozen=True)
class Shown:
    """The tables of a page by the title of their section, and all of its text."""

    language: Language
    layout: Layout
    tables: Mapping[str, Sequence[Sequence[Sequence[str]]]]
    text: str

    def say(self, key: str) -> str:
        """The head of a column."""
        own = page.HEADS.get(key) or (key, page.WORDS[key])
        return own[self.language == "zh"]

    def rows(self, key: str) -> list[Row]:
        """The rows of every table of a section by the heads of their columns."""
        found: list[Row] = []
        for head, *rows in self.tables.get(SECTIONS[key][self.language == "zh"], ()):
            found += [dict(zip(head, row, strict=True)) for row in rows]
        return found

    def column(self, section: str, head: str) -> list[str]:
        """The cells below a head, empty where a table lacks the column."""
        return [row.get(self.say(head), "") for row in self.rows(section)]

    def rate(self, value: float | None) -> str:
        """A throughput, as the layout of its documents prints it."""
        text = fixed(value, self.layout.decimals)
        if self.layout.kind == "groups" and "." in text:
            return text.rstrip("0").rstrip(".")
        return text

    def interval(self, found: Mapping[str, float] | None) -> str:
        """An interval with its coverage."""
        if found is None:
            return "n/a"
        low, high, coverage = f"{found['low']:.2f}", f"{found['high']:.2f}", found["coverage"]
        if self.language == "zh":
            return f"{low} 至 {high}（{coverage:.2%}）"
        return f"{low} to {high} ({coverage:.2%})"


def fixed(value: float | None, decimals: int) -> str:
    """A number with so many decimals."""
    return "n/a" if value is None else f"{value:.{decimals}f}"


def share(value: float | None, sign: str = "") -> str:
    """A share in percent."""
    return "n/a" if value is None else format(value, f"{sign}.1%")


def of_markdown(text: str, language: Language, layout: Layout) -> Shown:
    """report.md, without escapes."""
    found: dict[str, list[list[list[str]]]] = {}
    for part in text.split("\n## ")[1:]:
        title, _, body = part.partition("\n")
        for block in body.strip("\n").split("\n\n"):
            if block.startswith("| "):
                first, _, *rows = block.splitlines()
                cells = [line[2:-2].split(" | ") for line in (first, *rows)]
                table = [[re.sub(r"\\(.)", r"\1", it).strip() for it in row] for row in cells]
                found.setdefault(title, []).append(table)
    return Shown(language, layout, found, html.unescape(re.sub(r"\\(.)", r"\1", text)))


def of_html(page: str, language: Language, layout: Layout) -> Shown:
    """report.html."""
    found: dict[str, list[list[list[str]]]] = {}
    for part in page.split('<section><h2 id="')[1:]:
        title = html.unescape(part.partition(">")[2].partition("</h2>")[0])
        for block in re.findall("<table>.*?</table>", part, re.DOTALL):
            rows = ET.fromstring(block).iter("tr")
            table = [["".join(cell.itertext()).strip() for cell in row] for row in rows]
            found.setdefault(title, []).append(table)
    return Shown(language, layout, found, html.unescape(re.sub("<[^>]*>", "", page)))


def check(document: Mapping[str, Any], shown: Shown) -> None:
    """Compare every section of a page with results.json."""
    glance(document, shown)
    trials(document, shown)
    published(document, shown)
    machines(document, shown)
    lone(document, shown)
    first_lines(document, shown)


def glance(document: Mapping[str, Any], shown: Shown) -> None:
    """The row of each case: all that its number is worth."""
    rows = [row for row in shown.rows("glance") if document["unit"] in row]
    assert len(rows) == len(document["cases"])
    others = [row for row in shown.rows("glance") if document["unit"] not in row]
    for row, case in zip(others, document["cases"], strict=bool(others)):
        assert row.get(shown.say("latency"), "") == latency(case["latency_s"])
        tflops = case["tflops_per_gpu"]
        assert row.get(shown.say("tflops"), "") == ("" if tflops is None else f"{tflops:.2f}")
    for row, case in zip(rows, document["cases"], strict=True):
        is_measured = case["median"] is not None
        assert row[document["unit"]] == shown.rate(case["median"])
        counts = f"{case['trials_valid']}/{case['trials_planned']}"
        assert row[shown.say("trials")] == counts
        speedup = fixed(case["speedup"], 2)
        if case["speedup"] is None and is_measured:
            speedup = "n/a (no valid 1x1)" if shown.language == "en" else "n/a（无有效的 1x1）"
        if case["speedup_interval"]:
            speedup += (", " if shown.language == "en" else "，") + shown.interval(
                case["speedup_interval"]
            )
        expected = {
            "interval": shown.interval(case["interval"]),
            "spread": share(case["spread"]),
            "speedup": speedup,
            "efficiency": share(case["efficiency"]),
            "transport": case["transport"] or "-",
            "memory": f"{case['peak_memory_mib']:.0f} (MiB)" if case["peak_memory_mib"] else "",
        }
        for key, cell in expected.items():
            assert row.get(shown.say(key), "-") in (cell, cell or "-"), key
        marks = row.get(shown.say("marks"), "")
        assert all(mark["code"] in marks for mark in case["marks"])
        first = next(iter(case["published"]), None)
        cell = row.get(shown.say("published"), "")
        if first is not None:
            assert cell.startswith(f"{first['throughput']} (")
            assert cell.endswith(share(first["difference"], "+z"))
        else:
            assert cell == ""


def latency(seconds: float | None) -> str:
    """Milliseconds without zeros at their end, empty where there are none."""
    if seconds is None:
        return ""
    return f"{f'{seconds * 1000:.3f}'.rstrip('0').rstrip('.')} (ms)"


def trials(document: Mapping[str, Any], shown: Shown) -> None:
    """Every trial: its number, state, seconds, nodes, log and digest; the canary's at the end."""
    watched = document["canary"]
    every = [trial for case in document["cases"] for trial in case["trials"]]
    every += watched["trials"] if watched else []
    rows = shown.rows("trials")
    assert len(rows) == len(every)
    for row, trial in zip(rows, every, strict=True):
        assert row[shown.say("trial")] == str(trial["repeat"])
        assert row[document["unit"]] == shown.rate(trial["throughput"])
        said = row.get(shown.say("reasons"), "")
        assert all(it["code"] in said for it in (*trial["problems"], *trial["marks"]))
        state = trial["state"]
        state = state if shown.language == "en" else page.WORDS[state]
        assert row[shown.say("state")] == state
    logged = [trial for trial in every if trial["log"]]
    for row, trial in zip(shown.rows("evidence"), logged, strict=True):
        seconds = "" if trial["measured_s"] is None else f"{trial['measured_s']:.1f}"
        assert row.get(shown.say("measured_s"), "") == seconds
        assert row["sha256"] == trial["sha256"][:12]
        assert row[shown.say("log")] == trial["log"]
        assert row[shown.say("trial")] == str(trial["repeat"])
    if watched:
        assert f"{watched['bound']:.1%}" in shown.text


def published(document: Mapping[str, Any], shown: Shown) -> None:
    """Every published result with what was measured beside it."""
    every = [(case, one) for case in document["cases"] for one in case["published"]]
    rows = shown.rows("published")
    assert len(rows) == len(every)
    for row, (case, one) in zip(rows, every, strict=True):
        assert row[shown.say("measured")] == shown.rate(case["median"])
        assert row[shown.say("published")].startswith(f"{one['throughput']} (")
        assert row[shown.say("difference")] == share(one["difference"], "+z")


def machines(document: Mapping[str, Any], shown: Shown) -> None:
    """Medians over the valid trials and their nodes, and the speed of each node."""
    valid = {
        number: [trial for trial in case["trials"] if trial["state"] == "valid"]
        for number, case in enumerate(document["cases"])
    }
    counting = [number for number, trials in valid.items() if trials]
    decimals = {
        **{"sm_clock": ("sm_mhz", 0), "memory_clock": ("memory_mhz", 0), "power": ("power_w", 0)},
        **{"temperature": ("temperature_c", 0), "utilisation": ("utilisation_pct", 0)},
        **{"others": ("others_cpus", 1), "load": ("load", 1)},
    }
    for key, (name, digits) in decimals.items():
        cells = shown.column("machines", key)
        cells = [cell for cell in cells if cell]
        values = [
            [
                it[name]
                for trial in valid[number]
                for it in trial["machines"]
                if it[name] is not None
            ]
            for number in counting
        ]
        if cells:
            nothing = NOT_OBSERVED[shown.language]
            assert cells == [f"{median(it):.{digits}f}" if it else nothing for it in values]
        elif key not in ("others", "load"):
            assert not any(values)
    energies = [it for it in shown.column("machines", "energy") if it]
    for cell, number in zip(energies, counting, strict=bool(energies)):
        joules = document["cases"][number]["energy_per_sample_j"]
        if joules is None:
            assert cell == NOT_OBSERVED[shown.language]
        else:
            assert float(cell) == pytest.approx(joules, abs=0.0005)
    rows = shown.rows("nodes")
    speeds = [(row[shown.say("trials")], row[shown.say("speed")]) for row in rows]
    assert speeds == [(str(it["trials"]), f"{it['speed']:.3f}") for it in document["node_speeds"]]


def lone(document: Mapping[str, Any], shown: Shown) -> None:
    """Logs that belong to no case."""
    rows = shown.rows("lone")
    assert len(rows) == len(document["logs"])
    for row, log in zip(rows, document["logs"], strict=True):
        assert row[document["unit"]] == fixed(log["throughput"], 2)
        assert row[shown.say("mean_rate")] == fixed(log["rate"] and log["rate"]["mean"], 2)
        for head, key in (("ranks", "world_size"), ("batch", "micro_batch_size")):
            assert row[shown.say(head)] == str(log["config"].get(key, "?"))


def first_lines(document: Mapping[str, Any], shown: Shown) -> None:
    """The verdict's counts and the best number."""
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
        if best["interval"]:
            assert shown.interval(best["interval"]) in sentence
    if document["ran_s"] is not None:
        hours, minutes = divmod(int(document["ran_s"]) // 60, 60)
        rest = int(document["ran_s"]) % 60
        words = {
            "en": f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s",
            "zh": f"{hours} 小时 {minutes} 分" if hours else f"{minutes} 分 {rest} 秒",
        }
        assert words[shown.language] in shown.text


def varied(seed: int) -> Report:
    """Any report with more of what happens: seconds, joules, adaptive repeats, trials that rest."""
    draw = random.Random(f"varied {seed}")
    found = drawn(seed)
    results = tuple(_varied(draw, one) for one in found.results)
    watched = found.canary and replace(found.canary, trials=results[0].trials[:2])
    until = Repeats(min=3, max=8, until_interval="5%")
    methods = [None, found.method, Method(repeats=until, iterations=151, pack="disjoint")]
    return replace(
        found,
        results=results,
        canary=watched,
        method=draw.choice(methods),
        ran_s=draw.choice([None, draw.uniform(1, 3000), draw.uniform(3600, 90_000)]),
    )


def _varied(draw: random.Random, found: Result) -> Result:
    trials = tuple(
        replace(
            trial,
            log=trial.log
            and replace(
                trial.log,
                origin_ns=draw.choice([None, 1]),
                end=Moment(60, int(draw.uniform(5e8, 9e11)), 80),
            ),
            energy=draw.choice([None, Energy(9000.0, draw.uniform(0.01, 9), "power")]),
            nodes=draw.choice([(), ("vs001", "vs002")]),
            state=draw.choice(["failed", "invalid", "infra-lost", "interrupted", NOT_NEEDED])
            if trial.state != "valid"
            else "valid",
        )
        for trial in found.trials
    )
    return replace(found, trials=trials)


@pytest.mark.parametrize("language", report.LANGUAGES)
@pytest.mark.parametrize("seed", range(60))
def test_every_number_stands_where_the_page_says(seed: int, language: Language) -> None:
    """Of drawn reports: placements and GPT's names, sweeps and folders."""
    found = varied(seed)
    document = json.loads(json.dumps(report.document(found)))
    check(document, of_markdown(report.markdown(found, language), language, found.layout))
    check(document, of_html(report.html_page(found, language, {}), language, found.layout))


@pytest.mark.parametrize("seed", range(8))
def test_every_number_of_a_measured_sweep_stands_where_the_page_says(
    tmp_path: Path, seed: int
) -> None:
    """Of files that `collect` wrote from logs, some of them damaged, in both languages."""
    recorded = honest.drawn(random.Random(f"numbers {seed}"))
    workload = workloads.find(recorded.workload)
    assert workload is not None
    language = report.LANGUAGES[seed % 2]
    folder = sweeps.collected(Store(tmp_path), recorded, language, strict=seed % 3 == 0).folder
    document = json.loads((folder / report_files.RESULTS).read_text())
    text = (folder / f"report{report.suffix(language)}.md").read_text()
    page = (folder / report_files.html(language)).read_text()
    check(document, of_markdown(text, language, workload.layout))
    check(document, of_html(page, language, workload.layout))


def test_lines_of_logs_stand_beside_their_text() -> None:
    """In report.html, with the whole digest of the log."""
    found = next(it for it in map(varied, range(60)) if it.results and it.results[0].valid)
    trial = found.results[0].valid[0]
    assert trial.log is not None
    source = {trial.path: LogSource("x.log", ((40, "first"), (140, "last")))}
    text = of_html(report.html_page(found, "en", source), "en", found.layout).text
    assert f"{trial.path}, lines in the log: 40, 140, sha256 {trial.log.sha256}" in text
    assert "40: first140: last" in text.replace("\n", "")
    assert "40: first" not in report.markdown(sweep(found.results))


@pytest.mark.parametrize("seed", range(30))
def test_every_number_of_a_case_with_a_result_is_in_the_figures(seed: int) -> None:
    """Each trial with its difference from the median, and each median of a series of sizes."""
    found = varied(seed)
    document: Any = json.loads(json.dumps(report.document(found)))
    shown = Shown("en", found.layout, {}, "")
    figures = {
        name.removeprefix("figures/"): html.unescape(text)
        for name, text in report.svg_files(found, "en").items()
    }
    points = [
        f"{it['trial']}: {shown.rate(it['throughput'])} ({share(difference, '+z')})"
        for case in document["cases"]
        if case["median"] is not None
        for it in case["trials"]
        if it["throughput"] is not None
        for difference in [it["throughput"] / case["median"] - 1]
    ]
    titles = re.findall("<title>(.*?)</title>", figures.get("trials.svg", ""))
    assert sorted(titles) == sorted(points)
    medians = {
        f"{case['case']['placement']}: {shown.rate(case['median'])} {document['unit']}"
        for case in document["cases"]
        if case["median"] is not None
    }
    titles = re.findall("<title>(.*?)</title>", figures.get("scaling.svg", ""))
    assert {*titles} - {"published"} <= medians
