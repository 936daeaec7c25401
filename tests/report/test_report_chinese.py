"""report.md in Chinese: every heading, head, sentence and warning; data stays as it was said."""
# ruff: noqa: RUF001 - Chinese has punctuation of its own

import ast
import re
import string
from dataclasses import replace
from pathlib import Path
from typing import Literal, get_args, get_type_hints

import pytest

from orchestrator import nodeset, report
from orchestrator.model.problem import Problem
from orchestrator.model.report import Layout, LoneLog, Report
from orchestrator.model.result import NodeSpeed
from orchestrator.report import as_markdown, page
from tests.reported import (
    LOG,
    PUBLISHED,
    SEED_AMP,
    folder,
    logged,
    results,
    section,
    sweep,
    tables,
    unrun,
)

CHINESE = re.compile("[\u4e00-\u9fff]")
# Names and numbers that are the same in both languages.
SAME = {"sha256", "GPUs"}
# Words that a Chinese report uses as they are: the documents' columns, units, names of things.
NAMES = {
    *("images/s", "sha256", "ms", "n/a", "x"),
    *("AMP", "BS", "GPU", "GPU0", "X", "TFLOP/s", "Tensor", "Core", "SHARED-MACHINE", "UNLOCKED"),
    *("INCOMPLETE", "cuda", "amp", "dlperf-orch", "DLPerf", "Welch"),
}


def everything() -> Report:
    """A report that has every section, warning and reason."""
    one, two = results({"1x1": (800.0, None, None, 802.0), "1x4": (4000.0,)})
    gap = Problem("GAP", "line 90: the median is 0.4 s")
    marked = replace(one.trials[0], marks=(gap,))
    trials = (marked, one.trials[1], unrun(one.trials[2]), one.trials[3])
    lone = LoneLog("b.txt", LOG, None, (Problem("WINDOW", "why"),))
    return sweep(
        (replace(one, trials=trials), two),
        shared_machine=True,
        image_digest="",
        lone=(lone,),
        published={two.case: (PUBLISHED,)},
        topologies={"vs001": "        GPU0\nGPU0     X"},
        node_speeds=(NodeSpeed("vs001", 4, 1.0), NodeSpeed("vs002", 4, 1.0)),
    )


def observed(found: Report) -> set[str]:
    """What others said and what things are called: messages, files, nodes, publications."""
    trials = [trial for result in found.results for trial in result.trials]
    said = [problem for trial in trials for problem in (*trial.problems, *trial.marks)]
    said += [mark for result in found.results for mark in result.marks]
    said += [problem for lone in found.lone for problem in lone.problems]
    known = [result for results in found.published.values() for result in results]
    return {
        *(found.title, found.source),
        *(problem.message for problem in said),
        *(trial.trial for trial in trials),
        *(trial.path for trial in trials if trial.log),
        *(trial.log.sha256[:12] for trial in trials if trial.log),
        *(lone_log.path for lone_log in found.lone),
        *(
            word
            for result in known
            for word in (result.framework, result.source, result.precision, result.hardware)
        ),
        *(found.source, found.workload, found.experiment, found.image, found.cluster),
        *(nodeset.fold(list(found.environment)), found.image_digest),
        *found.environment,
        *(value for facts in found.environment.values() for value in facts.values()),
    }


def test_every_head_is_there_in_both_languages() -> None:
    """With the same values in it, and Chinese wherever there are words."""
    words = {word: (word, chinese) for word, chinese in page.WORDS.items()}
    for key, (english, chinese) in (*page.HEADS.items(), *words.items()):
        fields = [
            {field for _, field, _, _ in string.Formatter().parse(text) if field}
            for text in (english, chinese)
        ]
        assert fields[0] == fields[1], key
        assert english, key
        assert key in SAME or CHINESE.search(chinese), key
        assert not CHINESE.search(english), key


