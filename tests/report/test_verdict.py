"""What is said first, by one rule for the terminal, report.md, report.html and results.json."""

# ruff: noqa: RUF001 - Chinese has punctuation of its own

from dataclasses import replace

import pytest

from orchestrator import report
from orchestrator.model.problem import Problem
from orchestrator.model.report import LoneLog, Report
from orchestrator.report import verdict
from orchestrator.report.page import Page
from tests.reported import LOG, SEED_AMP, folder, results, sweep

GAP = Problem("GAP", "line 90: 3.1 s")
CHANGED = Problem("LOG-CHANGED", "its sha256 is not the one that was taken when it ran")


def doubtful() -> Report:
    """One log damaged, two trials marked, one case marked, one trial failed."""
    one, four, many = results(SEED_AMP)
    marked = [replace(trial, marks=(GAP,)) for trial in four.trials[:2]]
    changed = replace(many.trials[0], state="invalid", problems=(CHANGED,))
    failed = replace(many.trials[1], state="invalid", problems=(CHANGED,))
    return sweep(
        (
            replace(one, marks=(Problem("WIDE-SPREAD", "12.0 %"),)),
            replace(four, trials=(*marked, *four.trials[2:]), marks=(Problem("GAP", "in 2"),)),
            replace(many, trials=(changed, failed, *many.trials[2:])),
        )
    )


def test_what_keeps_trials_out_stands_before_marks() -> None:
    """A line for each code, with the first message and where; a case's mark of its trials once."""
    assert report.first_lines(doubtful()) == [
        "INCOMPLETE: 13 of 15 trials count; 3 of 3 cases have a result.",
        "  does not count: LOG-CHANGED (the log is not what it was after the run):"
        " 4n8g-r50_b256_amp_1: its sha256 is not the one that was taken when it ran;"
        " also 4n8g-r50_b256_amp_2",
        "  mark: GAP (an iteration in the window was unusually slow):"
        " 1n4g-r50_b256_amp_1: line 90: 3.1 s; also 1n4g-r50_b256_amp_2",
        "  mark: WIDE-SPREAD (trials differ much): 1x1: 12.0 %",
    ]


def test_the_same_lines_begin_every_form() -> None:
    """In HTML and Markdown before the first table, in JSON as codes."""
    found = doubtful()
    text, page = report.markdown(found), report.html_page(found, "en", {})
    for form in (text[: text.index("\n| ")], page[: page.index("<table")]):
        for code in ("INCOMPLETE", "LOG-CHANGED", "GAP", "WIDE-SPREAD"):
            assert code in form
    document = report.document(found)["verdict"]
    assert document == {
        "level": "incomplete",
        "trials_valid": 13,
        "trials": 15,
        "cases_with_result": 3,
        "cases": 3,
        "known": [
            {
                "code": "LOG-CHANGED",
                "counts": False,
                "where": ["4n8g-r50_b256_amp_1", "4n8g-r50_b256_amp_2"],
            },
            {
                "code": "GAP",
                "counts": True,
                "where": ["1n4g-r50_b256_amp_1", "1n4g-r50_b256_amp_2"],
            },
            {"code": "WIDE-SPREAD", "counts": True, "where": ["1x1"]},
        ],
    }


def test_many_trials_of_one_code_are_one_line() -> None:
    """What was seen stands beside the trial that it is of; two more are named, others counted."""
    (one,) = results({"1x1": [800.0] * 9})
    trials = tuple(replace(trial, marks=(GAP,)) for trial in one.trials)
    ((begin, rest),) = verdict.lines(Page(sweep((replace(one, trials=trials),)), "en"))
    assert begin + rest == (
        "mark: GAP (an iteration in the window was unusually slow):"
        f" 1n1g-r50_b256_amp_1: {GAP.message};"
        " also 1n1g-r50_b256_amp_2, 1n1g-r50_b256_amp_3 and 6 more"
    )


def test_what_marks_the_whole_sweep_is_the_first_mark() -> None:
    """A slow node concerns every trial, however many have a mark of their own."""
    one, two, *_ = results(SEED_AMP)
    trials = tuple(replace(trial, marks=(GAP,)) for trial in two.trials)
    found = sweep((one, replace(two, trials=trials)), marks=(Problem("SLOW-NODE", "vs003"),))
    assert [group.code for group in verdict.group_by_code(found)] == ["SLOW-NODE", "GAP"]


@pytest.mark.parametrize(
    ("found", "begins"),
    [
        (sweep(results(SEED_AMP)), "COMPLETE: 15 of 15 trials count; 3 of 3 cases"),
        (sweep(results({"1x1": (None,)})), "NO RESULT: 0 of 1 trials count; 0 of 1 cases"),
        (folder(LoneLog("a.txt", LOG, 1.0, ())), "COMPLETE: 1 of 1 logs count"),
        (folder(LoneLog("a.txt", LOG, None, (GAP,))), "NO RESULT: 0 of 1 logs count"),
    ],
)
def test_the_first_sentence_says_how_much_counts(found: Report, begins: str) -> None:
    """Of trials, of logs that belong to no case, and of cases."""
    assert next(iter(verdict.sentences(Page(found, "en")))).startswith(begins)


def test_marks_alone_are_said_in_the_first_word() -> None:
    """A reader who stops there knows that there is more."""
    one, *_ = results(SEED_AMP)
    found = sweep((replace(one, marks=(GAP,)),))
    assert next(iter(verdict.sentences(Page(found, "en")))).startswith(
        "MARKED: 5 of 5 trials count, some with marks;"
    )
    assert next(iter(verdict.sentences(Page(found, "zh")))).startswith("MARKED：5 个试验中有 5 个")
