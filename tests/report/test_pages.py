"""report.md and report.html of whole sweeps and folders, as a reader sees them.

The numbers of recorded pages are checked by test_numbers, against results.json.
"""
# ruff: noqa: RUF001 - Chinese has punctuation of its own

import re
from dataclasses import replace

import pytest
from syrupy.assertion import SnapshotAssertion

from orchestrator import __version__, nodeset, report
from orchestrator.model.log import Fabric, Port
from orchestrator.model.problem import Problem
from orchestrator.model.report import Layout, LoneLog, Report
from orchestrator.report import verdict
from orchestrator.report.page import Page
from tests.report.pages import CPU_ONLY, GAP, REPORTS, STATE, watched
from tests.reported import LOG, SEED_AMP, folder, logged, results, rows, sweep

# English words of a Chinese page beside its data: units, codes, names of things and methods.
NAMES = {
    *("AMP", "FP32", "BS", "CPU", "GPU", "HCA", "SM", "MHz", "J", "C", "GiB", "MiB", "ms"),
    *("TFLOP/s", "UTC", "n/a", "Welch", "sha256"),
    *("dlperf-orch", "COMPLETE", "INCOMPLETE", "MARKED", "SHARED-MACHINE", "UNLOCKED"),
}
ONE, FOUR = results({"1x1": (800.0, 801.0), "1x4": (3000.0, 3001.0)})
MANY = results({"1x1": [800.0] * 9})[0]


def one_trial(**fields: object) -> Report:
    """Return the report of one trial with these fields."""
    (one,) = results({"1x1": (800.0,)})
    trials = (replace(one.trials[0], **fields),)  # type: ignore[arg-type] # passed on
    return sweep((replace(one, trials=trials),))


@pytest.mark.parametrize("language", report.LANGUAGES)
@pytest.mark.parametrize("name", REPORTS)
def test_a_page_reads_as_recorded(
    name: str, language: report.Language, snapshot: SnapshotAssertion
) -> None:
    """A new recording is reviewed by reading it."""
    found = report.markdown(REPORTS[name](), language)
    assert found.replace(__version__, "VERSION") == snapshot


def test_the_lines_of_a_terminal_read_as_recorded(snapshot: SnapshotAssertion) -> None:
    """The verdict stands above tables whose cells show codes without their meanings."""
    lines = []
    for found in (make() for make in REPORTS.values()):
        lines += ["", *report.first_lines(found)]
        for title, head, cells in report.terminal_tables(found):
            lines += [title, *(" | ".join(row) for row in (head, *cells))]
    assert "\n".join(lines) == snapshot


def join_values(item: object) -> str:
    """Return the values of a document without its keys, which are English words."""
    if isinstance(item, dict):
        return " ".join(map(join_values, item.values()))
    return " ".join(map(join_values, item)) if isinstance(item, list | tuple) else str(item)


@pytest.mark.parametrize("name", REPORTS)
def test_english_words_in_a_chinese_page_are_names_or_data(name: str) -> None:
    """Data is a value of results.json, a node, a finding, or a command line."""
    found = REPORTS[name]()
    nodes = f"{list(found.environment)} {nodeset.fold(list(found.environment))}"
    seen = f"{found.findings} {found.commands} {found.added_env} {nodes}"
    data = f"{join_values(report.document(found))} {seen}"
    text = re.sub("```.*?```|`.*?`", "", report.markdown(found, "zh"), flags=re.DOTALL)
    text = re.sub(r"[A-Z][A-Z0-9-]+（[^（）]*）|\(figures/\S+\.svg\)|\\", "", text)
    words = set(re.findall(r"(?<![\w./-])[A-Za-z][\w/-]*", text, re.ASCII))
    assert {word for word in words - NAMES if word not in data} == set()


