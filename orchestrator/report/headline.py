"""The headline of a report, and what was measured, where, when and by what."""
# ruff: noqa: RUF001 - Chinese has punctuation of its own

from collections.abc import Iterable

from orchestrator import __version__, nodeset, words
from orchestrator.report import labels
from orchestrator.report.page import Page
from orchestrator.report.tree import Span, Words


def sentence(page: Page) -> Words:
    """Say the highest median and its hardware."""
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
    return [Span(first, look="strong"), f"{page.listed(parts)}{page.text('.', '。')}"]


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
        ran = words.duration(report.ran_s)
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
