"""Figures: drawn where there is something to draw, with words and data for those who do not see."""

import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from orchestrator import report
from orchestrator.measuring import medians
from orchestrator.model.log import reduce_rates
from orchestrator.model.report import Report
from orchestrator.report import figures
from orchestrator.report.figures import figure as shapes
from orchestrator.report.figures.figure import WIDTH, Figure
from orchestrator.report.page import Page
from tests.report.pages import whole
from tests.reported import logged, results, sweep

SVG = "{http://www.w3.org/2000/svg}"


def drawn(found: Report, language: report.Language = "en") -> dict[str, Figure]:
    """The figures of a report by name."""
    return {figure.name: figure for figure in figures.of_page(Page(found, language))}


@pytest.mark.parametrize("language", report.LANGUAGES)
def test_each_is_a_picture_with_title_description_and_data(language: report.Language) -> None:
    """As a file of its own that any reader of XML takes, and that fetches nothing."""
    found = drawn(whole(), language)
    assert list(found) == ["scaling", "trials", "iterations", "throttling"]
    for figure in found.values():
        root = ET.fromstring(figure.file())
        assert root.tag == f"{SVG}svg"
        assert root.get("role") == "img"
        (title, desc) = root.findall(f"{SVG}title")[0], root.findall(f"{SVG}desc")[0]
        assert (title.text, desc.text) == (figure.title, figure.summary)
        assert figure.summary
        assert "href" not in figure.file()


def test_nothing_is_cut_off() -> None:
    """Every shape lies inside of its picture, and every text begins and ends there."""
    for figure in drawn(whole()).values():
        root = ET.fromstring(figure.file())
        for shape in root.iter():
            places = [(n, float(shape.get(n, 0))) for n in ("x", "y")]
            for name, place in places:
                most = WIDTH if name.startswith("x") else figure.height
                assert 0 <= place <= most, (figure.name, shape.attrib)
            for x, y in re.findall(r"[ML]([-\d.]+) ([-\d.]+)", shape.get("d", "")):
                assert 0 <= float(x) <= WIDTH, (figure.name, shape.attrib)
                assert 0 <= float(y) <= figure.height, (figure.name, shape.attrib)
        for text in root.iter(f"{SVG}text"):
            assert figure.height - 2 > float(text.get("y", 0)) > 8, (figure.name, text.text)
            look, wide = (text.get("class") or "").split(), shapes.width(text.text or "")
            begin = float(text.get("x", 0)) - wide * (("end" in look) + ("mid" in look) / 2)
            assert begin >= 0, (figure.name, text.text)
            assert begin + wide <= WIDTH, (figure.name, text.text)


def test_the_end_of_a_window_at_the_end_of_a_log_is_not_cut_off() -> None:
    """Its number stands left of the edge of the picture."""
    (one,) = results({"1x1": (800.0,)})
    trace = reduce_rates(1, 1000, [800.0] * 100)
    trials = (logged(one.trials[0], trace=trace, window=(1001, 99_001)),)
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
    """A point with its number for each case, and one diamond where others published a number."""
    text = drawn(whole())["scaling"].file()
    assert "<title>1x1: 802.90 images/s</title>" in text
    assert text.count("<title>published</title>") == 1
    assert len(re.findall('class="ideal s[01]"', text)) == 2
    share = 22764.65 / (802.9 * 32)
    assert f"with 32 GPUs {share:.1%} of the ideal" in text


def test_cases_of_equal_size_stand_beside_one_another() -> None:
    """1x2 and 2x1 have two processes each, and two series have the same sizes."""
    same = {"1x1": (100.0, 101.0), "1x2": (200.0, 201.0), "2x1": (200.0, 201.0)}
    text = drawn(sweep((*results(same), *results(same, precision="fp32"))))["scaling"].file()
    places = re.findall(r'class="point s[01] full" d="M([\d.]+) ', text)
    assert len(places) == 6 + 2  # and those of the legend, below one another
    assert len(set(places)) == 6 + 1


