"""A log that is not of its case never counts: header and printed rates are held against it."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from orchestrator.measuring import validity
from orchestrator.model.log import SECOND_NS, Moment, Rate, Rule, global_batch_size
from orchestrator.model.problem import Problem
from tests.measuring.trials import LOG, METHOD, case, seed_log

AGREEING: Mapping[str, str | int | float | bool] = {
    "micro_batch_size": 256,
    "world_size": 16,
    "precision": "amp",
    "iterations": 121,
    "accumulation_steps": 2,
    "device": "cuda",
    "loss_scale": 128.0,
    "image_size": 64,
    "arch": "resnet50",
}


FULL = replace(case(), accumulation_steps=2, params=(("image_size", 64), ("loss_scale", 128)))


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"micro_batch_size": 128, "world_size": 16}, 2048),
        ({"micro_batch_size": 8, "world_size": 32, "global_batch_size": 512}, 512),
        ({"micro_batch_size": 128, "world_size": 16, "accumulation_steps": 4}, 8192),
        ({"micro_batch_size": 128}, None),
        ({"world_size": 16}, None),
        ({}, None),
        ({"micro_batch_size": "128", "world_size": 16}, None),
        ({"micro_batch_size": 128, "world_size": 16, "accumulation_steps": "4"}, None),
    ],
)
def test_global_batch_is_what_the_header_says_or_unknown(
    config: Mapping[str, str | int | float | bool], expected: int | None
) -> None:
    """Half a header gives no batch size rather than half of one."""
    assert global_batch_size(config) == expected


def test_seed_listing_agrees_with_32_ranks_and_not_with_16() -> None:
    """The listing printed for 2 nodes is that of 4: clock and rates differ by a factor of 2."""
    four, two = seed_log(32), seed_log(16)
    batches = [global_batch_size(log.config) or 0 for log in (four, two)]
    measured = [
        validity.compute_throughput(four, batches[0], "clock"),
        validity.compute_throughput(two, batches[1], "clock"),
    ]
    # 9 iterations in 14:29:18.553769 - 14:29:15.018767 = 3.535002 s.
    assert measured == pytest.approx([9 * 4096 / 3.535002, 9 * 2048 / 3.535002])
    assert validity.rate_problem(four, batches[0]) is None
    problem = validity.rate_problem(two, batches[1])
    assert problem is not None
    assert problem.code == "RATE-MISMATCH"
    assert problem.message.startswith("the clock gives 5214.14, the log's own rates 104")
    assert problem.message.endswith("samples/s; needed agreement within 3%")


@pytest.mark.parametrize(
    ("window_rate", "agrees"),
    [(100.0, True), (102.9, True), (97.1, True), (103.1, False), (96.9, False), (200.0, False)],
)
def test_printed_rates_agree_within_three_percent(window_rate: float, *, agrees: bool) -> None:
    """Both ways; beyond it the log is of another gang."""
    by_clock = replace(LOG, window_rate=window_rate, end=Moment(120, 100 * SECOND_NS, 140))
    rules: tuple[Rule, ...] = ("clock", "rates")
    for rule in rules:
        assert (validity.rate_problem(replace(by_clock, rule=rule), 100) is None) == agrees


@pytest.mark.parametrize(
    ("steps", "mean", "agrees"),
    [(120, 100.09, True), (120, 100.2, False), (12, 100.9, True), (12, 98.9, False)],
)
def test_a_result_is_the_mean_of_the_printed_rates(
    steps: int, mean: float, *, agrees: bool
) -> None:
    """Of all steps but for rounding; of every tenth one within a percent."""
    log = replace(LOG, steps=steps, reported={"train_throughput": 100.0})
    log = replace(log, rate=Rate(steps, mean, mean))
    assert (validity.rate_problem(replace(log, rule="reported"), None) is None) == agrees


@pytest.mark.parametrize(("batch", "agrees"), [(128, True), (256, False), (64, False)])
def test_a_result_agrees_with_the_clock_by_the_batch_of_its_case(
    batch: int, *, agrees: bool
) -> None:
    """A batch or world size that was doubled in header and name alike: the clock tells it."""
    log = replace(LOG, reported={"train_throughput": 100.0}, rate=Rate(120, 100.0, 100.0))
    problem = validity.rate_problem(replace(log, rule="reported", samples=128.4), batch)
    assert (problem is None) == agrees
    assert validity.rate_problem(replace(log, rule="reported", samples=128.0 * 1.009), batch)


@pytest.mark.parametrize(
    ("share", "code"), [(1.0033, None), (1.005, "CLOCK-JUMP"), (0.995, "CLOCK-JUMP")]
)
def test_a_result_that_is_slightly_off_its_clock_is_marked(share: float, code: str | None) -> None:
    """Rates and result that were scaled by 0.995; honest logs differ by 0.14 % at most."""
    log = replace(LOG, reported={"train_throughput": 100.0}, rate=Rate(120, 100.0, 100.0))
    problem = validity.rate_problem(replace(log, rule="reported", samples=128 * share), 128)
    assert (problem.code if problem else None) == code


def test_a_batch_of_the_name_alone_holds_the_clock_as_well() -> None:
    """Within the agreement of its format it is honest; up to 3 % its clock jumped."""
    log = replace(LOG, config={}, agreement=0.004, end=Moment(120, 100 * SECOND_NS, 140))
    assert validity.rate_problem(replace(log, window_rate=100.3), 100) is None
    problem = validity.rate_problem(replace(log, window_rate=101.0), 100)
    assert problem is not None
    assert problem.code == "CLOCK-JUMP"
    problem = validity.rate_problem(replace(log, window_rate=104.0), 100)
    assert problem is not None
    assert problem.code == "RATE-MISMATCH"


def test_log_that_prints_no_rates_is_not_contradicted_by_them() -> None:
    """There is nothing to compare."""
    assert validity.rate_problem(replace(LOG, window_rate=None), 100) is None
    assert validity.rate_problem(replace(LOG, rule="reported"), None) is None
    silent = replace(LOG, window_rate=5.0, start=None, latency_s=20.0)
    by_latency = replace(silent, rule="latency")
    assert validity.rate_problem(by_latency, 100) is None
    assert validity.rate_problem(by_latency, 200) is not None
    assert validity.rate_problem(silent, 100) is None


def test_header_that_agrees_in_everything_is_no_mismatch() -> None:
    """128 in the playbook is 128.0 in the log, and what the case does not ask for is free."""
    assert validity.mismatches(replace(LOG, config=AGREEING), FULL, METHOD) == ()


@pytest.mark.parametrize(
    ("key", "said", "expected"),
    [
        ("micro_batch_size", 128, 256),
        ("world_size", 8, 16),
        ("precision", "fp32", "amp"),
        ("iterations", 100, 121),
        ("accumulation_steps", 1, 2),
        ("device", "cpu", "cuda"),
        ("loss_scale", "dynamic", 128),
        ("loss_scale", 256.0, 128),
        ("image_size", 224, 64),
    ],
)
def test_header_that_says_otherwise_than_the_case_is_a_mismatch(
    key: str, said: str | int, expected: str | int
) -> None:
    """Every key that both know is compared: a log of another run never counts for this case."""
    log = replace(LOG, config={**AGREEING, key: said})
    text = f"{key} is {said} in the log and {expected} in the case"
    assert validity.mismatches(log, FULL, METHOD) == (Problem("CASE-MISMATCH", text),)


def test_every_mismatch_of_a_header_is_in_one_problem() -> None:
    """A log of quite another run is told apart at one glance."""
    log = replace(LOG, config={**AGREEING, "micro_batch_size": 128, "precision": "fp32"})
    (problem,) = validity.mismatches(log, FULL, METHOD)
    assert problem.message == (
        "micro_batch_size is 128 in the log and 256 in the case;"
        " precision is fp32 in the log and amp in the case"
    )


def test_loss_scale_counts_only_where_it_has_a_meaning() -> None:
    """FP32 and CPUs have none, whatever the playbook says for its other cases."""
    log = replace(LOG, config={**AGREEING, "loss_scale": 1.0, "precision": "fp32"})
    assert validity.mismatches(log, replace(FULL, precision="fp32"), METHOD) == ()
    log = replace(LOG, config={**AGREEING, "loss_scale": 1.0, "device": "cpu"})
    assert validity.mismatches(log, replace(FULL, device="cpu"), METHOD) == ()


def test_iterations_are_free_for_a_case_that_a_file_name_says() -> None:
    """A name such as 2n8g/r50_b256_amp_1.log says nothing of them."""
    said: dict[str, str | int | float | bool] = {
        "iterations": 100,
        "world_size": 16,
        "micro_batch_size": 256,
        "precision": "amp",
    }
    assert validity.mismatches(replace(LOG, config=said), FULL, None) == ()


def test_log_that_does_not_say_its_world_size_can_only_be_of_one_rank() -> None:
    """Without it, a log of one GPU would pass for one of sixteen."""
    log = replace(LOG, config={"micro_batch_size": 256, "precision": "amp"})
    assert validity.mismatches(log, case("2x8"), None) == (
        Problem("CASE-MISMATCH", "the log says nothing of world_size, the case 16"),
    )
    assert validity.mismatches(log, case("1x1"), None) == ()


def test_header_that_lacks_batch_or_precision_proves_no_case() -> None:
    """A header that is there must say what the case is about."""
    (found,) = validity.mismatches(replace(LOG, config={"arch": "resnet50"}), case("1x1"), None)
    assert "nothing of micro_batch_size" in found.message
    assert "nothing of precision" in found.message
