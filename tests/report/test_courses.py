"""The state of machines over time: which trials are drawn, and what is said of them in words."""

import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from orchestrator import report
from orchestrator.measuring import medians
from orchestrator.model.problem import Problem
from orchestrator.model.report import Report
from orchestrator.model.result import Result
from orchestrator.model.telemetry import Course
from orchestrator.report import courses, figures
from orchestrator.report.figures import Figure
from orchestrator.report.figures.figure import WIDTH
from orchestrator.report.markdown_page import Page
from tests.report.courses import watched
from tests.reported import results, sweep

HOT = watched("vs002", 60, range(20, 31))
COOL = watched("vs001", 60)
MARK = Problem("THROTTLED", "node vs002: the clocks of GPU 0 were held down")


def seen(found: Result, *of_trials: tuple[Course, ...]) -> Result:
    """With what the machines of its first trials did; hot ones are marked."""
    trials = [*found.trials]
    for place, nodes in enumerate(of_trials):
        marks = (MARK,) if HOT in nodes else ()
        trials[place] = replace(trials[place], courses=nodes, marks=marks)
    return medians.result(found.case, trials)


def drawn(found: Report, language: report.Language = "en") -> list[Figure]:
    """The pictures of machines."""
    every = figures.of_page(Page(found, language))
    return [figure for figure in every if figure.name.startswith("machines")]


def texts(figure: Figure) -> list[str]:
    """The words in a picture."""
    return [
        "".join(part.itertext())
        for part in ET.fromstring(figure.file()).iter()
        if part.tag.endswith("text")
    ]


def test_the_trial_nearest_to_the_median_and_every_marked_one_are_drawn() -> None:
    """Of three that count the middle one, and the hot one; without courses nothing is."""
    (one,) = results({"2x8": (12003.4, 11991.9, 11950.2)})
    found = sweep((seen(one, (COOL, HOT), (COOL,), (COOL,)),))
    hot, cool = drawn(found)
    assert [row.trial.repeat for row in courses.chosen(found)] == [1, 2]
    assert ("2x8, trial 1" in texts(hot), "2x8, trial 2" in texts(cool)) == (True, True)
    assert drawn(sweep((one,))) == []
    (cool,) = drawn(sweep((seen(one, (COOL,), (COOL,)),)))
    assert "2x8, trial 2" in texts(cool)
    assert "Heat or brake limits held no clock down." in cool.summary


def test_a_case_without_a_valid_trial_shows_its_first_one() -> None:
    """As after `collect --strict`, where the mark is why it does not count."""
    (one,) = results({"2x8": (12003.4, None)})
    strict = replace(one.trials[0], state="invalid", problems=(MARK,), courses=(COOL, HOT))
    found = sweep((medians.result(one.case, (strict, one.trials[1])),))
    assert [row.trial.repeat for row in courses.chosen(found)] == [1]
    assert (
        "## State of the machines\n\n**State of the machines over the time of a trial**\n\n!["
        in report.markdown(found)
    )


def test_held_clocks_are_hatched_and_told_in_words_with_node_and_seconds() -> None:
    """GPU 0 of vs002 was too hot from second 20 to 30; a piece has 3 s."""
    (one,) = results({"2x8": (12003.4,)})
    (figure,) = drawn(sweep((seen(one, (COOL, HOT)),)))
    line = "vs002: clocks held down by sw_thermal_slowdown, 18-33.1 s"
    assert line in texts(figure)
    assert f"2x8, trial 1: {line}" in figure.summary
    hatch = re.findall(r'<path class="held" d="([^"]*)"', figure.file())
    assert len(hatch) == 2  # in the legend, and over the clocks
    assert all(re.fullmatch(r"(M[\d.]+ [\d.]+L[\d.]+ [\d.]+)+", path) for path in hatch)
    held = [row for row in figure.table.rows if row[-1] == "sw_thermal_slowdown"]
    assert {row[1] for row in held} == {"vs002"}
    assert "measured from 8 to 57 s" in texts(figure)


def test_nodes_held_down_alike_are_one_line() -> None:
    """By the same limit in the same seconds; their names are folded."""
    nodes = tuple(watched(f"vs00{number}", 60, range(20, 31)) for number in (1, 2, 3))
    (one,) = results({"4x8": (22000.0,)})
    (figure,) = drawn(sweep((seen(one, nodes),)))
    (line,) = [text for text in texts(figure) if "clocks held down by" in text]
    assert line == "vs[001-003]: clocks held down by sw_thermal_slowdown, 18-33.1 s"


def test_counters_without_a_name_are_told_as_heat_or_brakes() -> None:
    """In the words and in the table, in both languages."""
    nameless = replace(
        HOT, stretches=tuple(replace(piece, limits=()) for piece in HOT.stretches), window_s=None
    )
    (one,) = results({"1x8": (6000.0,)})
    found = sweep((seen(one, (nameless,)),))
    (english,), (chinese,) = drawn(found), drawn(found, "zh")
    assert "clocks held down by heat or brakes" in english.summary
    assert "过热或功率制动" in chinese.summary
    assert not any("measured" in text for text in texts(english)[1:] if "window" not in text)


def test_lines_are_those_of_nodes_and_break_where_nothing_is_known() -> None:
    """Dashes tell two nodes apart; a piece without an answer of nvidia-smi has no line."""
    silent = replace(
        COOL,
        stretches=tuple(
            replace(piece, power_w=None) if 10 <= place < 14 else piece
            for place, piece in enumerate(COOL.stretches)
        ),
    )
    (one,) = results({"2x8": (12003.4,)})
    (figure,) = drawn(sweep((seen(one, (silent, HOT)),)))
    lines = re.findall(
        r'<polyline class="line thin (s\d d\d)" points="[^"]*"><title>(\w+)<', figure.file()
    )
    assert lines.count(("s0 d0", "vs001")) == 5
    assert lines.count(("s1 d1", "vs002")) == 4


def test_without_gpus_processors_and_memory_are_drawn() -> None:
    """12 of them in use; and what holds clocks is not known, rather than nothing."""
    (one,) = results({"1x1": (800.0,)})
    (figure,) = drawn(sweep((seen(one, (watched("vs001", 40, gpus=0),)),)))
    assert figure.table.head == [
        "case",
        "node",
        "seconds",
        "CPUs in use",
        "load",
        "memory available, GiB",
    ]
    assert figure.table.rows[5][:4] == ["1x1, trial 1", "vs001", "10-12", "12.0"]
    assert "What held clocks down is not known." in figure.summary
    assert "clocks held down" not in texts(figure)
    assert "SM clock, MHz" not in texts(figure)


def test_many_trials_and_nodes_stay_few() -> None:
    """24 trials, three to a picture, and four nodes of each, hot ones first; it says so."""
    sizes = {f"{nodes}x8": (6000.0 * nodes, 6000.0 * nodes) for nodes in range(1, 18)}
    many = tuple(watched(f"vs{number:03}", 10, gpus=1) for number in range(10))
    found = sweep(tuple(seen(one, (*many, HOT), (*many, HOT)) for one in results(sizes)))
    pictures = drawn(found)
    assert [picture.name for picture in pictures] == [
        "machines",
        *(f"machines-{n}" for n in range(2, 9)),
    ]
    assert "Marked and not drawn: 10." in pictures[0].summary
    assert "Marked and not drawn: 10." in texts(pictures[0])  # for those who see it
    assert {row[1] for row in pictures[0].table.rows} == {"vs000", "vs001", "vs002"}
    assert any(text.endswith("4 of 11 nodes") for text in texts(pictures[0]))
    assert all(picture.height < 1100 for picture in pictures)


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
