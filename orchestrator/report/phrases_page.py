"""Texts of the first lines of reports, of figures and of report.html, in English and Chinese."""
# ruff: noqa: RUF001 - Chinese has punctuation of its own

from collections.abc import Mapping

_VERDICT: Mapping[str, tuple[str, str]] = {
    "verdict.marked": (", some with marks", "，其中有带标记的"),
    "verdict.trials": ("{valid} of {all} trials count", "{all} 个试验中有 {valid} 个计入结果"),
    "verdict.logs": ("{valid} of {all} logs count", "{all} 个日志中有 {valid} 个计入结果"),
    "verdict.both": (
        "{valid} of {all} trials and lone logs count",
        "{all} 个试验和单独的日志中有 {valid} 个计入结果",
    ),
    "verdict.cases": (
        "; {results} of {cases} cases have a result.",
        "；{cases} 个用例中有 {results} 个有结果。",
    ),
    "verdict.more": (" and {count} more", " 等另外 {count} 个"),
    "verdict.also": ("; also {where}", "；另有 {where}"),
    "verdict.out": ("does not count: {code}", "不计入：{code}"),
    "verdict.mark": ("mark: {code}", "标记：{code}"),
}

_HEADLINE: Mapping[str, tuple[str, str]] = {
    "headline.best": ("Best: {number} with {case}", "最佳结果：{case} 达到 {number}"),
    "headline.interval": ("interval {interval}", "区间 {interval}"),
    "headline.speedup": (
        "{speedup} times the speed of one GPU (efficiency {efficiency})",
        "加速比 {speedup}（效率 {efficiency}）",
    ),
    "headline.speedup.processes": (
        "{speedup} times the speed of one process (efficiency {efficiency})",
        "加速比 {speedup}（效率 {efficiency}）",
    ),
    "headline.hardware": ("on {hardware}", "硬件 {hardware}"),
    "headline.end": (". ", "。"),
    "trust.sound": (
        "All trials count and nothing is marked: the number can be trusted.",
        "全部试验均计入且没有标记：该数值可信。",
    ),
    "trust.others": (
        "All trials of this case count and it has no mark: the number can be trusted. Trials of"
        " other cases do not count.",
        "该用例的全部试验均计入且没有标记：该数值可信。其他用例有不计入的试验。",
    ),
    "trust.lacking": (
        "Some trials of this case do not count: read why before you rely on the number.",
        "该用例有不计入的试验：使用该数值之前请先了解原因。",
    ),
    "trust.single": (
        "It is a single trial, so its error is unknown: repeat it before you rely on the number.",
        "仅有一次试验，误差未知：使用该数值之前请重复测量。",
    ),
    "trust.marked": (
        "There are marks that concern this number: read them before you rely on it.",
        "有与该数值相关的标记：使用该数值之前请先阅读。",
    ),
    "trust.shared": (
        "Its nodes share one machine, so the number says that the tool works, not how fast a"
        " cluster is.",
        "各节点实为同一台机器：该数值只说明工具可以工作，不说明集群的速度。",
    ),
    "duration.minutes": ("{minutes} min {seconds} s", "{minutes} 分 {seconds} 秒"),
    "duration.hours": ("{hours} h {more} min", "{hours} 小时 {more} 分"),
    "headline.took": ("Duration", "用时"),
    "headline.ran": ("trials ran for {duration}", "试验运行共 {duration}"),
    "headline.measured": (
        "measured windows of {count} valid trials: {seconds} s",
        "{count} 次有效试验的测量窗口共 {seconds} 秒",
    ),
    "headline.what": ("What", "内容"),
    "headline.where": ("Where", "地点"),
    "headline.source": ("Measured from", "数据来自"),
    "headline.when": ("When", "时间"),
    "headline.began": (
        "first step of the logs at {first}, by their own clocks",
        "日志自身的时钟：首次迭代于 {first}",
    ),
    "headline.began.between": (
        "first steps of the logs from {first} to {last}, by their own clocks",
        "日志自身的时钟：首次迭代于 {first} 至 {last}",
    ),
    "headline.began.some": (
        "; logs that do not tell it: {count}",
        "；未说明的日志：{count} 份",
    ),
    "headline.no_clock": ("not known: no log tells it", "未知：没有日志说明时间"),
    "headline.image": ("Image", "镜像"),
    "headline.version": ("Tool", "工具"),
    "headline.command": ("Command", "命令"),
    "headline.workload": ("workload {workload}", "测试程序 {workload}"),
    "headline.playbook": ("playbook {playbook}", "测试方案 {playbook}"),
    "headline.versions": (
        "dlperf-orch {ran}; this report by {reported}",
        "dlperf-orch {ran}；本报告由 {reported} 生成",
    ),
}

