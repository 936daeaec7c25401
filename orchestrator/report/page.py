"""The words that a report's tables, figures and sentences share, in English and Chinese."""
# ruff: noqa: RUF001 - Chinese has punctuation of its own

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
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
    "utilisation": ("utilisation, %", "利用率，%"),
    "others": ("CPUs used by others", "其他进程占用的 CPU 数"),
    "limits": ("limits seen", "出现过的限制"),
    "energy": ("J per sample", "每样本能耗，J"),
}
"""Other heads of columns by key; ``{gpus}`` is what the cases run on."""

MEANINGS: Mapping[str, tuple[str, str]] = {
    "CASE-MISMATCH": ("the log is of another case", "日志与用例不符"),
    "CLOCK-JUMP": ("the clock and a printed rate disagree", "日志的时钟与打印的速率不一致"),
    "CLOCK-STEP": ("the log's clock did not go forward", "日志的时钟没有向前走"),
    "COARSE-CLOCK": ("the log's clock has whole seconds only", "日志的时钟只精确到秒"),
    "CRASHED": ("the program failed behind its last step", "程序在最后一步之后出错"),
    "DUP-STEPS": ("an iteration is there twice", "迭代重复出现"),
    "GAP": ("an iteration in the window was unusually slow", "窗口内有异常慢的迭代"),
    "HEADERLESS": ("the log has no header", "日志没有参数部分"),
    "LOSS-NOT-FINITE": ("the loss is not finite", "损失值不是有限数"),
    "MALFORMED": ("a record cannot be read", "有无法解析的记录"),
    "MIXED-CONFIG": ("the log's header contradicts itself", "日志中的参数自相矛盾"),
    "NO-BATCH": ("the global batch size is not known", "全局批大小未知"),
    "NO-CLOCK": ("the records have no time", "日志的记录没有时间"),
    "NO-HEADER": ("the log's header is missing or not whole", "日志的参数部分缺失或不全"),
    "NO-RESULT": ("the program's own result is missing", "日志缺少程序的最终结果"),
    "NO-STEPS": ("the log has no iterations", "日志没有迭代记录"),
    "NODE-SETS": ("trials ran on different nodes", "各次试验所用节点不同"),
    "NOT-FINITE": ("a number is not finite", "数值不是有限数"),
    "RATE-MISMATCH": ("the clock and the printed rates differ", "吞吐率与日志打印的数值不一致"),
    "SEVERAL-RUNS": ("several runs in one log", "一个日志中有多次运行"),
    "SHORT-RUN": ("the program ended by itself before the promised steps", "程序自行提前结束"),
    "SKIPPED-STEPS": ("iterations are missing", "迭代编号不连续"),
    "TRUNCATED": ("the log is not whole", "日志不完整"),
    "WINDOW": ("the log does not cover the window", "日志未覆盖测量窗口"),
    "ALIEN-PROCESS": ("a process of others ran on the node", "测量期间节点上有其他进程"),
    "BASELINE-DIFFERS": (
        "the 1x1 case was measured under other conditions",
        "与 1x1 用例的测量条件不同",
    ),
    "BESIDE": ("other trials ran beside it", "运行时其他节点上有别的试验"),
    "CODE-CHANGED": ("the program was edited while it was measured", "程序代码在测量期间有改动"),
    "CPU-LOADED": ("others used the node's CPUs", "测量期间节点的 CPU 被其他任务占用"),
    "DRIFT": ("the machines changed during the sweep", "机器状态在测试过程中有变化"),
    "IMPLAUSIBLE": ("more than the hardware can give", "结果高于可能的上限"),
    "LOG-CHANGED": ("the log is not what it was after the run", "日志与运行时的不同"),
    "LOG-COPY": ("the log could not be fetched", "日志未能取回"),
    "MISSING": ("not run, or without a log", "未运行或日志缺失"),
    "NOT-PLACED": (
        "the state of the machines cannot be placed in the window",
        "机器状态无法对应到测量窗口",
    ),
    "OUTLIER": ("far from the other trials", "与其他试验相差很远"),
    "OUTCOME-CHANGED": ("the record is not what it was after the run", "试验记录与运行时的不同"),
    "PROVENANCE": (
        "measured under other conditions than the other trials",
        "与其他试验的测量条件不同",
    ),
    "SAME-EVIDENCE": ("the same log as another trial", "与另一试验的日志相同"),
    "STATE-CHANGED": (
        "the record of the machine is not what it was after the run",
        "机器状态记录与运行时的不同",
    ),
    "THROTTLED": ("a GPU's clocks were held down", "测量期间 GPU 时钟被限制"),
    "UNSETTLED": ("the interval is wider than requested", "达到最多次数后区间仍宽于要求"),
    "SLOW-NODE": ("a node is slower than the others", "有节点比其他节点慢"),
    "WIDE-SPREAD": ("trials differ much", "各次试验相差较大"),
    "CUDA-OOM": ("the GPU's memory was too small", "显存不足"),
    "DEADLINE": ("longer than the time limit", "超过时间上限"),
    "DOCKER-DOWN": ("Docker is not running", "节点的 Docker 未在运行"),
    "DOCKER-HUNG": ("Docker does not answer", "节点的 Docker 没有响应"),
    "DOCKER-RESTARTED": ("Docker was restarted", "节点的 Docker 在运行期间重启"),
    "GPU-DETACHED": ("the container lost its GPUs while it ran", "容器在运行期间失去 GPU"),
    "IB-HCA": ("other adapters were used than declared", "使用的 HCA 与要求不同"),
    "IB-NO-DRIVER": ("no user-space driver of the adapter", "缺少 InfiniBand 用户态驱动"),
    "INTERRUPTED": ("stopped by the user", "被中止"),
    "KILLED": ("ended by a signal", "被外部终止"),
    "LOG-REPLACED": ("the program removed or replaced its log", "日志被程序删除或替换"),
    "LOG-TOO-LARGE": ("the log reached its limit", "日志达到大小上限"),
    "LOST": ("the process that watched it ended", "启动或监督它的进程意外结束"),
    "NET-IFACE": ("the interface has no route", "所用的网络接口无法连通其他节点"),
    "NODE-DOWN": ("the node failed", "Slurm 已将节点判为不可用"),
    "OOM": ("out of memory", "内存不足，被内核终止"),
    "PORT-BUSY": ("the port was taken", "端口被占用"),
    "PREEMPTED": ("a job of higher priority took the nodes", "Slurm 为更高优先级的作业让出节点"),
    "PROGRAM-FAILED": ("the program failed", "程序以错误状态退出"),
    "READ": ("a file cannot be read", "文件无法读取"),
    "REBOOTED": ("the node was restarted", "节点在运行期间重启"),
    "SHM-SMALL": ("shared memory is too small", "共享内存不足"),
    "STALLED": ("nothing was printed for too long", "长时间没有输出"),
    "START": ("a task could not be started", "未能启动"),
    "TRANSPORT": (
        "the network between nodes was not the declared one",
        "未使用所要求的 InfiniBand",
    ),
    "TRANSPORT-UNPROVEN": ("no log proves which network was used", "日志不能证明使用了 InfiniBand"),
    "UNREACHABLE": ("the node did not answer", "节点没有响应"),
}
"""Explanations of the codes of problems and marks, in English and Chinese."""


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
        meaning = self.text(*MEANINGS.get(code, ("", "")))
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
