"""Builds the sections of a report, once for every format; a new one is a line in ``_sections``."""
# ruff: noqa: RUF001 - Chinese has punctuation of its own

from collections.abc import Iterable, Mapping
from dataclasses import astuple

from orchestrator import nodeset, words
from orchestrator.model.report import LogSource, Report
from orchestrator.report import figures, headline, labels, method, tables, tree, verdict
from orchestrator.report.page import Page
from orchestrator.report.tree import Block, Section, Span

Sources = Mapping[str, LogSource]
"""The logs of a page, by their paths in the report."""


def document(page: Page, sources: Sources | None) -> Section:
    """Build a report; without sources it shows no lines of logs."""
    report = page.report
    first, *others = verdict.sentences(page)
    front: list[Block] = [tree.Paragraph([first], level=verdict.level(report))]
    front += [tree.Paragraph([said], level="marked") for said in others]
    if best := headline.sentence(page):
        front.append(tree.Paragraph(best))
    front.append(tree.Facts([*headline.facts(page)]))
    return Section("", report.title, [*front, *_sections(page, sources)])


def _sections(page: Page, sources: Sources | None) -> Iterable[Section]:
    text = page.text
    known = [(Span(begin, look="strong"), rest) for begin, rest in verdict.lines(page)]
    nothing = text(
        "Nothing: no trial is left out, and nothing is marked.",
        "无：没有被排除的试验，也没有标记。",
    )
    lines = _lines(page, sources) if sources is not None else ()
    found: tuple[tuple[str, str, Iterable[Block]], ...] = (
        (
            "know",
            text("What a reader must know", "读者须知"),
            [tree.Items(known) if known else tree.Paragraph([nothing])],
        ),
        ("result", text("Cases at a glance", "用例一览"), _glance(page)),
        ("lone", text("Logs", "日志"), _lone(page)),
        ("figures", text("Figures", "图"), figures.of_page(page)),
        ("published", text("Published results", "已公布的结果"), [tables.published(page)]),
        ("machines", text("State of the machines", "机器状态"), tables.machines(page)),
        ("nodes", text("Nodes beside one another", "各节点比较"), [tables.node_speeds(page)]),
        ("trials", text("All trials", "全部试验"), [tables.trials(page)]),
        ("evidence", text("Evidence of each trial", "各次试验的证据"), [tables.evidence(page)]),
        ("environment", text("Environment", "测试环境"), _environment(page)),
        (
            "method",
            text("How it was measured", "测试说明"),
            [tree.Items([[line] for line in method.lines(page)])],
        ),
        ("lines", text("Log lines behind the numbers", "各数值所依据的日志行"), lines),
    )
    for place, title, blocks in found:
        if shown := [it for it in blocks if not isinstance(it, tree.Table) or it.rows]:
            yield Section(place, title, shown)


def _glance(page: Page) -> Iterable[Block]:
    report = page.report
    if report.results:
        said = page.text(
            f"Throughput in {report.unit}; of each case the median over its valid trials.",
            f"吞吐率单位为 {report.unit}；每个用例取其有效试验的中位数。",
        )
        yield tree.Paragraph([said])
        yield tables.results(page)
        if report.names or report.step_flops:
            yield tables.steps(page)
        groups = [group for group in labels.series(report) if group[0].case not in report.names]
        cases = [result.case for result in report.results]
        names = [labels.settings(cases, group[0].case) for group in groups]
        if len(groups) == 1:
            names = [page.text("All cases", "全部用例")]
        series = [[labels.of_series(page, group)] for group in groups]
        if groups:
            yield tree.Facts([*zip(names, series, strict=True)])


def _lone(page: Page) -> Iterable[Block]:
    """Yield the logs that belong to no case; the table has their numbers in the list below it."""
    lone = page.report.lone
    if lone:
        yield tables.lone(page)
        yield tree.Facts(
            [
                (str(number), (Span(it.path, log=it.path), f", sha256 {it.log.sha256[:12]}"))
                for number, it in enumerate(lone, 1)
            ]
        )


