"""Figures: drawn where there is something to draw, with words and data for those who do not see."""

import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from orchestrator import report
from orchestrator.measuring import medians
from orchestrator.model.report import Report
from orchestrator.model.trace import Trace
from orchestrator.report import figures
from orchestrator.report.figures import Figure, scales
from orchestrator.report.figures.figure import WIDTH
from orchestrator.report.page import Page
from tests.report.pages import whole
from tests.reported import results, sweep

SVG = "{http://www.w3.org/2000/svg}"


def drawn(found: Report, language: report.Language = "en") -> dict[str, Figure]:
    """The figures of a report by name."""
    return {figure.name: figure for figure in figures.of_page(Page(found, language))}


@pytest.mark.parametrize("language", report.LANGUAGES)
def test_each_is_a_picture_with_title_description_and_data(language: report.Language) -> None:
    """As a file of its own that any reader of XML takes, and that fetches nothing."""
    found = drawn(whole(), language)
    assert list(found) == [
        "scaling",
        "trials",
        "iterations",
        "iterations-2",
        "throttling",
    ]
    for figure in found.values():
        root = ET.fromstring(figure.file())
        assert root.tag == f"{SVG}svg"
        assert root.get("role") == "img"
        (title, desc) = root.findall(f"{SVG}title")[0], root.findall(f"{SVG}desc")[0]
        assert (title.text, desc.text) == (figure.title, figure.summary)
        assert figure.summary
        assert figure.table.rows
        assert {len(row) for row in figure.table.rows} == {len(figure.table.head)}
        assert "href" not in figure.file()


def test_nothing_is_cut_off() -> None:
    """Every shape lies inside of its picture, and every text begins and ends there."""
    for figure in drawn(whole()).values():
        root = ET.fromstring(figure.file())
        for shape in root.iter():
            places = [(n, float(shape.get(n, 0))) for n in ("x", "y", "x1", "x2", "y1", "y2")]
            for name, place in places:
                most = WIDTH if name.startswith("x") else figure.height
                assert 0 <= place <= most, (figure.name, shape.attrib)
        for text in root.iter(f"{SVG}text"):
            assert figure.height - 2 > float(text.get("y", 0)) > 8, (figure.name, text.text)
            look, wide = (text.get("class") or "").split(), scales.width(text.text or "")
            begin = float(text.get("x", 0)) - wide * (("end" in look) + ("mid" in look) / 2)
            assert begin >= 0, (figure.name, text.text)
            assert begin + wide <= WIDTH, (figure.name, text.text)


def test_the_end_of_a_window_at_the_end_of_a_log_is_not_cut_off() -> None:
    """Its number stands left of the edge of the picture."""
    (one,) = results({"1x1": (800.0,)})
    trace = Trace(1, 1000, 100, 1, *[[800.0] * 100] * 3)
    trials = (replace(one.trials[0], trace=trace, window=(1001, 99_001)),)
    text = drawn(sweep((replace(one, trials=trials),)))["iterations"].file()
    assert re.search(r'<text class="end small"[^>]*>99001<', text)


def test_a_trial_that_does_not_count_is_seen_before_those_at_its_place() -> None:
    """Its cross is drawn last, whichever trial it is."""
    (one,) = results({"1x1": (800.0, 800.0, 800.0)})
    out = replace(one.trials[0], state="invalid")
    found = medians.result(one.case, (out, *one.trials[1:]))
    points = re.findall(r'class="point ([^"]*)"', drawn(sweep((found,)))["trials"].file())
    assert points[-1] == "out"


def test_long_series_are_told_by_what_they_differ_in() -> None:
    """The legend has no room for settings that all have, and never cuts one that tells."""
    same = (("loss_scale", "dynamic"), ("data_backend", "dali-cpu"), ("memory_format", "nhwc"))
    cases = [
        result
        for batch in (64, 96)
        for result in results({"1x1": (8.0,), "1x4": (30.0,)}, micro_batch_size=batch, params=same)
    ]
    text = drawn(sweep(tuple(cases)))["scaling"].file()
    assert ">AMP(BS=64)</text>" in text
    assert ">AMP(BS=96)</text>" in text
    assert "…" not in text


