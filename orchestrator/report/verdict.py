"""The verdict on a report: whether everything counts, and what does not.

One rule for the terminal, report.md, report.html and results.json.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from orchestrator.model.facts import JSON
from orchestrator.model.problem import Problem
from orchestrator.model.report import Report
from orchestrator.model.result import NOT_NEEDED, Result
from orchestrator.report import codes, labels, phrases

NAMED = 3
"""Trials that are named beside a code; the others are counted."""

Level = Literal["complete", "marked", "incomplete", "empty"]


@dataclass(frozen=True, slots=True)
class Known:
    """Everything of one code: what keeps trials out, or marks what counts.

    Args:
        counts: whether the trials or cases count all the same.
        where: names of trials, logs and cases, in the report's order.
        message: of the first of them.
    """

    code: str
    counts: bool
    where: tuple[str, ...]
    message: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """The share of a report that counts, and its known problems, the gravest first.

    Args:
        valid, trials: how many trials count, of all; logs that belong to no case are among them.
        results, cases: how many cases have a result, of all.
    """

    level: Level
    valid: int
    trials: int
    results: int
    cases: int
    known: tuple[Known, ...]

    def document(self) -> dict[str, JSON]:
        """Return the verdict for results.json."""
        return {
            "level": self.level,
            "trials_valid": self.valid,
            "trials": self.trials,
            "cases_with_result": self.results,
            "cases": self.cases,
            "known": [
                {"code": item.code, "counts": item.counts, "where": list(item.where)}
                for item in self.known
            ],
        }


def verdict(report: Report) -> Verdict:
    """Judge how much of a report counts."""
    trials = [trial for trial in report.trials if trial.state != NOT_NEEDED]
    total = len(trials) + len(report.lone)
    valid = total - report.incomplete
    known = tuple(sorted(_group_problems(report), key=lambda item: _rank(report, item)))
    level: Level = "complete"
    if not valid:
        level = "empty"
    elif report.incomplete:
        level = "incomplete"
    elif known:
        level = "marked"
    results = sum(result.statistics is not None for result in report.results)
    return Verdict(level, valid, total, results, len(report.results), known)


def sentences(report: Report, language: phrases.Language = "en") -> list[str]:
    """Say the verdict, and what holds for the whole report."""
    found = verdict(report)
    kind = ("both" if report.lone else "trials") if report.results else "logs"
    count = phrases.text(language, f"verdict.{kind}", valid=found.valid, all=found.trials)
    cases = {"results": found.results, "cases": found.cases}
    level = "NO RESULT" if found.level == "empty" else found.level.upper()
    first = f"{level}{phrases.text(language, 'colon')}{count}"
    if found.level == "marked":
        first += phrases.text(language, "verdict.marked")
    if report.results:
        first += phrases.text(language, "verdict.cases", **cases)
    said = [first]
    if report.shared_machine:
        said.append(phrases.text(language, "shared_machine"))
    if report.image and not report.image_digest:
        said.append(phrases.text(language, "unlocked"))
    return said


def lines(report: Report, language: phrases.Language) -> list[tuple[str, str]]:
    """Return a line for each code, in two parts: the code, then where it was and what was seen."""
    return [_line(item, language) for item in verdict(report).known]


def _line(item: Known, language: phrases.Language) -> tuple[str, str]:
    comma, colon = (phrases.text(language, key) for key in ("comma", "colon"))
    first, *others = item.where
    rest = colon.join(("", first, item.message))
    if others:
        where = comma.join(others[: NAMED - 1])
        if (more := len(item.where) - NAMED) > 0:
            where += phrases.text(language, "verdict.more", count=more)
        rest += phrases.text(language, "verdict.also", where=where)
    key = "verdict.mark" if item.counts else "verdict.out"
    return phrases.text(language, key, code=codes.explained(language, item.code)), rest


def _rank(report: Report, item: Known) -> tuple[bool, bool, int]:
    """Rank problems before marks, marks of the whole sweep first, then by number of trials."""
    is_whole = item.where == (_place(report),)
    return item.counts, not is_whole, -len(item.where)


def _place(report: Report) -> str:
    return report.cluster or report.source


def _group_problems(report: Report) -> Iterable[Known]:
    for counts in (False, True):
        by_code: dict[str, list[tuple[str, str]]] = {}
        for where, problem in marks(report) if counts else _problems(report):
            by_code.setdefault(problem.code, []).append((where, problem.message))
        for code, seen in by_code.items():
            yield Known(code, counts, tuple(dict.fromkeys(name for name, _ in seen)), seen[0][1])


def _problems(report: Report) -> Iterable[tuple[str, Problem]]:
    for trial in report.trials:
        for problem in trial.problems if not trial.counts_or_rests else ():
            yield trial.trial, problem
    for lone in report.lone:
        for problem in lone.problems:
            yield lone.path, problem


def marks(report: Report) -> Iterable[tuple[str, Problem]]:
    """Yield the marks of trials that count, then those of cases that none of their trials has."""
    for mark in report.marks:
        yield _place(report), mark
    for mark in report.canary.marks if report.canary else ():
        yield "canary", mark
    for result in report.results:
        yield from _marks_of(report, result)


def _marks_of(report: Report, result: Result) -> Iterable[tuple[str, Problem]]:
    codes_of_trials = set()
    for trial in result.trials:
        for mark in trial.marks if trial.state == "valid" else ():
            codes_of_trials.add(mark.code)
            yield trial.trial, mark
    for mark in result.marks:
        if mark.code not in codes_of_trials:
            yield labels.of_case(report, result), mark
