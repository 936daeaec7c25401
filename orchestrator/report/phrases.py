"""Texts of reports in English and Chinese, by key."""
# ruff: noqa: RUF001 - Chinese has punctuation of its own

from collections.abc import Mapping
from typing import Literal, get_args

from orchestrator.report import phrases_page

Language = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = get_args(Language)

SHARED_MACHINE = (
    "SHARED-MACHINE: nodes of this cluster are one machine. Speedup and efficiency here show that"
    " the tool works, not how anything scales."
)
UNLOCKED = "UNLOCKED: the image has no known digest."

_HEADINGS: Mapping[str, tuple[str, str]] = {
    "environment": ("Test Environment", "测试环境"),
    "method": ("Test Descriptions", "测试说明"),
    "final": ("Final Result", "最终结果"),
    "glance": ("Cases at a glance", "用例一览"),
    "all": ("All Results", "全部结果"),
    "evidence": ("Evidence of each trial", "各次试验的证据"),
    "cases": ("Test Cases", "测试用例"),
    "logs": ("Test Logs", "测试日志"),
    "results": ("Test Results", "测试结果"),
    "lone": ("Logs", "日志"),
    "machines": ("State of the machines", "机器状态"),
    "canary": ("Canary", "监测用例"),
    "published": ("Published Results", "已公布的结果"),
    "nodes_compared": ("Nodes beside one another", "各节点比较"),
    "marks": ("Marks on what counts", "计入结果但需注意的事项"),
    "not_counted": ("What does not count, and why", "不计入结果的试验及原因"),
}

_HEADS: Mapping[str, tuple[str, str]] = {
    "head.case": ("case", "用例"),
    "head.group": ("group", "组"),
    "head.speedup": ("speedup", "加速比"),
    "head.efficiency": ("efficiency", "效率"),
    "head.trials": ("trials", "试验次数"),
    "head.spread": ("spread", "离散度"),
    "head.interval": ("interval (coverage)", "区间（覆盖率）"),
    "head.transport": ("transport", "传输方式"),
    "head.published": ("published", "公布值"),
    "head.difference": ("difference", "差异"),
    "head.marks": ("marks", "标记"),
    "head.precision": ("precision", "精度"),
    "head.trial": ("trial", "试验"),
    "head.state": ("state", "状态"),
    "head.codes": ("codes", "代码"),
    "head.log": ("log", "日志"),
    "head.sha256": ("sha256", "sha256"),
    "head.latency": ("latency", "延迟"),
    "head.memory": ("memory", "显存"),
    "head.tflops": ("TFLOP/s per GPU", "单卡 TFLOP/s"),
    "head.of_peak": ("of peak", "峰值占比"),
    "head.gpus": ("GPUs", "卡数"),
    "head.measured": ("measured", "实测值"),
    "head.measured_s": ("measured for, s", "测量时长，秒"),
    "head.nodes_used": ("nodes", "节点"),
    "head.source": ("source", "来源"),
    "head.rule": ("measured by", "测量方式"),
    "head.mean_rate": ("mean of printed", "打印速率均值"),
    "head.place": ("measured at", "测量时刻"),
    "head.to_first": ("difference from the first", "与首次的差异"),
    "head.problems": ("problems", "问题"),
    "head.node": ("node", "节点"),
    "head.speed": ("speed", "相对速度"),
    "head.moments": ("moments", "采样数"),
    "head.sm_clock": ("SM clock, MHz", "SM 时钟，MHz"),
    "head.memory_clock": ("memory clock, MHz", "显存时钟，MHz"),
    "head.power": ("power, W", "功率，W"),
    "head.temperature": ("temperature, °C", "温度，°C"),
    "head.utilisation": ("utilisation, %", "利用率，%"),
    "head.others": ("CPUs used by others", "其他进程占用的 CPU 数"),
    "head.steal": ("steal", "被虚拟机管理程序占用"),
    "head.load": ("load", "负载"),
    "head.limits": ("limits seen", "出现过的限制"),
    "head.energy": ("J per sample", "每样本能耗，J"),
}

_FACTS: Mapping[str, tuple[str, str]] = {
    "fact.GPUs": ("GPUs", "GPU"),
    "fact.hostname": ("hostname", "主机名"),
    "fact.system": ("system", "操作系统"),
    "fact.kernel": ("kernel", "内核"),
    "fact.usable CPUs": ("usable CPUs", "可用 CPU 数"),
    "fact.memory": ("memory", "内存"),
    "fact.driver": ("driver", "驱动"),
}

_STATES: Mapping[str, tuple[str, str]] = {
    "place.start": ("start", "开始"),
    "place.middle": ("middle", "中间"),
    "place.end": ("end", "结束"),
    "state.valid": ("valid", "有效"),
    "state.invalid": ("invalid", "无效"),
    "state.failed": ("failed", "失败"),
    "state.infra-lost": ("infra-lost", "设施故障"),
    "state.interrupted": ("interrupted", "中断"),
    "state.planned": ("planned", "未运行"),
    "state.not-needed": ("not-needed", "无需运行"),
}

