"""Texts of reports in English and Chinese that several places share, or that are found by a key."""
# ruff: noqa: RUF001 - Chinese has punctuation of its own

from collections.abc import Mapping
from typing import Literal, get_args

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
}
"""Facts of nodes, states of trials, moments of a sweep and rules, which English pages have as they
are.
"""

_HEADS: Mapping[str, tuple[str, str]] = {
    "case": ("case", "用例"),
    "placement": ("nodes x {gpus}", "节点数 x{gpus}"),
    "batch": ("batch size", "批大小"),
    "ranks": ("ranks", "总卡数"),
    "speedup": ("speedup", "加速比"),
    "efficiency": ("efficiency", "效率"),
    "trials": ("trials", "试验次数"),
    "spread": ("spread", "离散度"),
    "interval": ("interval (coverage)", "区间（覆盖率）"),
    "transport": ("transport", "传输方式"),
    "published": ("published", "公布值"),
    "difference": ("difference", "差异"),
    "marks": ("marks", "标记"),
    "precision": ("precision", "精度"),
    "trial": ("trial", "试验"),
    "state": ("state", "状态"),
    "reasons": ("problems and marks", "问题与标记"),
    "log": ("log", "日志"),
    "sha256": ("sha256", "sha256"),
    "latency": ("latency", "延迟"),
    "memory": ("peak memory", "显存峰值"),
    "tflops": ("TFLOP/s per GPU", "单卡 TFLOP/s"),
    "of_peak": ("of peak", "峰值占比"),
    "measured": ("measured", "实测值"),
    "measured_s": ("measured for, s", "测量时长，秒"),
    "nodes": ("nodes", "节点"),
    "source": ("source", "来源"),
    "rule": ("measured by", "测量方式"),
    "mean_rate": ("mean of printed", "打印速率均值"),
    "node": ("node", "节点"),
    "speed": ("speed over the median node", "相对于中位节点的速度"),
    "code": ("code", "代码"),
    "severity": ("severity", "级别"),
    "seen": ("seen", "所见"),
    "expected": ("expected", "应为"),
    "fix": ("what to do", "处理办法"),
    "moments": ("moments", "采样数"),
    "sm_clock": ("SM clock, MHz", "SM 时钟，MHz"),
    "memory_clock": ("memory clock, MHz", "显存时钟，MHz"),
    "power": ("power, W", "功率，W"),
    "temperature": ("temperature, °C", "温度，°C"),
    "utilisation": ("utilisation, %", "利用率，%"),
    "others": ("CPUs used by others", "其他进程占用的 CPU 数"),
    "steal": ("steal", "被虚拟机管理程序占用"),
    "load": ("load", "负载"),
    "limits": ("limits seen", "出现过的限制"),
    "energy": ("J per sample", "每样本能耗，J"),
}

_FIGURES: Mapping[str, tuple[str, str]] = {
    "scaling": ("Scaling: {unit} by number of {gpus}", "扩展性：{unit} 随{gpus}的变化"),
    "scaling.summary": (
        "{series}: from {least} to {most} {gpus}; with {most} {gpus} {share} of the ideal.",
        "{series}：{gpus}从 {least} 到 {most}；为 {most} 时达到理想值的 {share}。",
    ),
    "gpus": ("{gpus}", "{gpus}"),
    "ideal": ("ideal: the smallest case times {gpus}", "理想：最小用例按{gpus}放大"),
    "interval": ("interval of the median", "中位数的区间"),
    "published": ("published", "公布值"),
    "trials": (
        "All trials, by their difference from the median of their case",
        "全部试验与所属用例中位数的差异",
    ),
    "trials.summary": (
        "{cases} cases with a result; the widest spread of trials that count is {spread}, in"
        " {case}.",
        "{cases} 个有结果的用例；有效试验的最大离散度为 {spread}，出现在 {case}。",
    ),
    "trials.single": (
        "{cases} cases with a result, each of a single trial.",
        "{cases} 个有结果的用例，各只有一次试验。",
    ),
    "from_median": ("difference from the median", "与中位数的差异"),
    "counts_alone": ("counts", "计入"),
    "marked": ("counts, with a mark", "计入但有标记"),
    "not_counted": ("does not count", "不计入"),
    "iterations": (
        "Speed over iterations, as the logs print it (100% is the median of the case)",
        "日志打印的速率随迭代的变化（用例中位数为 100%）",
    ),
    "iterations.summary": (
        "A panel for each of {cases} cases, all with the same axes, and a line for each trial; the"
        " shaded part is the window that is measured, in which rates lie between {low} and {high}.",
        "{cases} 个用例各有一幅小图，坐标轴相同，每次试验一条线；阴影部分为测量窗口，"
        "窗口内的速率介于 {low} 与 {high} 之间。",
    ),
    "trial_counts": ("trial that counts", "计入的试验"),
    "trial_out": ("trial that does not count", "不计入的试验"),
    "window": ("window that is measured", "测量窗口"),
    "trial": ("trial {number}", "试验 {number}"),
    "throttling": ("When clocks were held down", "时钟被限制的时段"),
    "throttling.summary": (
        "Trials and nodes whose clocks heat or brake limits held down: {bars}; drawn: {drawn}.",
        "时钟因过热或功率制动而被限制的试验与节点共 {bars} 个，画出 {drawn} 个。",
    ),
    "throttling.counted": ("heat or brakes", "过热或功率制动"),
    "held_down": ("clocks held down", "时钟被限制"),
}

TEXTS: Mapping[str, tuple[str, str]] = {
    **{f"head.{key}": pair for key, pair in _HEADS.items()},
    **{f"figure.{key}": pair for key, pair in _FIGURES.items()},
    "comma": (", ", "，"),
    "interval": (
        "{low:.2f} to {high:.2f} ({coverage:.2%})",
        "{low:.2f} 至 {high:.2f}（{coverage:.2%}）",
    ),
    "batch": ("batch size {batch}", "批大小 {batch}"),
    "device": ("on {device}", "设备 {device}"),
    "machines.how": (
        "Medians over the valid trials and their nodes, within the measured window.",
        "取有效试验及其节点在测量窗口内各采样值的中位数。",
    ),
    "machines.clocks": ("Clocks, power and limits", "时钟、功率与限制"),
    "machines.processors": ("Processors", "处理器"),
    "machines.unplaced": (
        " Telemetry not placed in the window, so of the whole run: trials {count}.",
        "有 {count} 次试验的机器状态无法对应到测量窗口，取自整个运行过程。",
    ),
    "limits.none": ("none seen", "未出现"),
    "not_observed": ("not observed", "未观测"),
}


def suffix(language: Language) -> str:
    """Return what names of files in a language have before their last ending."""
    return "" if language == "en" else f".{language}"


def text(language: Language, key: str, **values: str | int | float) -> str:
    """Return the text of a key with these values in it.

    Raises:
        KeyError: there is no such key.
    """
    return TEXTS[key][LANGUAGES.index(language)].format(**values)
