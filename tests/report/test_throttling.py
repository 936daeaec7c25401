"""The figure of trials in which clocks were held down: which are drawn, and what it says."""
# ruff: noqa: RUF001 - Chinese has punctuation of its own

import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from orchestrator import report
from orchestrator.measuring import medians
from orchestrator.model.report import Report
from orchestrator.model.result import Result
from orchestrator.model.telemetry import Course
from orchestrator.report import figures
from orchestrator.report.figures import Figure
from orchestrator.report.figures.figure import WIDTH
from orchestrator.report.markdown_page import Page
from tests.report.courses import watched
from tests.reported import results, sweep

HOT = watched("vs002", 60, range(20, 31))
COOL = watched("vs001", 60)


def seen(found: Result, *of_trials: tuple[Course, ...]) -> Result:
    """With what the machines of its first trials did."""
    trials = [*found.trials]
    for place, nodes in enumerate(of_trials):
        trials[place] = replace(trials[place], courses=nodes)
    return medians.result(found.case, trials)


def drawn(found: Report, language: report.Language = "en") -> list[Figure]:
    """The pictures of throttled trials."""
    every = figures.of_page(Page(found, language))
    return [figure for figure in every if figure.name.startswith("throttling")]


def texts(figure: Figure) -> list[str]:
    """The words in a picture."""
    parts = ET.fromstring(figure.file()).iter()
    return ["".join(part.itertext()) for part in parts if part.tag.endswith("text")]


def test_only_what_was_held_down_is_drawn() -> None:
    """The hot node of the hot trial, whether it counts or not; without any there is no figure."""
    (one,) = results({"2x8": (12003.4, 11991.9, None)})
    (figure,) = drawn(sweep((seen(one, (COOL,), (COOL, HOT), (HOT,)),)))
    assert {row[0] for row in figure.table.rows} == {"2x8, trial 2", "2x8, trial 3"}
    assert {row[1] for row in figure.table.rows} == {"vs002"}
    assert drawn(sweep((one,))) == []
    assert drawn(sweep((seen(one, (COOL,)),))) == []


def test_it_says_what_held_clocks_down_and_when() -> None:
    """GPU 0 of vs002 was too hot from second 20 to 30; a piece has 3 s."""
    (one,) = results({"2x8": (12003.4,)})
    found = sweep((seen(one, (COOL, HOT)),))
    (figure,), (chinese,) = drawn(found), drawn(found, "zh")
    line = "vs002: sw_thermal_slowdown, 18-33.1 s"
    assert line in texts(figure)
    assert figure.summary == (
        f"1 of 1 trials in which heat or brakes held clocks down. 2x8, trial 1: {line}"
    )
    assert "vs002：sw_thermal_slowdown，18-33.1 秒" in texts(chinese)
    assert figure.file().count('<path class="held"') == 2  # in the legend, and over the clocks
    held = [row for row in figure.table.rows if row[-1] == "sw_thermal_slowdown"]
    assert [row[2] for row in held] == ["18-21", "21-24", "24-27.1", "27.1-30.1", "30.1-33.1"]
    assert all(int(row[3]) < 1527 for row in held[1:4])


def test_counters_without_a_name_are_heat_or_brakes() -> None:
    """In the words and in the table, in both languages; a piece without clocks has no line."""
    pieces = tuple(
        replace(piece, limits=(), sm_mhz=None if place == 8 else piece.sm_mhz)
        for place, piece in enumerate(HOT.stretches)
    )
    (one,) = results({"1x8": (6000.0,)})
    found = sweep((seen(one, (replace(HOT, stretches=pieces, window_s=None),)),))
    (english,), (chinese,) = drawn(found), drawn(found, "zh")
    assert "vs002: heat or brakes, 18-33.1 s" in texts(english)
    assert "过热或功率制动" in chinese.summary
    assert english.file().count("<title>vs002</title>") == 2
    assert english.table.rows[8][3:] == ("", "heat or brakes")
    silent = tuple(replace(piece, sm_mhz=None) for piece in pieces)
    (bare,) = drawn(sweep((seen(one, (replace(HOT, stretches=silent),)),)))
    assert "<title>vs002</title>" not in bare.file()


def test_many_trials_and_nodes_stay_few() -> None:
    """12 trials, four to a picture, and four nodes of each; it says of how many."""
    sizes = {f"{nodes}x8": (6000.0 * nodes, 6000.0 * nodes) for nodes in range(1, 18)}
    nodes = tuple(replace(HOT, node=f"vs{number:03}") for number in range(6))
    pictures = drawn(sweep(tuple(seen(one, nodes, nodes) for one in results(sizes))))
    assert [it.name for it in pictures] == ["throttling", "throttling-2", "throttling-3"]
    assert pictures[0].summary.startswith("12 of 34 trials")
    assert {row[1] for row in pictures[0].table.rows} == {f"vs00{number}" for number in range(4)}
    assert all(picture.height < 1000 for picture in pictures)


@pytest.mark.parametrize("language", report.LANGUAGES)
def test_nothing_of_a_picture_lies_outside_of_it(language: report.Language) -> None:
    """Neither boxes nor lines nor hatching, with a window that outlasts what was seen."""
    late = replace(HOT, window_s=(8.0, 99.0))
    (one,) = results({"2x8": (12003.4,)})
    (figure,) = drawn(sweep((seen(one, (COOL, late)),)), language)
    numbers = re.findall(r'points="([^"]*)"|<path class="held" d="([^"]*)"', figure.file())
    for points, path in numbers:
        for x, y in re.findall(r"([\d.-]+)[, ]([\d.-]+)", points or path):
            assert 0 <= float(x) <= WIDTH
            assert 0 <= float(y) <= figure.height
