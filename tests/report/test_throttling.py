"""The figure of clocks that were held down: there where any were, and nowhere else."""

import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from orchestrator import report
from orchestrator.model.report import Report
from orchestrator.model.telemetry import HeldClocks
from orchestrator.report import figures
from orchestrator.report.figures.figure import WIDTH, Figure
from orchestrator.report.page import Page
from tests.report.throttled import throttled
from tests.reported import results, sweep

HOT = throttled("vs002", 60, (*range(20, 31), 40))


def with_held(*clocks: HeldClocks) -> Report:
    """A report of one case, whose second trial had these clocks held down."""
    (one,) = results({"2x8": (12003.4, 11991.9)})
    first, second = one.trials
    return sweep((replace(one, trials=(first, replace(second, held=clocks))),))


def drawn(found: Report, language: report.Language = "en") -> list[Figure]:
    """The pictures of held clocks."""
    every = figures.of_page(Page(found, language))
    return [figure for figure in every if figure.name == "throttling"]


def texts(figure: Figure) -> list[str]:
    """The words in a picture."""
    parts = ET.fromstring(figure.file()).iter()
    return ["".join(part.itertext()) for part in parts if part.tag.endswith("text")]


def test_held_clocks_are_drawn_and_told_with_node_limit_and_seconds() -> None:
    """GPU 0 of vs002 was too hot from second 20 to 30, and at 40."""
    (figure,) = drawn(with_held(HOT))
    assert "2x8, trial 2, vs002, sw_thermal_slowdown, 20.1-40.1 s" in texts(figure)
    assert len(re.findall('<rect class="held"', figure.file())) == 3  # one in the legend
    assert figure.summary.endswith("held down: 1; drawn: 1.")
    assert "**When clocks were held down**\n\n![" in report.markdown(with_held(HOT))


def test_without_held_clocks_there_is_no_figure() -> None:
    """The table of the machines says what else is known."""
    assert drawn(with_held()) == []


def test_counters_without_a_name_are_told_as_heat_or_brakes() -> None:
    """In both languages; without a window none is drawn."""
    found = with_held(replace(HOT, limits=(), window_s=None))
    (english,), (chinese,) = drawn(found), drawn(found, "zh")
    assert "2x8, trial 2, vs002, heat or brakes, 20.1-40.1 s" in texts(english)
    assert any("过热或功率制动" in text for text in texts(chinese))
    assert len(re.findall('<rect class="window"', english.file())) == 1  # that of the legend


def test_of_many_nodes_the_first_are_drawn() -> None:
    """And it says how many there are; marks of trials name all."""
    (figure,) = drawn(with_held(*(replace(HOT, node=f"vs{count:03}") for count in range(30))))
    assert figure.summary.endswith("held down: 30; drawn: 24.")
    assert figure.height < 1200


@pytest.mark.parametrize("language", report.LANGUAGES)
def test_nothing_of_a_picture_lies_outside_of_it(language: report.Language) -> None:
    """With a window that outlasts what was seen, and clocks that were held to the very end."""
    late = replace(HOT, window_s=(8.0, 99.0), spans=((59.0, HOT.last_s),))
    (figure,) = drawn(with_held(HOT, late), language)
    for box in re.findall(r"<rect [^>]*>", figure.file()):
        x, y, wide, tall = (
            float(re.findall(rf' {name}="([\d.]+)"', box)[0]) if f" {name}=" in box else 0.0
            for name in ("x", "y", "width", "height")
        )
        assert x + wide <= WIDTH
        assert y + tall <= figure.height