_RULES: Mapping[str, tuple[str, str]] = {
    "rule.clock": ("clock", "时钟"),
    "rule.rates": ("rates", "打印速率"),
    "rule.arithmetic": ("arithmetic mean", "速率算术平均"),
    "rule.reported": ("reported", "程序报告"),
    "rule.latency": ("latency", "延迟"),
}

_WORDS: Mapping[str, tuple[str, str]] = {
    "counted": ("median of {trials}", "{trials} 次的中位数"),
    "interval": (
        "{low:.2f} to {high:.2f} ({coverage:.2%})",
        "{low:.2f} 至 {high:.2f}（{coverage:.2%}）",
    ),
    "no_baseline": ("n/a (no valid 1x1)", "n/a（无有效的 1x1）"),
    "comma": (", ", "，"),
    "colon": (": ", "："),
    "batch": ("batch size {batch}", "单卡批大小 {batch}"),
    "device": ("on {device}", "设备 {device}"),
    "nodes": (
        "All tests ran on {names} (nodes: {count}):",
        "所有测试在 {count} 个节点（{names}）上进行：",
    ),
    "topology": ("`nvidia-smi topo -m` on {names}:", "节点 {names} 的 `nvidia-smi topo -m`："),
    "unit": (
        "Throughput in {unit}; of each case the median over its valid trials.",
        "吞吐率单位为 {unit}；每个用例取其有效试验的中位数。",
    ),
    "final.how": (
        "The medians in the form of DLPerf's documents, in {unit}.",
        "按 DLPerf 报告的形式列出中位数，单位为 {unit}。",
    ),
    "by_gpus": ("Training throughput ({unit}):", "训练吞吐率（{unit}）如下："),
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
    "speedups": ("Speedup over one GPU:", "多卡加速比如下："),
    "watched": (
        "{case} is measured several times and counts in no median. A difference of more than"
        " {bound:.1%}, the larger of 2 % and the spread of the case's own trials, is marked DRIFT.",
        "用例 {case} 在测试过程中多次测量，不计入中位数。差异超过 {bound:.1%}"
        "（取 2 % 与该用例自身离散度中的较大者）时标记为 DRIFT。",
    ),
    "node_speeds": (
        "By the ratios of trials to their case's median, of cases of one node, else of two, that"
        " ran on several; 1 is the median node.",
        "依据在多个节点上运行过的单节点用例（没有时为双节点用例）中各次试验与该用例中位数之比；"
        "1 为中位节点。",
    ),
}

_WARNINGS: Mapping[str, tuple[str, str]] = {
    "shared_machine": (
        SHARED_MACHINE,
        "SHARED-MACHINE：本集群的多个节点是同一台机器。此处的加速比和效率只说明工具可以工作，"
        "不说明任何扩展能力。",
    ),
    "unlocked": (UNLOCKED, "UNLOCKED：镜像没有已知的摘要。"),
}

