"""The words that a report's tables, figures and sentences share, in English and Chinese."""
# ruff: noqa: RUF001 - Chinese has punctuation of its own

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Literal, get_args

from orchestrator.model.problem import Problem
from orchestrator.model.report import Report

Language = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = get_args(Language)

WORDS: Mapping[str, str] = {
    **{"GPUs": "GPU", "hostname": "主机名", "system": "操作系统", "kernel": "内核"},
    **{"usable CPUs": "可用 CPU 数", "memory": "内存", "driver": "驱动"},
    **{"valid": "有效", "invalid": "无效", "failed": "失败", "infra-lost": "设施故障"},
    **{"interrupted": "中断", "planned": "未运行", "not-needed": "无需运行"},
    **{"start": "开始", "middle": "中间", "end": "结束"},
    **{"clock": "时钟", "rates": "打印速率", "arithmetic": "速率算术平均"},
    **{"reported": "程序报告", "latency": "延迟"},
    **{"case": "用例", "ranks": "总卡数", "speedup": "加速比", "efficiency": "效率"},
    **{"trials": "试验次数", "spread": "离散度", "transport": "传输方式", "published": "公布值"},
    **{"difference": "差异", "marks": "标记", "precision": "精度", "trial": "试验"},
    **{"state": "状态", "log": "日志", "sha256": "sha256", "measured": "实测值"},
    **{"nodes": "节点", "source": "来源", "node": "节点", "code": "代码"},
    **{"severity": "级别", "seen": "所见", "expected": "应为", "moments": "采样数"},
    **{"steal": "被虚拟机管理程序占用", "load": "负载"},
}
"""Words that English pages have as they are: facts, states, moments, rules and heads of columns."""

HEADS: Mapping[str, tuple[str, str]] = {
    "placement": ("nodes x {gpus}", "节点数 x{gpus}"),
    "batch": ("batch size", "批大小"),
    "interval": ("interval (coverage)", "区间（覆盖率）"),
    "reasons": ("problems and marks", "问题与标记"),
    "memory": ("peak memory", "显存峰值"),
    "tflops": ("TFLOP/s per GPU", "单卡 TFLOP/s"),
    "of_peak": ("of peak", "峰值占比"),
    "measured_s": ("measured for, s", "测量时长，秒"),
    "rule": ("measured by", "测量方式"),
    "mean_rate": ("mean of printed", "打印速率均值"),
    "speed": ("speed over the median node", "相对于中位节点的速度"),
    "fix": ("what to do", "处理办法"),
    "sm_clock": ("SM clock, MHz", "SM 时钟，MHz"),
    "memory_clock": ("memory clock, MHz", "显存时钟，MHz"),
    "power": ("power, W", "功率，W"),
    "temperature": ("temperature, °C", "温度，°C"),
    "utilisation": ("utilization, %", "利用率，%"),
    "others": ("CPUs used by others", "其他进程占用的 CPU 数"),
    "limits": ("limits seen", "出现过的限制"),
    "energy": ("J per sample", "每样本能耗，J"),
}
"""Other heads of columns by key; ``{gpus}`` is what the cases run on."""


def read_own(name: str) -> str:
    """Return the text of a file beside this module; it is as constant as a module."""
    return resources.files("orchestrator.report").joinpath(name).read_text("utf-8")


@cache
def meanings() -> Mapping[str, Sequence[str]]:
    """Return explanations of the codes of problems and marks, in English and Chinese."""
    return tomllib.loads(read_own("codes.toml"))


@dataclass(frozen=True, slots=True)
class Page:
    """One report in one language."""

    report: Report
    language: Language

    def text(self, english: str, chinese: str) -> str:
        return english if self.language == "en" else chinese

    def word(self, word: str) -> str:
        """Return a state, a rule, or the name of a fact in the language of the page."""
        return self.text(word, WORDS.get(word, word))

    def explain(self, code: str) -> str:
        """Return a code, with its meaning in parentheses if the code is known."""
        meaning = self.text(*meanings().get(code, ("", "")))
        return self.text(f"{code} ({meaning})", f"{code}（{meaning}）") if meaning else code

    @property
    def has_gpus(self) -> bool:
        """Return True if any case runs on GPUs, or if there is no case to ask."""
        devices = {result.case.device for result in self.report.results}
        return devices != {"cpu"}

    @property
    def gpus(self) -> str:
        """Return the word for what the cases run on."""
        return self.text("GPUs", " GPU 数") if self.has_gpus else self.text("processes", "进程数")

    def listed(self, parts: Iterable[str]) -> str:
        return self.text(", ", "，").join(parts)

    def with_colons(self, *parts: str) -> str:
        """Join words, each of which explains the one before it."""
        return self.text(": ", "：").join(parts)

    def reasons(self, problems: Iterable[Problem]) -> str:
        """Return problems or marks as they were seen, below their codes."""
        by_code: dict[str, list[str]] = {}
        for problem in problems:
            by_code.setdefault(self.explain(problem.code), []).append(problem.message)
        semicolon = self.text("; ", "；")
        return semicolon.join(
            self.with_colons(code, semicolon.join(seen)) for code, seen in by_code.items()
        )

    def heads(self, *keys: str) -> tuple[str, ...]:
        heads = (HEADS.get(key) or (key, WORDS[key]) for key in keys)
        return tuple(self.text(*head).format(gpus=self.gpus) for head in heads)


def suffix(language: Language) -> str:
    """Return what names of files in a language have before their last ending."""
    return "" if language == "en" else f".{language}"