def test_every_text_of_a_module_is_there_in_both_languages() -> None:
    """Chinese has Chinese in it, and English has none."""
    calls = [
        (f"{path.name}:{node.lineno}", *map(ast.unparse, node.args))
        for path in Path(report.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and len(node.args) == 2
        if ast.unparse(node.func) in ("text", "page.text")
        if re.search("[a-z]{2}", ast.unparse(node.args[0]))
    ]
    assert len(calls) > 60
    for place, english, chinese in calls:
        assert CHINESE.search(chinese), place
        assert not CHINESE.search(english), place


def test_headings_are_chinese() -> None:
    """All of them but the title, which is the program's own."""
    text = report.markdown(everything(), "zh")
    title, *headings = [line for line in text.splitlines() if line.startswith("#")]
    assert title == "# ResNet-50 v1.5"
    assert headings == [
        *("## 读者须知", "## 用例一览", "## 日志", "## 图", "## 已公布的结果", "## 各节点比较"),
        *("## 全部试验", "## 各次试验的证据", "## 测试环境", "## 测试说明"),
    ]


def test_warnings_are_chinese_and_keep_their_codes() -> None:
    """The same three warnings, at the same place."""
    said = [line for line in report.markdown(everything(), "zh").splitlines() if line[:2] == "> "]
    assert [line.partition("：")[0] for line in said] == [
        *("> **INCOMPLETE", "> **SHARED-MACHINE", "> **UNLOCKED"),
    ]
    assert said[2] == "> **UNLOCKED：镜像没有已知的摘要。**"
    assert "6 个试验和单独的日志中有 3 个计入结果" in said[0]


def test_heads_and_states_are_chinese() -> None:
    """The unit alone stays as the program prints it."""
    text = report.markdown(everything(), "zh")
    (glance,) = tables(section(text, "用例一览"))
    assert glance[0] == [
        *("用例", "images/s", "区间（覆盖率）", "离散度", "加速比", "效率", "试验次数"),
        *("标记", "公布值"),
    ]
    assert glance[1][2:4] == ["800.00 至 802.00（50.00%）", "0.2%"]
    assert glance[1][6] == "2/5"
    (every,) = tables(section(text, "全部试验"))
    assert every[0] == ["用例", "试验", "images/s", "状态", "问题与标记"]
    assert [row[3] for row in every[1:]] == ["有效", "失败", "未运行", "有效", "有效"]


def test_method_is_chinese() -> None:
    """Every line of it, with the same numbers."""
    found = everything()
    lines = section(report.markdown(found, "zh"), "测试说明").strip().splitlines()
    assert all(CHINESE.search(line) and line.endswith("。") for line in lines)
    assert len(lines) == len(
        section(report.markdown(found), "How it was measured").strip().splitlines()
    )
    assert "全局批大小 × 100 ÷ 日志中第 25 次与第 125 次迭代两行之间的时间" in lines[1]


def test_reasons_are_said_in_their_own_words() -> None:
    """Beside a code stands what it means; what rules and programs said is not translated."""
    text = report.markdown(everything(), "zh")
    assert "PROGRAM-FAILED（程序以错误状态退出）：node vs001, node" in section(text, "全部试验")
    assert "| WINDOW（日志未覆盖测量窗口）：why |" in section(text, "日志")


def test_a_code_of_another_version_stands_alone() -> None:
    """Outcomes on disk may hold codes that are not known any more."""
    (one,) = results({"1x1": (800.0,)})
    strange = replace(one.trials[0], marks=(Problem("WAS-ONCE", "seen"),))
    text = report.markdown(sweep((replace(one, trials=(strange,)),)), "zh")
    assert "| WAS-ONCE：seen |" in section(text, "全部试验")


@pytest.mark.parametrize("kind", get_args(get_type_hints(Layout)["kind"]))
def test_no_english_is_left_but_names(kind: Literal["placements", "groups"]) -> None:
    """Without codes that are explained and without what was seen, every word is Chinese."""
    found = everything()
    flops = {result.case: 1e12 for result in found.results}
    layout = replace(found.layout, kind=kind)
    text = report.markdown(replace(found, layout=layout, step_flops=flops, peak_tflops=flops), "zh")
    for seen in sorted(observed(found), key=len, reverse=True):
        text = text.replace(as_markdown.escaped(seen), "")
    text = re.sub("[A-Z][A-Z0-9-]+（[^（）]*[\u4e00-\u9fff][^（）]*）", "", text)
    text = re.sub("`[^`\n]+`", "", text)
    text = re.sub(r"\(figures/[a-z0-9-]+\.zh\.svg\)", "", text)
    assert set(re.findall(r"(?<!\w)[A-Za-z][\w/-]*", text, re.ASCII)) - NAMES == set()


def test_environment_is_chinese() -> None:
    """Names of facts; facts themselves are the nodes'."""
    facts = {"hostname": "VS001", "GPUs": "V100 x 8", "CPU": "Xeon", "usable CPUs": "48"}
    text = report.markdown(sweep((), environment={"vs001": facts}, topologies={"vs001": "X"}), "zh")
    said = section(text, "测试环境").strip().splitlines()
    assert said == [
        *("|  | vs001 |", "| --- | --- |", "| 主机名 | VS001 |", "| GPU | V100 x 8 |"),
        *("| CPU | Xeon |", "| 可用 CPU 数 | 48 |", "", "各项检查均未发现问题。", ""),
        *("`nvidia-smi topo -m`（节点 vs001）：", "", "```", "X", "```"),
    ]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"rule": "rates"}, "程序在第 25 至第 125 次迭代所打印速率的调和平均值"),
        ({"rule": "arithmetic"}, "程序在第 25 至第 125 次迭代所打印速率的算术平均值"),
        ({"rule": "reported"}, "程序结束时自己报告的数值"),
        ({"rule": "latency"}, "平均延迟取程序在第 25 至第 125 步所打印的各行"),
        ({"rule": None}, "每份日志的吞吐率由日志自身的形式决定"),
    ],
)
def test_rules_are_chinese(fields: dict[str, object], said: str) -> None:
    """Each in one sentence."""
    assert said in report.markdown(sweep(results(SEED_AMP), **fields), "zh")


def test_named_cases_are_chinese() -> None:
    """GPT's columns have heads in Chinese."""
    (one,) = results({"1x1": (4.92,)}, params=(("group", "DP"),))
    trials = tuple(logged(trial, latency_s=0.4, memory_mib=11066) for trial in one.trials)
    found = sweep((replace(one, trials=trials),), layout=Layout(kind="groups"))
    found = replace(
        found,
        names={one.case: "DP_1"},
        step_flops={one.case: 1e12},
        peak_tflops={one.case: 125.0},
    )
    glance, steps = tables(section(report.markdown(found, "zh"), "用例一览"))
    assert "显存峰值" in glance[0]
    assert steps[0] == ["用例", "节点数 x GPU 数", "延迟", "单卡 TFLOP/s", "峰值占比"]


def test_folder_without_baseline_is_chinese() -> None:
    """A speedup that is missing says why; logs of no case have their table."""
    bare = replace(LOG, config={})
    found = folder(LoneLog("b.txt", bare, 6098.37, ()), found=results({"1x4": (3137.44,)}))
    text = report.markdown(found, "zh")
    assert "n/a（无有效的 1x1）" in text
    (logs,) = tables(section(text, "日志"))
    assert logs[0] == [
        *("日志", "总卡数", "批大小", "精度", "images/s", "打印速率均值", "测量方式"),
    ]