_FIGURES: Mapping[str, tuple[str, str]] = {
    "figures": ("Figures", "图"),
    "figure.scaling": ("Scaling: {unit} by number of GPUs", "扩展性：{unit} 随 GPU 数的变化"),
    "figure.scaling.summary": (
        "{series}: from {least} to {most} GPUs; with {most} GPUs {share} of the ideal.",
        "{series}：从 {least} 到 {most} 个 GPU；{most} 个 GPU 时为理想值的 {share}。",
    ),
    "figure.gpus": ("GPUs", "GPU 数"),
    "figure.scaling.processes": (
        "Scaling: {unit} by number of processes",
        "扩展性：{unit} 随进程数的变化",
    ),
    "figure.scaling.summary.processes": (
        "{series}: from {least} to {most} processes; with {most} processes {share} of the ideal.",
        "{series}：从 {least} 到 {most} 个进程；{most} 个进程时为理想值的 {share}。",
    ),
    "figure.gpus.processes": ("processes", "进程数"),
    "figure.ideal.processes": (
        "ideal: the smallest case times processes",
        "理想：最小用例按进程数放大",
    ),
    "figure.ideal": ("ideal: the smallest case times GPUs", "理想：最小用例按 GPU 数放大"),
    "figure.interval": ("interval of the median", "中位数的区间"),
    "figure.published": ("published", "公布值"),
    "figure.trials": (
        "All trials, by their difference from the median of their case",
        "全部试验与所属用例中位数的差异",
    ),
    "figure.trials.summary": (
        "{cases} cases with a result; the widest spread of trials that count is {spread}, in"
        " {case}.",
        "{cases} 个有结果的用例；有效试验的最大离散度为 {spread}，出现在 {case}。",
    ),
    "figure.trials.single": (
        "{cases} cases with a result, each of a single trial.",
        "{cases} 个有结果的用例，各只有一次试验。",
    ),
    "figure.from_median": ("difference from the median", "与中位数的差异"),
    "figure.counts_alone": ("counts", "计入"),
    "figure.marked": ("counts, with a mark", "计入但有标记"),
    "figure.not_counted": ("does not count", "不计入"),
    "figure.iterations": (
        "Speed over iterations, as the logs print it (100% is the median of the case)",
        "日志打印的速率随迭代的变化（用例中位数为 100%）",
    ),
    "figure.iterations.summary": (
        "A panel for each of {cases} cases, all with the same axes, and a line for each trial; the"
        " shaded part is the window that is measured, in which rates lie between {low} and {high}.",
        "{cases} 个用例各有一幅小图，坐标轴相同，每次试验一条线；阴影部分为测量窗口，"
        "窗口内的速率介于 {low} 与 {high} 之间。",
    ),
    "figure.trial_counts": ("trial that counts", "计入的试验"),
    "figure.trial_out": ("trial that does not count", "不计入的试验"),
    "figure.window": ("window that is measured", "测量窗口"),
    "figure.trial": ("trial {number}", "试验 {number}"),
    "figure.throttling": ("When clocks were held down", "时钟被限制的时段"),
    "figure.throttling.summary": (
        "Trials and nodes whose clocks heat or brake limits held down: {bars}; drawn: {drawn}.",
        "时钟因过热或功率制动而被限制的试验与节点共 {bars} 个，画出 {drawn} 个。",
    ),
    "figure.throttling.counted": ("heat or brakes", "过热或功率制动"),
    "figure.held_down": ("clocks held down", "时钟被限制"),
}

_PAGE: Mapping[str, tuple[str, str]] = {
    "page.skip": ("Skip to the result", "跳到结果"),
    "know": ("What a reader must know", "读者须知"),
    "nothing": (
        "Nothing: no trial is left out, and nothing is marked.",
        "无：没有被排除的试验，也没有标记。",
    ),
    "findings": ("Findings of provisioning", "环境检查的发现"),
    "no_findings": ("No check found anything to object to.", "各项检查均未发现问题。"),
    "page.contents": ("Contents", "目录"),
    "page.table": ("Table: {title}", "表格：{title}"),
    "lines": ("Lines that the numbers stand on", "各数值所依据的日志行"),
    "no_log": ("No trial of this case has a log.", "该用例没有日志。"),
    "page.lines": ("lines in the log", "日志中的行"),
    "head.nodes": ("nodes", "节点数"),
    "head.processes_per_node": ("processes per node", "每节点进程数"),
    "head.batch_per_process": ("batch per process", "每进程批大小"),
    "head.gpus.processes": ("processes", "进程数"),
    "batch.processes": ("batch size {batch}", "每进程批大小 {batch}"),
    "head.severity": ("severity", "级别"),
    "head.code": ("code", "代码"),
    "head.node": ("node", "节点"),
    "head.seen": ("seen", "所见"),
    "head.expected": ("expected", "应为"),
    "head.fix": ("what to do", "处理办法"),
}

TEXTS: Mapping[str, tuple[str, str]] = {**_VERDICT, **_HEADLINE, **_FIGURES, **_PAGE}