def _environment(page: Page) -> Iterable[Block]:
    """Yield the facts of nodes, what checks found of them, and how their devices are connected."""
    report = page.report
    groups = _alike(report)
    if groups:
        keys = dict.fromkeys(key for facts in groups.values() for key in facts)
        cells = [(page.word(key), *(it.get(key, "") for it in groups.values())) for key in keys]
        yield tree.Table("", ("", *groups), cells)
    if report.findings:
        head = page.heads("severity", "code", "node", "seen", "expected", "fix")
        rows = [astuple(finding) for finding in report.findings]
        yield tree.Table(page.text("Findings of provisioning", "环境检查的发现"), head, rows)
    elif groups:
        nothing = "No check found anything to object to."
        yield tree.Paragraph([page.text(nothing, "各项检查均未发现问题。")])
    for drawn in dict.fromkeys(filter(None, report.topologies.values())):
        names = nodeset.fold(node for node, it in report.topologies.items() if it == drawn)
        command = Span("nvidia-smi topo -m", look="code")
        yield tree.Paragraph([command, page.text(f" on {names}:", f"（节点 {names}）：")])
        yield tree.Lines(drawn.splitlines(), is_matrix=True)


def _alike(report: Report) -> Mapping[str, Mapping[str, str]]:
    """Fold nodes that differ in their hostnames alone; their facts by their folded names."""
    groups: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for node, facts in report.environment.items():
        shown = {key: value for key, value in facts.items() if key != "hostname"}
        mib = shown.get("memory", "").removesuffix(" MiB")
        if mib.isdecimal():  # results.json has it as it is
            shown["memory"] = words.size(int(mib) << 20)
        groups.setdefault(tuple(shown.items()), []).append(node)
    found: dict[str, Mapping[str, str]] = {}
    for same, nodes in groups.items():
        names = [report.environment[node].get("hostname", "") for node in nodes]
        own = {"hostname": nodeset.fold([*filter(None, names)])} if any(names) else {}
        found[nodeset.fold(nodes)] = {**own, **dict(same)}
    return found


def _lines(page: Page, sources: Sources) -> Iterable[Block]:
    """Yield the log lines from which numbers are computed, in a section for each case."""
    report = page.report
    found: dict[str, tuple[str, list[Block]]] = {
        tables.case_anchor(page, result): (labels.of_case(report, result), [])
        for result in report.results
    }
    if report.canary:
        found["canary"] = page.text("Canary", "监测用例"), []
    for _, place, trial in tables.every_trial(page):
        if trial.log:
            name = Span(trial.trial, look="strong")
            found[place][1].append(tree.Paragraph([name], f"{place}-{trial.repeat}"))
            found[place][1].extend(_log(page, trial.path, trial.log.sha256, sources))
    no_log = page.text("No trial of this case has a log.", "该用例没有日志。")
    for place, (title, blocks) in found.items():
        yield Section(place, title, blocks or [tree.Paragraph([no_log])])
    for number, lone in enumerate(report.lone, 1):
        lines = _log(page, lone.path, lone.log.sha256, sources)
        yield Section(f"log-{number}", lone.path, [*lines])


def _log(page: Page, path: str, sha256: str, sources: Sources) -> Iterable[Block]:
    source = sources.get(path, LogSource(""))
    where: list[Span | str] = [Span(path, log=path)]
    if source.lines:
        numbers = page.listed(str(number) for number, _ in source.lines)
        lines = page.with_colons(page.text("lines in the log", "日志中的行"), numbers)
        where.append(page.listed(("", lines)))
    yield tree.Paragraph([*where, page.listed(("", "sha256 ")), Span(sha256, look="code")])
    if source.lines:
        yield tree.Lines([f"{number}: {text}" for number, text in source.lines])
