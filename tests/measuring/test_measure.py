"""From logs to numbers: the seed's table comes back, and nothing that does not count is counted."""

from dataclasses import replace
from typing import Any

import pytest

from orchestrator.measuring import validity
from orchestrator.model.log import Moment, Rule
from orchestrator.model.problem import Problem
from tests.measuring.trials import LOG


def test_published_trial_comes_back() -> None:
    """The times behind the report's 5915.6 samples/s give 5915.6 samples/s."""
    assert validity.compute_throughput(LOG, 128 * 16, "clock") == pytest.approx(5915.6, abs=0.05)


@pytest.mark.parametrize(
    ("lost", "words"),
    [
        ("start", "the window 25-130 needs iteration 25; the log has 120 steps, from 1 to 120"),
        ("end", "the window 25-130 needs iteration 130; the log has 120 steps, from 1 to 120"),
    ],
)
def test_window_off_the_log_names_the_iteration(lost: str, words: str) -> None:
    """A window that the log cannot answer is an error that says which line is missing, never 0."""
    log = replace(LOG, window=(25, 130))
    log = replace(log, start=None) if lost == "start" else replace(log, end=None)
    assert validity.compute_throughput(log, 2048, "clock") == Problem("WINDOW", words)


@pytest.mark.parametrize("lasted_ns", [0, -34_600_000_000])
def test_clock_that_stands_still_or_goes_back_is_an_error(lasted_ns: int) -> None:
    """Neither an infinite nor a negative rate is ever a number of ours."""
    log = replace(LOG, start=Moment(20, 10**11, 40), end=Moment(120, 10**11 + lasted_ns, 140))
    found = validity.compute_throughput(log, 2048, "clock")
    assert isinstance(found, Problem)
    assert found.code == "CLOCK-STEP"
    assert found.message.endswith("needed a clock that goes on")


# Seed 002's log of 2D_PP_2x4x4_512_2304x24: the mean of its last five rows, and its global batch.
LATENCY_S, GPT_BATCH = 13.117188, 512


def test_published_latency_gives_the_published_throughput() -> None:
    """512 / 13.117188 s is the 39.03 samples/s of seed 002."""
    log = replace(LOG, latency_s=LATENCY_S, start=None, end=None)
    found = validity.compute_throughput(log, GPT_BATCH, "latency")
    assert found == pytest.approx(39.03, abs=0.005)


def test_reported_and_mean_rates_need_no_batch_size() -> None:
    """What the program says of its whole run, and the mean of what it printed in the window."""
    log = replace(LOG, reported={"train_throughput": 7810.758929502331}, window_mean=7800.5)
    log = replace(log, window_weighed=7790.25)
    assert validity.compute_throughput(log, None, "reported") == 7810.758929502331
    assert validity.compute_throughput(log, None, "rates") == 7790.25
    assert validity.compute_throughput(log, None, "arithmetic") == 7800.5


@pytest.mark.parametrize(
    ("rule", "changes", "batch", "code"),
    [
        ("clock", {}, None, "NO-BATCH"),
        ("latency", {"latency_s": 13.0}, None, "NO-BATCH"),
        ("latency", {}, 512, "WINDOW"),
        ("latency", {"latency_s": 0.0}, 512, "CLOCK-STEP"),
        ("latency", {"window": None}, 512, "WINDOW"),
        ("reported", {}, 512, "NO-RESULT"),
        ("reported", {"reported": {"train_throughput": 0.0}}, 512, "NO-RESULT"),
        ("rates", {"window_weighed": None}, 512, "WINDOW"),
        ("arithmetic", {"window_mean": None}, 512, "WINDOW"),
        ("rates", {"start": None}, 512, "WINDOW"),
    ],
)
def test_a_rule_without_what_it_needs_gives_no_number(
    rule: Rule, changes: dict[str, Any], batch: int | None, code: str
) -> None:
    """Never 0, and never a number by another rule."""
    found = validity.compute_throughput(replace(LOG, **changes), batch, rule)
    assert isinstance(found, Problem)
    assert found.code == code
