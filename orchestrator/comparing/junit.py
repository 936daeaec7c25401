"""A comparison as JUnit XML: a test per case."""

import xml.etree.ElementTree as ElementTree

from orchestrator import words
from orchestrator.comparing import table
from orchestrator.comparing.comparison import ComparedCase, Comparison, named


def junit(comparison: Comparison) -> str:
    """The document.

    With a gate, a case that is slower is a failure, and one of which the gate could not tell is an
    error; without one, a case whose verdict is unknown is skipped.
    """
    cases = [row.pair.first for row in comparison.rows]
    suite = ElementTree.Element("testsuite", name="dlperf-orch compare")
    for row in comparison.rows:
        _told(_test(suite, named(row.pair.first, cases)), row)
    for case in comparison.only_first:
        test = _test(suite, named(case, (*cases, *comparison.only_first)))
        _add(test, "skipped" if comparison.slower is None else "error", "B has no such case")
    for kind in ("failure", "error", "skipped"):
        plural = {"failure": "failures", "error": "errors", "skipped": "skipped"}[kind]
        suite.set(plural, str(len(suite.findall(f"testcase/{kind}"))))
    suite.set("tests", str(len(suite)))
    output = ElementTree.SubElement(suite, "system-out")
    output.text = "\n".join(
        words.printable(text) for text in (*table.sides(comparison), *table.remarks(comparison))
    )
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=False) + "\n"


def _test(suite: ElementTree.Element, name: str) -> ElementTree.Element:
    return ElementTree.SubElement(
        suite, "testcase", classname="dlperf-orch.compare", name=words.printable(name)
    )


def _told(test: ElementTree.Element, row: ComparedCase) -> None:
    verdict = row.verdict
    text = f"{table.percent(verdict.difference)}, interval {table.interval(verdict) or 'n/a'}"
    marks = [f"{name}: {seen}" for name, seen in table.marks(row)]
    detail = "; ".join(filter(None, (text, table.said(verdict), verdict.reason, *marks)))
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
