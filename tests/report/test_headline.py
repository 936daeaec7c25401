"""The headline: the best number, what it is worth, and why it may not be trusted."""
# ruff: noqa: RUF001 - Chinese has punctuation of its own

from dataclasses import replace

import pytest

from orchestrator import report
from orchestrator.model.log import Moment
from orchestrator.model.problem import Problem
from orchestrator.model.report import Layout, LoneLog, Report
from orchestrator.model.result import Watched
from tests.reported import LOG, SEED_AMP, folder, logged, results, sweep

GPUS = {"vs001": {"GPUs": "V100 x 8"}, "vs002": {"GPUs": "V100 x 8"}}
GAP = Problem("GAP", "line 90")


def headline(found: Report, language: report.Language = "en") -> str:
    """The paragraph between the verdict and the first list of report.md."""
    _, first, *others = report.markdown(found, language).split("\n\n")
    assert first.startswith("> ")
    return next(line for line in others if line[:2] != "> ").replace("\\", "")


def test_the_best_number_stands_with_interval_speedup_and_hardware() -> None:
    """In one sentence, and whether it can be trusted in the next, in both languages."""
    found = sweep(results(SEED_AMP), environment=GPUS)
    assert headline(found) == (
        "**Best: 22551.16 images/s with 4x8**, interval 22053.98 to 23049.75 (93.75%),"
        " 28.09 times the speed of one GPU (efficiency 87.8%), on vs[001-002], V100 x 8."
        " All trials of this case count and nothing is marked: the number can be trusted."
    )
    assert headline(found, "zh") == (
        "**最佳结果：4x8 达到 22551.16 images/s**，区间 22053.98 至 23049.75（93.75%），"
        "加速比 28.09（效率 87.8%），硬件 vs[001-002]，V100 x 8。"
        "该用例的全部试验均计入且没有标记：该数值可信。"
    )


def test_processes_are_not_called_gpus() -> None:
    """On nodes without GPUs the processor is the hardware."""
    found = sweep(results(SEED_AMP, device="cpu"), environment={"a": {"CPU": "EPYC"}})
    assert "times the speed of one process" in headline(found)
    assert "on a, EPYC." in headline(found)


SOUND = results({"1x1": (800.0, 801.0), "1x4": (3000.0, 3001.0)})
BEST = SOUND[1]
MARKED = replace(BEST, trials=(replace(BEST.trials[0], marks=(GAP,)), BEST.trials[1]))
DRIFTED = Watched(BEST.case, ("start",), BEST.trials[:1], 0.1, 0.03, (Problem("DRIFT", "10 %"),))


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (sweep(SOUND, trials_planned=2), "the number can be trusted."),
        (sweep(SOUND, trials_planned=2, shared_machine=True), "nodes share one machine"),
        (sweep((SOUND[0], MARKED), trials_planned=2), "marks that concern this number"),
        (sweep(SOUND, trials_planned=2, marks=(GAP,)), "marks that concern this number"),
        (sweep(SOUND, trials_planned=2, canary=DRIFTED), "marks that concern this number"),
        (sweep(SOUND, trials_planned=3), "Some trials of this case do not count"),
        (sweep(results({"1x4": (3000.0,)}), trials_planned=1), "It is a single trial"),
        (
            sweep(results({"1x1": (800.0, None), "1x4": (3000.0, 3001.0)}), trials_planned=2),
            "All trials of this case count",
        ),
    ],
)
def test_the_gravest_reason_against_a_number_is_said(found: Report, reason: str) -> None:
    """A machine that is shared, marks, trials that are lacking, a single one, other cases."""
    assert reason in headline(found)


def test_without_a_result_there_is_no_headline() -> None:
    """What was measured follows at once; so of logs that belong to no case."""
    for found in (sweep(results({"1x1": (None,)})), folder(LoneLog("a.txt", LOG, 6098.37, ()))):
        assert headline(found).startswith("- What: ")


@pytest.mark.parametrize(
    ("seconds", "english", "chinese"),
    [(59.9, "0 min 59 s", "0 分 59 秒"), (3725.0, "1 h 2 min", "1 小时 2 分")],
)
def test_the_duration_and_the_measured_seconds_are_said(
    seconds: float, english: str, chinese: str
) -> None:
    """Of the sweep, and of the windows of its valid trials."""
    (one,) = results({"1x1": (800.0, 801.0)})
    ends = {"start": Moment(20, 0, 40), "end": Moment(60, 10_250_000_000, 80), "origin_ns": 1}
    trials = tuple(logged(trial, **ends) for trial in one.trials)
    found = sweep((replace(one, trials=trials),), ran_s=seconds)
    windows = "measured windows of 2 valid trials: 20.5 s"
    assert f"- Duration: trials ran for {english}, {windows}\n" in report.markdown(found)
    assert f"- 用时：试验运行共 {chinese}，2 次有效试验的测量窗口共 20.5 秒\n" in (
        report.markdown(found, "zh")
    )
    assert "Duration" not in report.markdown(sweep(results(SEED_AMP)))


def test_the_best_of_decimals_of_a_layout() -> None:
    """OneFlow's documents print one decimal."""
    found = sweep(results(SEED_AMP), layout=Layout(decimals=1))
    assert headline(found).startswith("**Best: 22551.2 images/s with 4x8**")