def test_scaling_shows_median_interval_ideal_and_published() -> None:
    """The numbers of the seed, and the ideal from the smallest case."""
    table = drawn(whole())["scaling"].table
    rows = {(row[0].partition(",")[0], row[1]): row for row in table.rows}
    assert rows["AMP", "1x1"][2:6] == ("1", "802.90", "793.90 to 803.69 (93.75%)", "802.90")
    assert rows["AMP", "4x8"][5] == f"{802.9 * 32:.2f}"
    assert rows["AMP", "4x8"][6] == "22551.16"
    assert rows["FP32", "4x8"][6] == ""


def test_series_differ_in_more_than_colour() -> None:
    """Another dash and another marker each; more series than there are go into more pictures."""
    many = [
        result
        for batch in range(1, 9)
        for result in results({"1x1": (800.0,), "1x4": (3000.0,)}, micro_batch_size=batch)
    ]
    found = drawn(sweep(tuple(many)))
    assert [name for name in found if name.startswith("scaling")] == ["scaling", "scaling-2"]
    titles = [found[name].title for name in ("scaling", "scaling-2")]
    assert [title[-5:] for title in titles] == ["(1/2)", "(2/2)"]  # a page's regions have names
    text = found["scaling"].file()
    assert set(re.findall(r'class="line s(\d) d(\d)"', text)) == {
        (f"{n}", f"{n}") for n in range(6)
    }


def test_one_size_has_no_scaling() -> None:
    """And a case without a number no trials; a log without rates no iterations."""
    assert list(drawn(sweep(results({"1x8": (800.0,)})))) == ["trials"]
    assert list(drawn(sweep(results({"1x8": (None,)})))) == []


def test_sizes_that_are_too_near_share_a_label() -> None:
    """1 and 2 of 128 GPUs would print over each other."""
    sizes = {"1x1": (800.0,), "1x2": (1600.0,), "16x8": (90000.0, 91000.0)}
    text = drawn(sweep(results(sizes)))["scaling"].file()
    assert ">1</text>" in text
    assert ">2</text>" not in text
    assert ">128</text>" in text


def test_a_trial_far_away_is_drawn_at_the_end_with_its_number() -> None:
    """17,000 where the others have 12,000; those that do not count are crosses."""
    text = drawn(whole())["trials"].file()
    assert ">+41.8%</text>" in text
    assert text.count('class="point out"') == 3  # two of trials, one of the legend
    (low,) = results({"1x1": (800.0, 100.0)})
    below = replace(low, trials=(low.trials[0], replace(low.trials[1], state="invalid")))
    assert "%</text>" in drawn(sweep((below,)))["trials"].file()


def test_iterations_show_what_each_log_prints_and_the_window() -> None:
    """A row a piece, a column a trial; the dip of the second one is in it."""
    table = drawn(whole())["iterations"].table
    assert table.head[:3] == ("case", "iterations", "trial 1")
    rows = {(row[0], row[1]): row for row in table.rows}
    assert rows["1x1 AMP(BS=256)", "100"][2] == "803.7"
    assert rows["1x1 AMP(BS=256)", "59-60"][3] == "793.9"
    text = drawn(whole())["iterations"].file()
    assert ">25</text>" in text
    assert ">95</text>" in text


def test_a_window_off_the_log_is_not_drawn() -> None:
    """Nor is one that no number was taken from."""
    (one,) = results({"1x1": (800.0, 801.0)})
    point = Trace(5, 1, 1, 1, [800.0], [800.0], [800.0])
    first, second = one.trials
    trials = (replace(first, trace=point, window=(1, 9)), replace(second, trace=point))
    text = drawn(sweep((replace(one, trials=trials),)))["iterations"].file()
    assert text.count('class="window"') == 1  # of the legend


@pytest.mark.parametrize(
    ("high", "count", "expected"),
    [(22, 5, [0, 5, 10, 15, 20, 25]), (0.01, 2, [0, 0.005, 0.01]), (3, 3, [0, 1, 2, 3])],
)
def test_ticks_are_round(high: float, count: int, expected: list[float]) -> None:
    """From 0 to the first that is not below the highest."""
    assert scales.ticks(high, count) == pytest.approx(expected)


def test_words_that_are_too_wide_are_cut() -> None:
    """With dots; a Chinese letter is as wide as high."""
    assert scales.fitted("short", 100) == "short"
    assert scales.fitted("x" * 100, 100).endswith("x…")
    assert scales.width("图") == pytest.approx(13)


def test_report_md_shows_the_figures_that_are_written() -> None:
    """By their paths beside it."""
    found = whole()
    shown = re.findall(r"\]\((figures/[^)]*)\)", report.markdown(found))
    assert shown == list(report.svg_files(found, "en"))