TRUSTED = "the number can be trusted."
DOUBTED = "read why before you rely on it"
DRIFTED = watched(802.9, 790.0, 780.0).canary


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (sweep((ONE, FOUR), trials_planned=2), TRUSTED),
        (sweep((ONE, FOUR), trials_planned=2, shared_machine=True), "nodes share one machine"),
        (
            sweep(
                (ONE, replace(FOUR, trials=(replace(FOUR.trials[0], marks=(GAP,)),))),
                trials_planned=2,
            ),
            DOUBTED,
        ),
        (sweep((ONE, FOUR), trials_planned=2, marks=(GAP,)), DOUBTED),
        (sweep((ONE, FOUR), trials_planned=2, canary=DRIFTED), DOUBTED),
        (sweep((ONE, FOUR), trials_planned=3), DOUBTED),
        (sweep(results({"1x4": (3000.0,)}), trials_planned=1), "It is a single trial"),
        (
            sweep(results({"1x1": (800.0, None), "1x4": (3000.0, 3001.0)}), trials_planned=2),
            TRUSTED,
        ),
    ],
    ids=["sound", "shared", "mark", "all", "drift", "lacking", "single", "other case failed"],
)
def test_the_headline_gives_the_gravest_reason_against_its_number(
    found: Report, reason: str
) -> None:
    assert reason in report.markdown(found).replace("\\", "")


@pytest.mark.parametrize(
    ("found", "begins"),
    [
        (sweep(results(SEED_AMP)), "COMPLETE: 15 of 15 trials count; 3 of 3 cases"),
        (sweep((replace(ONE, marks=(GAP,)),)), "MARKED: 2 of 2 trials count, some with marks;"),
        (sweep(results({"1x1": (1.0, None)})), "INCOMPLETE: 1 of 2 trials count; 1 of 1 cases"),
        (sweep(results({"1x1": (None,)})), "NO RESULT: 0 of 1 trials count; 0 of 1 cases"),
        (folder(LoneLog("a.txt", LOG, 1.0, ())), "COMPLETE: 1 of 1 logs count"),
        (folder(LoneLog("a.txt", LOG, None, (GAP,))), "NO RESULT: 0 of 1 logs count"),
    ],
    ids=["complete", "marked", "incomplete", "empty", "logs", "no log"],
)
def test_the_first_sentence_says_how_much_counts(found: Report, begins: str) -> None:
    assert next(iter(verdict.sentences(Page(found, "en")))).startswith(begins)


def test_a_code_of_many_trials_is_one_line_with_three_names() -> None:
    trials = tuple(replace(trial, marks=(GAP,)) for trial in MANY.trials)
    ((begin, rest),) = verdict.lines(Page(sweep((replace(MANY, trials=trials),)), "en"))
    assert begin + rest == (
        "mark: GAP (an iteration in the window was unusually slow):"
        f" 1n1g-r50_b256_amp_1: {GAP.message};"
        " also 1n1g-r50_b256_amp_2, 1n1g-r50_b256_amp_3 and 6 more"
    )


def test_problems_come_before_marks_and_marks_of_the_sweep_before_those_of_trials() -> None:
    """A mark of a case that its trials have is named at the trials alone."""
    one, four, many = results(SEED_AMP)
    gap, wide = Problem("GAP", "in 2"), Problem("WIDE-SPREAD", "12.0 %")
    four = replace(four, trials=tuple(replace(it, marks=(GAP,)) for it in four.trials))
    lost = replace(many.trials[0], state="invalid", problems=(Problem("LOG-CHANGED", "x"),))
    many = replace(many, trials=(lost, *many.trials[1:]))
    found = sweep(
        (replace(one, marks=(wide,)), replace(four, marks=(gap,)), many),
        marks=(Problem("SLOW-NODE", "vs003"),),
    )
    codes = [
        ("LOG-CHANGED", False, ("4n8g-r50_b256_amp_1",)),
        ("SLOW-NODE", True, ("v100x4",)),
        ("GAP", True, tuple(f"1n4g-r50_b256_amp_{n}" for n in range(1, 6))),
        ("WIDE-SPREAD", True, ("1x1",)),
    ]
    groups = verdict.group_by_code(found)
    assert [(group.code, group.counts, group.where) for group in groups] == codes
    document = report.document(found)["verdict"]
    assert document == {
        "level": "incomplete",
        "trials_valid": 14,
        "trials": 15,
        "cases_with_result": 3,
        "cases": 3,
        "known": [{"code": c, "counts": n, "where": list(w)} for c, n, w in codes],
    }


PORT = Fabric(networks=("IB",), ports=(Port("mlx5_0", 1, "IB"),))
SPLIT = results({"1x4": (2000.0,)}, accumulation_steps=2, tensor_parallel=4, pipeline_parallel=1)


