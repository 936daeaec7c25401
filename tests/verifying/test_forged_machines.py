"""States of machines, and marks that follow from them, are found where they were forged."""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from orchestrator.collecting import report_files
from orchestrator.report import Language
from orchestrator.state import contents
from orchestrator.state.store import Store
from orchestrator.state.sweep import Sweep
from orchestrator.verbs.verify import check_sweep
from tests.verifying import sweeps
from tests.verifying.forging import RESULTS, Forgery, edit, found, of_case, replaced, reseal

MARKED = "1n1g/r50_b256_amp_"


def observed(sweep: Sweep, repeat: int, name: str, old: str, new: str) -> None:
    """Change what an observer wrote, and every hash of it."""
    path = sweep.attempt_folder(f"1n1g-r50_b256_amp_{repeat}", 1) / name
    replaced(path, old, new)
    reseal(sweep, f"{MARKED}{repeat}")


def no_more(sweep: Sweep, code: str) -> None:
    """Take a mark out of results.json, wherever it stands."""

    def change(document: Any) -> None:
        for holder in (document, document["canary"], *document["cases"]):
            holder["marks"] = [it for it in holder["marks"] if it["code"] != code]

    edit(sweep.folder / RESULTS, change)


OF_MACHINES: dict[str, tuple[Forgery, str]] = {
    "no more heat": (
        lambda it: observed(it, 2, "r0.gpus", "0x0000000000000020", "0x0000000000000004"),
        f"logs/{MARKED}2.json",
    ),
    "no more alien": (
        lambda it: observed(it, 4, "r0.state", ",cpu,4711,1.25", ",cpu,4711,0.25"),
        f"logs/{MARKED}4.json",
    ),
    "less power": (lambda it: observed(it, 1, "r0.gpus", ", 65", ", 45"), RESULTS),
    "a busier node": (lambda it: observed(it, 3, "r0.state", ",6.3", ",7.3"), RESULTS),
    "joules": (
        lambda it: edit(
            it.folder / RESULTS, lambda doc: of_case(doc, 0).update(energy_per_sample_j=1.5)
        ),
        RESULTS,
    ),
    "a state in results": (
        lambda it: edit(
            it.folder / RESULTS,
            lambda doc: of_case(doc, 0)["trials"][1]["machines"][0].update(sm_mhz=1980.0),
        ),
        RESULTS,
    ),
    "a row of machines": (
        lambda it: replaced(it.folder / "report.md", "| 1979 | 2619 |", "| 1980 | 2619 |"),
        "report.md",
    ),
    "a drift": (
        lambda it: edit(it.folder / RESULTS, lambda doc: doc["canary"].update(drift=0.01)),
        RESULTS,
    ),
    "the case of the canary": (
        lambda it: edit(
            it.folder / RESULTS, lambda doc: doc["canary"]["case"].update(micro_batch_size=226)
        ),
        RESULTS,
    ),
    "a row of the canary": (
        lambda it: replaced(it.folder / "report.md", "| 710.00 |", "| 769.00 |"),
        "report.md",
    ),
    "a slow node": (
        lambda it: replaced(it.folder / "report.md", "vs3 is 6.0% slower", "vs4 is 6.0% slower"),
        "report.md",
    ),
    "the speed of a node": (
        lambda it: edit(it.folder / RESULTS, lambda doc: doc["node_speeds"][2].update(speed=1.0)),
        RESULTS,
    ),
    "how far an outlier is": (
        lambda it: replaced(it.folder / RESULTS, "6.0% below the median", "4.0% below the median"),
        RESULTS,
    ),
    **{
        f"no more {code}": (partial(no_more, code=code), RESULTS)
        for code in (
            *("SLOW-NODE", "DRIFT", "BESIDE", "NODE-SETS", "OUTLIER"),
            *("WIDE-SPREAD", "THROTTLED", "CPU-LOADED"),
        )
    },
}
"""As FORGERIES, in a sweep in which everything was marked."""


@pytest.mark.parametrize("name", OF_MACHINES)
def test_a_forged_mark_or_state_is_found(
    untouched: dict[str, Sweep], tmp_path: Path, name: str
) -> None:
    """Marks, states of machines, joules, canaries, and speeds of nodes."""
    forge, file = OF_MACHINES[name]
    assert file in found(sweeps.copied(untouched["marked"], tmp_path), forge)


def other_seconds_drawn(content: str) -> str:
    """The end of a span over which a node's clocks were held down."""
    return re.sub(r"(\d\.\d-)\d+(?=\.\d s</text>)", r"\g<1>999", content, count=1)


def a_row_left_out(content: str) -> str:
    """The name of the first one of the figure's bars."""
    return re.sub(r"<text[^>]*>[^<]*\d\.\d-[\d.]+ s</text>", "", content, count=1)


def no_more_heat_drawn(content: str) -> str:
    """What held a clock down, in every row of the figure."""
    return re.sub(r"sw_thermal_slowdown(?=\W ?[\d.]+-[\d.]+ s</text>)", "-", content)


def another_trial_drawn(content: str) -> str:
    """Another number of a trial."""
    return re.sub(r"(?:trial|试验) 2(?=\W ?vs2\W)", "trial 99", content)


@pytest.mark.parametrize(
    "change", [other_seconds_drawn, a_row_left_out, no_more_heat_drawn, another_trial_drawn]
)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_forged_figure_of_machines_is_found(
    tmp_path: Path, language: Language, change: Callable[[str], str]
) -> None:
    """In the words of its bars, in both languages; all sums are made anew."""
    sweep = sweeps.collected(Store(tmp_path), sweeps.marked(), language)
    path = sweep.folder / report_files.html(language)
    content = path.read_text()
    path.write_text(change(content))
    assert path.read_text() != content
    contents.keep_sums(sweep)
    differences = check_sweep(sweep).differences
    assert {difference.file for difference in differences} == {path.name}, differences
