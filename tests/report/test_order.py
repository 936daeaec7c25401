"""Cases of reports are ordered by ranks, then nodes, in every table, figure and file."""

import json
import re

import pytest

from orchestrator import report
from orchestrator.comparing import comparison, forms, sides
from orchestrator.model.report import Layout, Report
from orchestrator.report import LANGUAGES, Language
from tests.reported import csv_rows, results, sweep

ASKED = ("4x8", "2x8", "1x1", "2x4", "1x8")
ORDER = ["1x1", "1x8", "2x4", "2x8", "4x8"]
VALUES = {place: (100.0 * number, 101.0 * number) for number, place in enumerate(ASKED, 1)}


def measured(**layout: object) -> Report:
    """The report on a sweep whose plan begins with its widest case."""
    return sweep(results(VALUES), layout=Layout(**layout))  # type: ignore[arg-type] # passed on


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("kind", ["placements", "groups"])
def test_pages_have_2x8_before_4x8(kind: str, language: Language) -> None:
    """Every table and drawing of report.md and report.html, in both languages."""
    found = measured(kind=kind)
    markdown = report.markdown(found, language)
    html = report.html_page(found, language, {})
    for page in (markdown, html):
        for pattern in (r"\b([0-9])n([0-9])g-r50", r"(?:\| |>)([0-9])x([0-9])(?: \||<)"):
            places = [tuple(map(int, pair)) for pair in re.findall(pattern, page)]
            runs = "".join(f"{nodes}x{gpus} " for nodes, gpus in dict.fromkeys(places))
            assert not runs or runs.split() == ORDER
    for name, drawing in report.svg_files(found, language).items():
        found_places = list(dict.fromkeys(re.findall(r">(?:trial )?([0-9]x[0-9])\b", drawing)))
        assert not found_places or found_places == ORDER, name


def test_files_for_programs_have_2x8_before_4x8() -> None:
    """results.csv, results.json, and DLPerf's own result file."""
    found = measured()
    rows = csv_rows(found)
    assert [f"{row['node_num']}x{row['gpu_num_per_node']}" for row in rows] == ORDER
    cases = json.loads(json.dumps(report.document(found)))["cases"]
    assert [case["case"]["placement"] for case in cases] == ORDER
    (exported,) = json.loads(json.dumps(report.exports(found))).values()
    assert list(exported["r50"]) == ["1n1g", "1n8g", "2n4g", "2n8g", "4n8g"]


def test_comparisons_have_2x8_before_4x8() -> None:
    """In the order of the results.json."""
    document = report.document(measured())
    first, second = sides.measured(document, "A"), sides.measured(document, "B")
    found = comparison.compare_sides(first, second)
    assert [row[0].split()[0] for row in forms.build_rows(found)] == ORDER
