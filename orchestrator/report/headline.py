"""The headline of a report, and what was measured, where, when and by what."""
# ruff: noqa: RUF001 - Chinese has punctuation of its own

from collections.abc import Iterable

from orchestrator import __version__, nodeset, words
from orchestrator.model.result import Result, Statistics
from orchestrator.report import labels
from orchestrator.report.page import Page
from orchestrator.report.tree import Span, Words


def sentence(page: Page) -> Words:
    """Say the highest median, its hardware, and whether it can be trusted."""
    report = page.report
    found = [(result, result.statistics) for result in report.results if result.statistics]
    if not found:
        return []
    result, statistics = max(found, key=lambda pair: pair[1].median)
    number = f"{labels.throughput(report, statistics.median)} {report.unit}"
    case = labels.of_case(report, result)
    first = page.text(f"Best: {number} with {case}", f"最佳结果：{case} 达到 {number}")
    parts = [""]
    if statistics.interval:
        ends = labels.interval_words(statistics.interval, page.language)
        parts.append(page.text(f"interval {ends}", f"区间 {ends}"))
    if result.speedup is not None and result.case.world_size > 1:
        speedup, share = labels.fixed(result.speedup, 2), labels.share(result.efficiency)
        one = "GPU" if page.has_gpus else "process"
        parts.append(
            page.text(
                f"{speedup} times the speed of one {one} (efficiency {share})",
                f"加速比 {speedup}（效率 {share}）",
            )
        )
    if hardware := _hardware(page):
        parts.append(page.text(f"on {hardware}", f"硬件 {hardware}"))
    end = page.text(". ", "。")
    return [
        Span(first, look="strong"),
        f"{page.listed(parts)}{end}{_trust(page, result, statistics)}",
    ]


def _trust(page: Page, result: Result, statistics: Statistics) -> str:
    report, text = page.report, page.text
    marks = [*result.marks, *report.marks, *(mark for it in result.valid for mark in it.marks)]
    if report.shared_machine:
        return text(
            "Its nodes share one machine, so the number says that the tool works, not how fast a"
            " cluster is.",
            "各节点实为同一台机器：该数值只说明工具可以工作，不说明集群的速度。",
        )
    if marks or (report.canary and report.canary.marks) or statistics.n < report.planned(result):
        return text(
            "Something is marked, or some trials do not count: read why before you rely on it.",
            "有相关的标记，或有不计入的试验：使用该数值之前请先了解原因。",
        )
    if statistics.interval is None:
        return text(
            "It is a single trial, so its error is unknown: repeat it before you rely on it.",
            "仅有一次试验，误差未知：使用该数值之前请重复测量。",
        )
    return text(
        "All trials of this case count and nothing is marked: the number can be trusted.",
        "该用例的全部试验均计入且没有标记：该数值可信。",
    )


def facts(page: Page) -> Iterable[tuple[str, Words]]:
    report, text = page.report, page.text
    what = [text(f"workload {report.workload}", f"测试程序 {report.workload}")]
    if report.experiment:
        what.append(text(f"playbook {report.experiment}", f"测试方案 {report.experiment}"))
    yield text("What", "内容"), [page.listed(what)]
    if report.cluster:
        where = filter(None, (report.cluster, _hardware(page)))
        yield text("Where", "地点"), [page.with_colons(*where)]
    yield text("Measured from", "数据来自"), [report.source]
    if report.created or any(report.began_ns):
        when = words.moment(report.created) if report.created else _began(page)
        yield text("When", "时间"), [when]
    if report.ran_s is not None:
        minutes, seconds = divmod(int(report.ran_s), 60)
        hours, more = divmod(minutes, 60)
        ran = text(f"{minutes} min {seconds} s", f"{minutes} 分 {seconds} 秒")
        if hours:
            ran = text(f"{hours} h {more} min", f"{hours} 小时 {more} 分")
        yield text("Duration", "用时"), [text(f"trials ran for {ran}", f"试验运行共 {ran}")]
    if report.image:
        digest = report.image_digest or text("digest unknown", "摘要未知")
        yield text("Image", "镜像"), [page.listed((report.image, digest))]
    tool = f"dlperf-orch {report.written_by or __version__}"
    if report.written_by not in ("", __version__):
        tool += text(f"; this report by {__version__}", f"；本报告由 {__version__} 生成")
    yield text("Tool", "工具"), [tool]
    if report.commands:
        spans: list[Span | str] = []
        for command in report.commands:
            spans += [page.listed(("", "")), Span(command, look="code")]
        yield text("Command", "命令"), spans[1:]


def _hardware(page: Page) -> str:
    """Return names of nodes and models of their GPUs or processors; empty if none is known."""
    every = page.report.environment
    models = dict.fromkeys(it.get("GPUs") or it.get("CPU", "") for it in every.values())
    return page.listed(filter(None, (nodeset.fold(list(every)), *models)))


def _began(page: Page) -> str:
    """Say when the logs of a folder print their first steps; their time zone is not known."""
    every = page.report.began_ns
    known = sorted(began_ns for began_ns in every if began_ns is not None)
    ends = dict.fromkeys(words.by_clock(began_ns) for began_ns in (*known[:1], *known[-1:]))
    first, chinese = " to ".join(ends), " 至 ".join(ends)
    which = "the logs" if None not in every else f"{len(known)} of {len(every)} logs"
    share = "" if None not in every else f"（{len(every)} 份日志中的 {len(known)} 份）"
    return page.text(
        f"first steps of {which} at {first}, by their own clocks",
        f"日志自身的时钟：首次迭代于 {chinese}{share}",
    )
