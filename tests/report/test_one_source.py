"""Whatever a report holds, report.md and report.html have the same tables and numbers."""

import random
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from typing import Literal

import pytest

from orchestrator import report
from orchestrator.measuring import medians
from orchestrator.model.problem import Problem
from orchestrator.model.report import Layout, LoneLog, Report
from orchestrator.model.result import NodeSpeed, Result, Watched
from orchestrator.report import Language
from tests.report.pages import whole
from tests.report.test_machines import STATE
from tests.reported import LOG, PUBLISHED, folder, logged, results, sweep, tables

Rows = tuple[tuple[str, ...], ...]
KINDS: tuple[Literal["placements", "groups"], ...] = ("placements", "groups")
NUMBER = re.compile(r"(?<![\w.])[-+]?[0-9]+(?:\.[0-9]+)?(?![\w.])")


def of_markdown(found: Report, language: Language) -> list[Rows]:
    """Every table of report.md, without escapes."""
    text = report.markdown(found, language)
    return sorted(
        tuple(tuple(re.sub(r"\\(.)", r"\1", cell) for cell in row) for row in table)
        for table in tables(text)
    )


def of_html(found: Report, language: Language) -> list[Rows]:
    """Every table of report.html."""
    page = report.html_page(found, language, {})
    blocks = map(ET.fromstring, re.findall("<table>.*?</table>", page, re.DOTALL))
    return sorted(
        tuple(tuple("".join(cell.itertext()) for cell in row) for row in block.iter("tr"))
        for block in blocks
    )


def case_results(draw: random.Random) -> list[Result]:
    """Some cases of one series: medians, failures, marks, latencies, transports, machines."""
    places = draw.sample(["1x1", "1x4", "1x8", "2x4", "2x8", "4x8"], draw.randint(1, 5))
    batch, precision = draw.choice([64, 128, 256]), draw.choice(["fp32", "amp"])
    values = {
        place: [draw.choice([None, draw.uniform(0.5, 40_000)]) for _ in range(draw.randint(1, 7))]
        for place in places
    }
    found = []
    params = draw.choice([(), (("loss_scale", "dynamic"),), (("group", "DP_2"),)])
    for one in results(values, micro_batch_size=batch, precision=precision, params=params):
        trials = [
            replace(
                logged(
                    trial,
                    latency_s=draw.choice([None, draw.uniform(0.001, 20)]),
                    memory_mib=draw.choice([None, draw.randint(100, 80_000)]),
                ),
                transport=draw.choice(["-", "IB mlx5_0", "Socket eth0"]),
                marks=draw.choice([(), (Problem("GAP", "line 90"),)]),
                machines=draw.choice([(), (STATE,)]),
            )
            for trial in one.trials
        ]
        found.append(medians.result(one.case, trials))
    return found


def drawn(seed: int) -> Report:
    """A sweep or a folder of logs of any shape, the same one for the same seed."""
    draw = random.Random(seed)
    series = {one.case: one for _ in range(draw.randint(0, 3)) for one in case_results(draw)}
    found = medians.compared(list(series.values()))
    lone = tuple(
        LoneLog(f"{number}_x.txt", LOG, draw.choice([None, draw.uniform(1, 9999)]), ())
        for number in range(draw.choice([0, 0, 1, 3]) if found else 2)
    )
    layout = Layout(kind=draw.choice(KINDS), decimals=draw.choice([0, 1, 2]))
    cases = [one.case for one in found]
    known = draw.sample(cases, draw.randint(0, len(cases)))
    speeds = tuple(NodeSpeed(f"vs00{n}", n, draw.uniform(0.8, 1.1), n == 2) for n in (1, 2, 3))
    more: dict[str, object] = {
        "layout": layout,
        "published": {case: (PUBLISHED, replace(PUBLISHED, throughput=0.75)) for case in known},
        "step_flops": {case: draw.uniform(1e12, 1e15) for case in known},
        "peak_tflops": dict.fromkeys(known[:2], 125.0),
        "names": {case: f"2D_PP_{n}x4x4_512_9x9" for n, case in enumerate(known[:2])},
        "node_speeds": draw.choice([(), speeds]),
    }
    if found and draw.random() < 0.5:
        trials = found[0].trials[:2]
        places = ("start", "end")[: len(trials)]
        more["canary"] = Watched(found[0].case, places, trials, 0.04, 0.03, ())
    made = folder(*lone, found=found) if draw.random() < 0.3 else sweep(found, lone=lone)
    return replace(made, **more)  # type: ignore[arg-type] # one field of each type


@pytest.mark.parametrize("language", report.LANGUAGES)
@pytest.mark.parametrize("seed", range(40))
def test_both_pages_have_the_same_tables(seed: int, language: Language) -> None:
    """Head by head and cell by cell."""
    found = drawn(seed)
    assert of_markdown(found, language) == of_html(found, language)


@pytest.mark.parametrize("language", report.LANGUAGES)
@pytest.mark.parametrize("seed", range(40))
def test_every_number_of_a_table_is_printed_the_same_in_the_page(
    seed: int, language: Language
) -> None:
    """Also those of sentences and lists around the tables."""
    found = drawn(seed)
    text = re.sub(r"\\(.)", r"\1", report.markdown(found, language))
    page = re.sub("<[^>]*>", " ", report.html_page(found, language, {}))
    assert set(NUMBER.findall(text)) <= set(NUMBER.findall(page))


@pytest.mark.parametrize("language", report.LANGUAGES)
def test_a_report_with_everything_has_the_same_tables(language: Language) -> None:
    """The one that other tests of pages have, with facts of nodes that are alike."""
    assert of_markdown(whole(), language) == of_html(whole(), language)


def test_logs_that_belong_to_no_case_have_rule_and_transport_in_both() -> None:
    """As in N24: the page lacked how their number was taken, and what they ran over."""
    found = folder(LoneLog("a.txt", replace(LOG, rule="clock"), 6098.37, ()))
    ((head, row),) = of_html(found, "en")
    assert "measured by" in head
    assert row[head.index("measured by")] == "clock 20-60"


def test_decimals_of_a_layout_hold_in_both_and_in_figures() -> None:
    """As in N24: 392.2 beside 392.23 for one number."""
    one, two = results({"1x1": (392.2345,), "1x4": (1500.4567,)})
    found = sweep(
        (one, two), layout=Layout(decimals=1), published={one.case: (PUBLISHED,), two.case: ()}
    )
    for language in report.LANGUAGES:
        text = report.markdown(found, language) + report.html_page(found, language, {})
        text += "".join(report.svg_files(found, language).values())
        assert "392.2" in text
        assert "392.23" not in text
        assert "1500.46" not in text