@pytest.mark.parametrize(
    ("found", "has", "lacks"),
    [
        (sweep(results({"1x1": (None,)})), ["> **NO RESULT"], ["Best"]),
        (folder(found=results(SEED_AMP)), [], ["UNLOCKED", "- Image", "- Duration", "Published"]),
        (one_trial(marks=(Problem("WAS-ONCE", "x"),)), ["| WAS-ONCE: x |"], []),
        (
            one_trial(marks=(Problem("CPU-LOADED", "a"), Problem("CPU-LOADED", "b"))),
            ["| CPU-LOADED (others used the node's CPUs): a; b |"],
            [],
        ),
        (folder(LoneLog("a.txt", replace(LOG, fabric=PORT), 8.0, ())), [r"| IB mlx5\_0 |"], []),
        (sweep(results({"1x1": (802.9,), "4x8": (None,)})), ["| 4x8 | n/a | n/a |"], ["no valid"]),
        (
            sweep((*results(SEED_AMP), *SPLIT)),
            [
                r"| 1x4 AMP(BS=256, accumulation\_steps=2, tensor\_parallel=4) |",
                r"AMP, batch size 256, on cuda, accumulation\_steps 2, tensor\_parallel 4",
            ],
            [],
        ),
        (sweep(results(SEED_AMP), rule="clock", window=None), ["of a log: by what"], ["trial:"]),
        (sweep(results(SEED_AMP)), [], ["anary", "State of the machines", "FIRST", "Published"]),
        (sweep(results(SEED_AMP), layout=Layout(decimals=1)), ["Best: 22551.2 images/s"], []),
    ],
    ids=[
        *("no result", "folder", "unknown code", "code twice", "fabric of a log", "case failed"),
        *("settings", "no window", "plain", "decimals"),
    ],
)
def test_what_a_page_says_of_single_matters(
    found: Report, has: list[str], lacks: list[str]
) -> None:
    text = report.markdown(found)
    assert [words for words in has if words not in text] == []
    assert [words for words in lacks if words in text] == []


@pytest.mark.parametrize(
    ("fields", "cells"),
    [
        ({"machines": (replace(STATE, limits=()),)}, {"limits seen": "none seen"}),
        ({"machines": (replace(STATE, limits=None),)}, {"limits seen": None}),
        (
            {"machines": (replace(STATE, others_cpus=None),)},
            {"CPUs used by others": "not observed"},
        ),
        ({"machines": (CPU_ONLY,)}, {"SM clock, MHz": None, "steal": None, "J per sample": None}),
    ],
    ids=["free", "no answer", "unseen load", "no GPUs"],
)
def test_the_state_of_machines_is_shown_as_far_as_it_was_observed(
    fields: dict[str, object], cells: dict[str, str | None]
) -> None:
    """None stands for a column that is not there."""
    text = report.markdown(one_trial(**fields)).partition("## State of the machines")[2]
    tables = [
        part.splitlines() for part in text.partition("\n## ")[0].split("\n\n") if "| " in part
    ]
    found = {
        head: cell
        for head_line, _, line in tables
        for head, cell in zip(head_line[2:-2].split(" | "), line[2:-2].split(" | "), strict=True)
    }
    assert {head: found.get(head) for head in cells} == cells
    is_placed = any(it.span == "run" for it in fields["machines"])  # type: ignore[attr-defined] # a tuple
    assert ("not placed in the window, so of the whole run: trials 1." in text) == is_placed


def test_the_peak_of_memory_is_that_of_logs_else_that_of_drivers() -> None:
    by_driver = one_trial(machines=(replace(STATE, memory_peak_mib=15900.0),))
    trials = tuple(logged(it, memory_mib=11958) for it in by_driver.results[0].trials)
    by_log = replace(by_driver, results=(replace(by_driver.results[0], trials=trials),))
    for found, log_mib, peak_mib in ((by_driver, None, 15900.0), (by_log, 11958, 11958)):
        (row,) = rows(report.markdown(found), "Cases at a glance")
        assert row["peak memory"] == f"{peak_mib:.0f} (MiB)"
        case = report.case_document(found, found.results[0])
        assert (case["memory_mib"], case["peak_memory_mib"]) == (log_mib, peak_mib)
