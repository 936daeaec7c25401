"""A comparison as JSON, as Markdown, and as JUnit XML."""

import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import asdict

from orchestrator import words
from orchestrator.comparing import table
from orchestrator.comparing.comparison import ComparedCase, Comparison, name_case
from orchestrator.comparing.sides import Mark, Side, SideCase
from orchestrator.model.facts import JSON
from orchestrator.report import as_markdown

METHOD = (
    "The interval is that of B / A - 1 by Welch's method; it covers 95 % unless it says otherwise."
    " A case is different if all of it is beyond the bound, the same if all of it is within. p is"
    " that of the exact two-sided rank test (van der Waerden), corrected by Holm's method."
)


def build_document(comparison: Comparison) -> dict[str, JSON]:
    """Return the JSON document: numbers are unrounded, unknown ones null."""
    return {
        "version": 1,
        "exit_code": comparison.exit_code,
        "first": _side(comparison.first),
        "second": _side(comparison.second),
        "unit": comparison.first.unit,
        "higher_is_better": True,
        "level": 0.05,
        "fail_if_slower": comparison.slower,
        "gate": comparison.gate or None,
        "cases": [_row(row, comparison) for row in comparison.rows],
        "only_first": [_case(case) for case in comparison.only_first],
        "only_second": [_case(case) for case in comparison.only_second],
        "differences": [asdict(difference) for difference in comparison.differences],
        "recorded_once": list(comparison.recorded_once),
    }


def _side(side: Side) -> dict[str, JSON]:
    return {
        "label": side.label,
        "origin": side.origin,
        "published": side.is_published,
        **{key.replace(" ", "_"): value or None for key, value in side.settings.items()},
        "marks": _marks(side.marks),
    }


def _marks(marks: Sequence[Mark]) -> list[JSON]:
    return [mark.model_dump(mode="json") for mark in marks]


def _case(case: SideCase) -> dict[str, JSON]:
    return {"case": dict(case.case), "name": case.name}


def _row(row: ComparedCase, comparison: Comparison) -> dict[str, JSON]:
    verdict = row.verdict
    fewest = min(len(row.samples.first), len(row.samples.second))
    return {
        **_case(row.pair.first),
        "first": _trials(row.pair.first, comparison.first.is_published),
        "second": _trials(row.pair.second, comparison.second.is_published),
        "difference": verdict.difference,
        "interval": asdict(verdict.interval) if verdict.interval else None,
        "p": verdict.p,
        "p_holm": verdict.p_holm,
        "bound": asdict(row.bound),
        "verdict": verdict.kind,
        "reason": verdict.reason or None,
        "needs_trials": fewest + verdict.more[1] if verdict.more else None,
        "more_trials": list(verdict.more) if verdict.more else None,
        "shared_trials": row.samples.shared,
        "gate": verdict.gate,
        "gate_interval": asdict(verdict.gate_interval) if verdict.gate_interval else None,
    }


def _trials(case: SideCase, is_published: bool) -> dict[str, JSON]:
    return {
        "median": case.median,
        "throughputs": list(case.values),
        "not_valid": [trial.trial for trial in case.trials if trial not in case.valid],
        "nodes": sorted(case.nodes),
        "marks": _marks(case.every_mark),
        "source": case.published[0].model_dump(mode="json") if is_published else None,
    }


def render_markdown(comparison: Comparison) -> str:
    """Return the Markdown page, for the summary of a CI job."""
    escaped = as_markdown.escaped
    first, second = table.describe_sides(comparison)
    rows = table.build_rows(comparison)
    width = len(table.HEAD) if any(row[-1] for row in rows) else len(table.HEAD) - 1
    gate = [f"**{escaped(comparison.gate)}**"] if comparison.gate else []
    parts = [
        "## Comparison",
        f"- {escaped(first)}\n- {escaped(second)}",
        *gate,
        as_markdown.table(table.HEAD[:width], [row[:width] for row in rows]),
        f"{escaped(comparison.first.unit)}; {table.HIGHER}. {METHOD}",
        "\n".join(f"- {escaped(text)}" for text in table.list_remarks(comparison)),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def render_junit(comparison: Comparison) -> str:
    """Return the JUnit document: a test per case.

    With a gate, a slower case is a failure, and a case that cannot be decided is an error; without
    a gate, a case with an unknown verdict is skipped.
    """
    cases = [row.pair.first for row in comparison.rows]
    suite = ElementTree.Element("testsuite", name="dlperf-orch compare")
    for row in comparison.rows:
        _add_result(_test(suite, name_case(row.pair.first, cases)), row)
    for case in comparison.only_first:
        test = _test(suite, name_case(case, (*cases, *comparison.only_first)))
        _add(test, "skipped" if comparison.slower is None else "error", "B has no such case")
    for kind in ("failure", "error", "skipped"):
        plural = {"failure": "failures", "error": "errors", "skipped": "skipped"}[kind]
        suite.set(plural, str(len(suite.findall(f"testcase/{kind}"))))
    suite.set("tests", str(len(suite)))
    output = ElementTree.SubElement(suite, "system-out")
    output.text = "\n".join(
        words.printable(text)
        for text in (*table.describe_sides(comparison), *table.list_remarks(comparison))
    )
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=False) + "\n"


def _test(suite: ElementTree.Element, name: str) -> ElementTree.Element:
    return ElementTree.SubElement(
        suite, "testcase", classname="dlperf-orch.compare", name=words.printable(name)
    )


def _add_result(test: ElementTree.Element, row: ComparedCase) -> None:
    verdict = row.verdict
    difference, interval = table.format_percent(verdict.difference), table.format_interval(verdict)
    text = f"{difference}, interval {interval or 'n/a'}"
    marks = [f"{name}: {seen}" for name, seen in table.list_marks(row)]
    detail = "; ".join(
        filter(None, (text, table.describe_verdict(verdict), verdict.reason, *marks))
    )
    if verdict.gate == "slower":
        _add(test, "failure", detail)
    elif verdict.gate == "unknown":
        _add(test, "error", detail)
    elif verdict.gate is None and verdict.kind == "unknown":
        _add(test, "skipped", detail)
    else:
        ElementTree.SubElement(test, "system-out").text = words.printable(detail)


def _add(test: ElementTree.Element, kind: str, message: str) -> None:
    ElementTree.SubElement(test, kind, message=words.printable(message))