def test_equal_trials_are_seen_beside_one_another() -> None:
    """No dot hides another."""
    text = drawn(sweep(results({"1x1": (800.0,) * 5})))["trials"].file()
    places = re.findall(r'class="point s0 open" d="M([\d.]+) ([\d.]+)m', text)
    assert len(set(places)) == len(places) == 5 + 1


def test_labels_are_whole_however_long() -> None:
    """Beside dots: they go on in another line."""
    (one, two) = results({"1x1": (4.9, 5.0), "1x8": (30.0, 31.0)}, micro_batch_size=8)
    trace = reduce_rates(1, 1, [4.9] * 9)
    trials = tuple(logged(trial, trace=trace, window=(2, 8)) for trial in one.trials)
    names = {one.case: "2D_PP_2x4x4_512_2304x24_with_a_longer_name", two.case: "DP_8x1x1"}
    found = drawn(sweep((replace(one, trials=trials), two), names=names))
    texts = re.findall("<text[^>]*>(.*?)</text>", found["trials"].file())
    assert names[one.case] in "".join(texts)
    assert "…" not in "".join(texts)


def test_cases_of_any_speed_share_one_axis() -> None:
    """Each by its own median: the numbers below are of all iterations."""
    one, two = results({"1x1": (100.0,), "4x8": (3000.0,)})
    traced = [
        replace(it, trials=(logged(it.trials[0], trace=reduce_rates(1, 1, [v] * n)),))
        for it, v, n in ((one, 90.0, 50), (two, 3100.0, 80))
    ]
    text = drawn(sweep(tuple(traced)))["iterations"].file()
    ticks = re.findall(r">([0-9]+%?)</text>", text)
    assert ("80" in ticks, "100%" in ticks, "50" in ticks) == (True, True, False)
    lines = re.findall(r'class="line thin s0" d="M([^"]*)"><title>', text)
    assert [len(line.split("L")) for line in lines] == [50, 80]


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
    """A line for each trial, both ends of the window, and how far rates lie apart in it."""
    figure = drawn(whole())["iterations"]
    text = figure.file()
    assert ">25</text>" in text
    assert ">95</text>" in text
    assert "<title>1n1g-r50_b256_amp_2</title>" in text
    assert figure.summary.endswith("in which rates lie between 67.8% and 101.3%.")


def test_a_window_off_the_log_is_not_drawn() -> None:
    """Nor is one that no number was taken from."""
    (one,) = results({"1x1": (800.0, 801.0)})
    point = reduce_rates(5, 1, [800.0])
    first, second = one.trials
    trials = (logged(first, trace=point, window=(1, 9)), logged(second, trace=point))
    text = drawn(sweep((replace(one, trials=trials),)))["iterations"].file()
    assert text.count('class="window"') == 1  # of the legend


@pytest.mark.parametrize(
    ("high", "count", "expected"),
    [(22, 5, [0, 5, 10, 15, 20, 25]), (0.01, 2, [0, 0.005, 0.01]), (3, 3, [0, 1, 2, 3])],
)
def test_ticks_are_round(high: float, count: int, expected: list[float]) -> None:
    """From 0 to the first that is not below the highest."""
    assert shapes.ticks(high, count) == pytest.approx(expected)


def test_words_that_are_too_wide_go_on_in_another_line() -> None:
    """Behind a mark where there is one; a Chinese letter is as wide as high."""
    assert shapes.wrapped("short", 100) == ["short"]
    assert shapes.wrapped("2D_PP_2x4x4_512_2304x24", 100) == ["2D_PP_2x4x4_", "512_2304x24"]
    assert "".join(shapes.wrapped("x" * 100, 100)) == "x" * 100
    assert shapes.width("图") == pytest.approx(13)


def test_report_md_shows_the_figures_that_are_written() -> None:
    """By their paths beside it."""
    found = whole()
    shown = re.findall(r"\]\((figures/[^)]*)\)", report.markdown(found))
    assert shown == list(report.svg_files(found, "en"))
