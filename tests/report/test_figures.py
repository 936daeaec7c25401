"""Figures: drawn where there is something to draw, with words and data for those who do not see."""

import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from orchestrator import report
from orchestrator.measuring import medians
from orchestrator.model.log import reduce_rates
from orchestrator.model.report import Report
from orchestrator.model.telemetry import HeldClocks
from orchestrator.report import figures
from orchestrator.report.figures import figure as shapes
from orchestrator.report.figures.figure import WIDTH, Figure
from orchestrator.report.page import Page
from tests.report.pages import changed, held, stopped, whole
from tests.report.throttled import throttled
from tests.reported import logged, results, sweep

SVG = "{http://www.w3.org/2000/svg}"
HOT = throttled("vs002", 60, (*range(20, 31), 40))
LATE = replace(HOT, window_s=(8.0, 99.0), spans=((59.0, HOT.last_s),))
(ONE,) = results({"1x1": (800.0, 801.0)})


def drawn(found: Report, language: report.Language = "en") -> dict[str, Figure]:
    """Return the figures of a report by name."""
    return {figure.name: figure for figure in figures.of_page(Page(found, language))}


def text_of(found: Report, name: str) -> str:
    return drawn(found)[name].file()


def with_traces(*windows: tuple[int, int] | None) -> Report:
    """Return the report of a case whose trials print 100 rates and have these windows."""
    trials = (
        logged(trial, trace=reduce_rates(1, 1000, [800.0] * 100), window=window)
        for trial, window in zip(ONE.trials, windows, strict=False)
    )
    return sweep((replace(ONE, trials=tuple(trials)),))


def with_held(*clocks: HeldClocks) -> Report:
    """Return the report of one case, whose second trial had these clocks held down."""
    (one,) = results({"2x8": (12003.4, 11991.9)})
    return sweep((held(one, 2, *clocks),))


@pytest.mark.parametrize("language", report.LANGUAGES)
def test_each_is_a_picture_with_title_description_and_data(language: report.Language) -> None:
    """As a file of its own that any reader of XML takes, and that fetches nothing."""
    found = drawn(whole(), language)
    assert list(found) == ["scaling", "trials", "iterations", "throttling"]
    for figure in found.values():
        root = ET.fromstring(figure.file())
        assert (root.tag, root.get("role")) == (f"{SVG}svg", "img")
        (title, desc) = root.findall(f"{SVG}title")[0], root.findall(f"{SVG}desc")[0]
        assert (title.text, desc.text) == (figure.title, figure.summary)
        assert figure.summary
        assert "href" not in figure.file()


@pytest.mark.parametrize("language", report.LANGUAGES)
@pytest.mark.parametrize("found", [whole(), with_held(HOT, LATE)], ids=["whole", "held"])
def test_nothing_is_cut_off(found: Report, language: report.Language) -> None:
    """Every shape lies inside of its picture, and every text begins and ends there."""
    for figure in drawn(found, language).values():
        root = ET.fromstring(figure.file())
        for shape in root.iter():
            x, y, wide, tall = (
                float(shape.get(name, 0)) if shape is not root else 0
                for name in ("x", "y", "width", "height")
            )
            assert 0 <= x <= x + wide <= WIDTH, (figure.name, shape.attrib)
            assert 0 <= y <= y + tall <= figure.height, (figure.name, shape.attrib)
            for x, y in (
                map(float, pair)
                for pair in re.findall(r"[ML]([-\d.]+) ([-\d.]+)", shape.get("d", ""))
            ):
                assert 0 <= x <= WIDTH, (figure.name, shape.attrib)
                assert 0 <= y <= figure.height, (figure.name, shape.attrib)
        for text in root.iter(f"{SVG}text"):
            assert figure.height - 2 > float(text.get("y", 0)) > 8, (figure.name, text.text)
            look, pixels = (text.get("class") or "").split(), shapes.width(text.text or "")
            begin = float(text.get("x", 0)) - pixels * (("end" in look) + ("mid" in look) / 2)
            assert 0 <= begin <= begin + pixels <= WIDTH, (figure.name, text.text)


