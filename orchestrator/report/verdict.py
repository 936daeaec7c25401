"""The verdict on a report: whether everything counts, and what does not."""
# ruff: noqa: RUF001 - Chinese has punctuation of its own

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from orchestrator import words
from orchestrator.model.facts import JSON
from orchestrator.model.problem import Problem
from orchestrator.model.report import Report
from orchestrator.model.result import NOT_NEEDED
from orchestrator.report import labels
from orchestrator.report.page import Page

NAMED = 3
"""Trials that are named beside a code; the others are counted."""


@dataclass(frozen=True, slots=True)
class CodeGroup:
    """The trials, logs and cases with one code, and the message of the first of them.

    A code that counts is a mark; another one keeps its trials out.
    """

    code: str
    counts: bool
    where: tuple[str, ...]
    message: str


def document(report: Report) -> dict[str, JSON]:
    """Return the verdict for results.json; logs that belong to no case are among the trials."""
    total = sum(trial.state != NOT_NEEDED for trial in report.trials) + len(report.lone)
    return {
        "level": level(report),
        "trials_valid": total - report.incomplete,
        "trials": total,
        "cases_with_result": sum(result.statistics is not None for result in report.results),
        "cases": len(report.results),
        "known": [
            {"code": item.code, "counts": item.counts, "where": list(item.where)}
            for item in group_by_code(report)
        ],
    }


def level(report: Report) -> Literal["complete", "marked", "incomplete", "empty"]:
    counting = [trial for trial in report.trials if trial.state == "valid"]
    if not counting and all(lone.problems for lone in report.lone):
        return "empty"
    if report.incomplete:
        return "incomplete"
    return "marked" if group_by_code(report) else "complete"


def group_by_code(report: Report) -> list[CodeGroup]:
    """Group problems and marks by code: problems first, then those of all, then of most trials."""
    place = report.cluster or report.source
    by_code: dict[tuple[bool, str], list[tuple[str, str]]] = {}
    for where, counts, problem in _list_reasons(report, place):
        by_code.setdefault((counts, problem.code), []).append((where, problem.message))
    found = [
        CodeGroup(code, counts, tuple(dict.fromkeys(where for where, _ in seen)), seen[0][1])
        for (counts, code), seen in by_code.items()
    ]
    return sorted(found, key=lambda it: (it.counts, it.where != (place,), -len(it.where)))


def sentences(page: Page) -> Iterable[str]:
    """Say the verdict, and what holds for the whole report."""
    report, text, found = page.report, page.text, document(page.report)
    what = text("trials", "试验")
    if report.lone:
        both = text("trials and lone logs", "试验和单独的日志")
        what = both if report.results else text("logs", "日志")
    valid, total = found["trials_valid"], found["trials"]
    said = text(f"{valid} of {total} {what} count", f"{total} 个{what}中有 {valid} 个计入结果")
    if found["level"] == "marked":
        said += text(", some with marks", "，其中有带标记的")
    if report.results:
        results, cases = found["cases_with_result"], found["cases"]
        said += text(
            f"; {results} of {cases} cases have a result.",
            f"；{cases} 个用例中有 {results} 个有结果。",
        )
    first = "NO RESULT" if found["level"] == "empty" else level(report).upper()
    yield page.with_colons(first, said)
    if report.shared_machine:
        yield text(
            "SHARED-MACHINE: nodes of this cluster are one machine. Speedup and efficiency here"
            " show that the tool works, not how anything scales.",
            "SHARED-MACHINE：本集群的多个节点是同一台机器。此处的加速比和效率只说明工具可以工作，"
            "不说明任何扩展能力。",
        )
    if report.image and not report.image_digest:
        unlocked = "UNLOCKED: the image has no known digest."
        yield text(unlocked, "UNLOCKED：镜像没有已知的摘要。")


def first_lines(report: Report) -> list[str]:
    """Return the lines before the table of a terminal: the verdict, and a line for each code."""
    page = Page(report, "en")
    items = (f"  {words.printable(begin + rest)}" for begin, rest in lines(page))
    return [*sentences(page), *items]


def lines(page: Page) -> Iterable[tuple[str, str]]:
    """Yield a line for each code, in two parts: the code, then where it was and what was seen."""
    for item in group_by_code(page.report):
        code = page.explain(item.code)
        kind = page.text("mark", "标记") if item.counts else page.text("does not count", "不计入")
        first, *others = item.where
        rest = page.with_colons("", first, item.message)
        if others:
            where = page.listed(others[: NAMED - 1])
            if (more := len(item.where) - NAMED) > 0:
                where += page.text(f" and {more} more", f" 等另外 {more} 个")
            rest += page.text(f"; also {where}", f"；另有 {where}")
        yield page.with_colons(kind, code), rest


def _list_reasons(report: Report, place: str) -> Iterable[tuple[str, bool, Problem]]:
    """Yield problems of what does not count, then marks; those of a case if no trial has them."""
    for trial in report.trials:
        if not trial.counts_or_rests:
            yield from ((trial.trial, False, problem) for problem in trial.problems)
    for lone in report.lone:
        yield from ((lone.path, False, problem) for problem in lone.problems)
    yield from ((place, True, mark) for mark in report.marks)
    if report.canary:
        yield from (("canary", True, mark) for mark in report.canary.marks)
    for result in report.results:
        seen = [(trial.trial, True, mark) for trial in result.valid for mark in trial.marks]
        known, case = {mark.code for *_, mark in seen}, labels.of_case(report, result)
        yield from seen
        yield from ((case, True, mark) for mark in result.marks if mark.code not in known)