_METHOD: Mapping[str, tuple[str, str]] = {
    "method.source": (
        "Workload `{workload}`, measured from {source}.",
        "测试程序 `{workload}`，数据来自 {source}。",
    ),
    "method.repeats": (
        "{repeats} trials of each case, {iterations} iterations asked of the program; {order}.",
        "每个用例进行 {repeats} 次试验，要求程序运行 {iterations} 次迭代；{order}。",
    ),
    "method.until": (
        "{least} to {most} trials of each case: no more once the interval of its median is at most"
        " {until} of the median wide; {iterations} iterations asked of the program; {order}."
        " The probability beside an interval then holds on average over all cases; intervals of"
        " cases that settled early cover less.",
        "每个用例进行 {least} 至 {most} 次试验：中位数的区间宽度不超过中位数的 {until} 时不再继续；"
        "要求程序运行 {iterations} 次迭代；{order}。此时区间旁的概率是对全部用例的平均值；"
        "提前停止的用例，其区间的覆盖率较低。",
    ),
    "order.none": ("trials run repeat by repeat over all cases", "每一轮依次运行全部用例"),
    "order.one-node": (
        "trials of a single node ran side by side, each on its own, the repeats of a case on the"
        " nodes in turn",
        "单节点试验在各自的节点上并行运行，同一用例的各次试验轮流使用各节点",
    ),
    "order.disjoint": (
        "trials ran side by side on nodes of their own, the widest first, the repeats of a case on"
        " the nodes in turn",
        "各试验在各自的节点上并行运行，节点数多的在先，同一用例的各次试验轮流使用各节点",
    ),
    "method.clock": (
        "Throughput of a trial: global batch size x {steps} / the time between the log lines of"
        " iterations {first} and {last}, by the log's own numbers and clock.",
        "单次试验的吞吐率：全局批大小 × {steps} ÷ 日志中第 {first} 次与第 {last} 次迭代两行之间的"
        "时间，迭代编号和时间均取自日志本身。",
    ),
    "method.rates": (
        "Throughput of a trial: the harmonic mean of the rates that the program prints from"
        " iteration {first} to {last}, which is its work over its time.",
        "单次试验的吞吐率：程序在第 {first} 至第 {last} 次迭代所打印速率的调和平均值，"
        "即工作量 ÷ 时间。",
    ),
    "method.arithmetic": (
        "Throughput of a trial: the arithmetic mean of the rates that the program prints from"
        " iteration {first} to {last}.",
        "单次试验的吞吐率：程序在第 {first} 至第 {last} 次迭代所打印速率的算术平均值。",
    ),
    "method.reported": (
        "Throughput of a trial: what the program itself reports at its end.",
        "单次试验的吞吐率：程序结束时自己报告的数值。",
    ),
    "method.latency": (
        "Throughput of a trial: global batch size / the mean latency of a step, over the rows that"
        " the program prints from step {first} to {last}.",
        "单次试验的吞吐率：全局批大小 ÷ 每步的平均延迟；平均延迟取程序在第 {first} 至第 {last} 步"
        "所打印的各行。",
    ),
    "method.by_log": (
        "Throughput of a log: by what the log is, in its own window: by its clock, as global batch"
        " size / its mean latency, or as the program itself reports it at its end.",
        "每份日志的吞吐率由日志自身的形式决定，并取其自身的窗口：按日志的时钟计算，"
        "或为全局批大小 ÷ 平均延迟，或为程序结束时自己报告的数值。",
    ),
    "method.median": (
        "Result: the median over the valid trials, rounded only when printed. The interval is"
        " made of order statistics and covers the true median with the probability given.",
        "结果：有效试验的中位数，仅在打印时舍入。区间由次序统计量构成，以所给的概率覆盖真实的中位数。",
    ),
    "method.latency_memory": (
        "Latency: the median over the valid trials. Memory: the largest use of any GPU that a log"
        " shows.",
        "延迟：有效试验的中位数。显存：日志所显示的各 GPU 的最大占用。",
    ),
    "method.speedup": (
        "Speedup: the median over the median of the 1x1 case that is equal in everything but"
        " placement; efficiency: speedup / world size. Both medians are unrounded, so that the last"
        " digit can differ from a quotient of printed values: 4456.0/149.8 is 29.75, and"
        " 4455.97/149.84 is 29.74.",
        "加速比：该用例的中位数 ÷ 除节点数与卡数外完全相同的 1x1 用例的中位数；"
        "效率：加速比 ÷ 总卡数。两个中位数均未舍入，因此末位可能与用打印值相除的结果不同："
        "4456.0/149.8 为 29.75，而 4455.97/149.84 为 29.74。",
    ),
    "method.speedup_interval": (
        "Interval of a speedup: Welch's for the trials' logarithms, which allows for unequal"
        " spreads, widened to medians and means. It covers at least with the probability given, as"
        " simulated for normal, heavy-tailed and skewed trials.",
        "加速比区间：对试验取对数后按 Welch 方法计算（允许两个用例的离散度不同），并扩展到同时包含"
        "中位数与均值之差。由正态、重尾和偏态试验的模拟可知，其覆盖率不低于所给概率。",
    ),
    "method.tflops": (
        "TFLOP/s per GPU: counted floating-point operations of an optimizer step / (its time x"
        " GPUs).",
        "单卡 TFLOP/s：每个优化步的浮点运算次数 ÷（每步时间 × 卡数）。",
    ),
    "method.peak": (
        "Of peak: of the TFLOP/s that the vendor of this GPU model publishes, without sparsity:"
        " {peaks}.",
        "峰值占比：相对于厂商公布的该型号 GPU 峰值 TFLOP/s（非稀疏）：{peaks}。",
    ),
    "method.published_unknown": (
        "Published: what others measured on the GPUs that are named, by the source that is named."
        " The GPUs that wrote these logs are not known. Difference: measured / published - 1.",
        "公布值：他人在所注明的 GPU 上测得的结果，来源见表；这些日志所用的 GPU 型号未知。"
        "差异：实测值 ÷ 公布值 - 1。",
    ),
    "method.published_same": (
        "Published: what others measured on GPUs of the same kind, by the source that is named."
        " Difference: measured / published - 1.",
        "公布值：他人在同类 GPU 上测得的结果，来源见表。差异：实测值 ÷ 公布值 - 1。",
    ),
    "method.image": (
        "Image `{image}`, {digest}; cluster `{cluster}`.",
        "镜像 `{image}`，{digest}；集群 `{cluster}`。",
    ),
    "method.env": (
        "Environment added by playbook and inventory: {env}.",
        "playbook 和 inventory 添加的环境变量：{env}。",
    ),
    "method.no_digest": ("digest unknown", "摘要未知"),
}

TEXTS: Mapping[str, tuple[str, str]] = {
    **_HEADINGS,
    **_HEADS,
    **_FACTS,
    **_STATES,
    **_RULES,
    **_WORDS,
    **_WARNINGS,
    **_METHOD,
    **phrases_page.TEXTS,
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


def text_or(language: Language, key: str, otherwise: str) -> str:
    """Return the text of a key, or ``otherwise`` if there is no such key."""
    return text(language, key) if key in TEXTS else otherwise