@pytest.mark.parametrize(
    ("values", "names"),
    [
        ({"1x8": (800.0,)}, ["trials"]),
        ({"1x8": (None,)}, []),
        ({"1x1": (800.0,), "1x8": (None,)}, ["trials"]),
        ({"1x1": (800.0,), "1x8": (6000.0,)}, ["scaling", "trials"]),
    ],
    ids=["one size", "no number", "one number", "two sizes"],
)
def test_figures_need_something_to_draw(
    values: dict[str, tuple[float | None, ...]], names: list[str]
) -> None:
    assert list(drawn(sweep(results(values)))) == names


SERIES = (("loss_scale", "dynamic"), ("data_backend", "dali-cpu"), ("memory_format", "nhwc"))
TWO_BATCHES = tuple(
    one
    for batch in (64, 96)
    for one in results({"1x1": (8.0,), "1x4": (30.0,)}, micro_batch_size=batch, params=SERIES)
)
NEAR = results({"1x1": (800.0,), "1x2": (1600.0,), "16x8": (90000.0, 91000.0)})
(LOW,) = results({"1x1": (800.0, 100.0)})
FAR_BELOW = changed(LOW, 2, state="invalid")
UNNAMED = replace(HOT, limits=(), window_s=None)


@pytest.mark.parametrize(
    ("name", "found", "pattern", "count"),
    [
        ("scaling", whole(), "<title>1x1: 802.90 images/s</title>", 1),
        ("scaling", whole(), 'class="ideal s[01]"', 2),
        ("scaling", whole(), f"with 32 GPUs {22764.65 / (802.9 * 32):.1%} of the ideal", 1),
        ("scaling", whole(), "<title>published</title>", 1),
        ("scaling", stopped(), "<title>published</title>", 1),
        ("scaling", sweep(TWO_BATCHES), r">AMP\(BS=(64|96)\)</text>", 2),
        ("scaling", sweep(NEAR), ">(1|128)</text>", 2),
        ("scaling", sweep(NEAR), ">2</text>", 0),
        ("trials", whole(), r">\+41.8%</text>", 1),
        ("trials", whole(), 'class="point out"', 2 + 1),
        ("trials", sweep((FAR_BELOW,)), ">-87.5%</text>", 1),
        ("iterations", whole(), ">(25|95)</text>", 2),
        ("iterations", whole(), "<title>1n1g-r50_b256_amp_2</title>", 2),
        ("iterations", whole(), "in which rates lie between 67.8% and 101.3%.", 1),
        ("throttling", with_held(HOT), '<rect class="held"', 2 + 1),
        ("throttling", with_held(HOT), '<rect class="window"', 1 + 1),
        (
            "throttling",
            with_held(HOT),
            ">2x8, trial 2, vs002, sw_thermal_slowdown, 20.1-40.1 s<",
            1,
        ),
        ("throttling", with_held(HOT), "held down: 1; drawn: 1.</desc>", 1),
        ("throttling", with_held(UNNAMED), "2x8, trial 2, vs002, heat or brakes, 20.1-40.1 s", 1),
        ("throttling", with_held(UNNAMED), '<rect class="window"', 1),
    ],
)
def test_a_figure_shows_so_many_of(name: str, found: Report, pattern: str, count: int) -> None:
    """Each number, sign and word; signs are in the legend once more.

    The second published result of a case is not drawn. Labels that would print over each other are
    left out. A trial that is far away is drawn at the end, with its number: 17,000 images/s where
    the others have 12,000.
    """
    assert len(re.findall(pattern, text_of(found, name))) == count


def test_cases_of_equal_size_stand_beside_one_another() -> None:
    """1x2 and 2x1 have two processes each, and two series have the same sizes."""
    same = {"1x1": (100.0, 101.0), "1x2": (200.0, 201.0), "2x1": (200.0, 201.0)}
    text = text_of(sweep((*results(same), *results(same, precision="fp32"))), "scaling")
    places = re.findall(r'class="point s[01] full" d="M([\d.]+) ', text)
    assert len(places) == 6 + 2  # and those of the legend, below one another
    assert len(set(places)) == 6 + 1


def test_series_differ_in_more_than_color() -> None:
    """Another dash and another marker each; more than six series go into more pictures."""
    sizes = {"1x1": (800.0,), "1x4": (3000.0,)}
    many = [one for batch in range(1, 9) for one in results(sizes, micro_batch_size=batch)]
    found = drawn(sweep(tuple(many)))
    assert list(found)[:2] == ["scaling", "scaling-2"]
    titles = [found[name].title for name in ("scaling", "scaling-2")]
    assert [title[-5:] for title in titles] == ["(1/2)", "(2/2)"]  # a page's regions have names
    dashes = re.findall(r'class="line s(\d) d(\d)"', found["scaling"].file())
    assert set(dashes) == {(f"{n}", f"{n}") for n in range(6)}


def test_equal_trials_are_seen_beside_one_another() -> None:
    text = text_of(sweep(results({"1x1": (800.0,) * 5})), "trials")
    places = re.findall(r'class="point s0 open" d="M([\d.]+) ([\d.]+)m', text)
    assert len(set(places)) == len(places) == 5 + 1  # and that of the legend


def test_a_trial_that_does_not_count_is_drawn_in_front_of_others() -> None:
    """Whichever trial it is."""
    (one,) = results({"1x1": (800.0, 800.0, 800.0)})
    out = replace(one.trials[0], state="invalid")
    found = medians.result(one.case, (out, *one.trials[1:]))
    points = re.findall(r'class="point ([^"]*)"', text_of(sweep((found,)), "trials"))
    assert points[-1] == "out"


def test_long_names_of_cases_go_on_in_another_line() -> None:
    """Beside dots, they are whole."""
    name = "2D_PP_2x4x4_512_2304x24_with_a_longer_name"
    text = text_of(sweep((ONE,), names={ONE.case: name}), "trials")
    words = "".join(re.findall("<text[^>]*>(.*?)</text>", text))
    assert name in words
    assert "…" not in words


def test_cases_of_any_speed_share_the_axis_of_iterations() -> None:
    """Each by its own median: the numbers below are of all iterations."""
    one, two = results({"1x1": (100.0,), "4x8": (3000.0,)})
    traced = [
        replace(it, trials=(logged(it.trials[0], trace=reduce_rates(1, 1, [v] * n)),))
        for it, v, n in ((one, 90.0, 50), (two, 3100.0, 80))
    ]
    text = text_of(sweep(tuple(traced)), "iterations")
    ticks = re.findall(r">([0-9]+%?)</text>", text)
    assert ("80" in ticks, "100%" in ticks, "50" in ticks) == (True, True, False)
    lines = re.findall(r'class="line thin s0" d="M([^"]*)"><title>', text)
    assert [len(line.split("L")) for line in lines] == [50, 80]


@pytest.mark.parametrize(
    ("windows", "count"),
    [(((1001, 99_001), None), 2), (((0, 9), None), 1), (((90_000, 100_002), None), 1)],
    ids=["in the log", "before it", "behind it"],
)
def test_a_window_off_the_log_is_not_drawn(
    windows: tuple[tuple[int, int] | None, ...], count: int
) -> None:
    """One is in the legend; the number of an end at the edge stands left of that edge."""
    text = text_of(with_traces(*windows), "iterations")
    assert text.count('class="window"') == count
    is_drawn = re.search(r'<text class="end small"[^>]*>99001<', text)
    assert bool(is_drawn) == (count == 2)


def test_of_many_nodes_with_held_clocks_the_first_are_drawn() -> None:
    """And it says how many there are; marks of trials name all."""
    many = (replace(HOT, node=f"vs{count:03}") for count in range(30))
    figure = drawn(with_held(*many))["throttling"]
    assert figure.summary.endswith("held down: 30; drawn: 24.")
    assert figure.height < 1200


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
    shown = re.findall(r"\]\((figures/[^)]*)\)", report.markdown(whole()))
    assert shown == list(report.svg_files(whole(), "en"))
