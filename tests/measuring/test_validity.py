"""A log judged by itself and against its case: its number, or why it has none."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.measuring import validity
from orchestrator.model.case import Case
from orchestrator.model.experiment import Method
from orchestrator.model.log import SECOND_NS, Moment, Rate, Rule, TrainingLog, global_batch_size
from orchestrator.model.problem import Problem
from orchestrator.model.text import Scalar
from orchestrator.workloads import ngc_pytorch_rn50, oneflow_rn50
from tests import SAMPLES
from tests.measuring.trials import LOG, METHOD, case, seed_log

RAW = (
    SAMPLES / "logs-pytorch-rn50/paddleperf_2020-12-18_be362d9_pytorch_gpu8_amp_bs128.txt"
).read_bytes()
CASE = Case(nodes=1, gpus_per_node=8, micro_batch_size=128, precision="amp", device="cuda")
AGREEING: Mapping[str, Scalar] = {
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
# Seed 002's log of 2D_PP_2x4x4_512_2304x24: the mean of its last five rows, and its global batch.
LATENCY_S, GPT_BATCH = 13.117188, 512
REPORTED = replace(LOG, rule="reported", reported={"train_throughput": 100.0})


def log(raw: bytes = RAW) -> TrainingLog:
    """Return what the program's reader makes of a log."""
    return ngc_pytorch_rn50.WORKLOAD.read([raw], (20, 60))


@pytest.mark.parametrize(
    ("raw", "batch", "codes"),
    [
        (RAW, 128, []),
        (RAW, 256, ["CASE-MISMATCH"]),
        (RAW + RAW, 128, ["SEVERAL-RUNS"]),
        (RAW[: RAW.index(b"Iteration: 50 ")], 128, ["TRUNCATED", "TRUNCATED", "WINDOW"]),
        (RAW[: RAW.index(b"DLL 2020-12-16 11:37:27")], 128, ["TRUNCATED", "NO-STEPS"]),
    ],
    ids=["its own", "another case", "two runs", "cut", "no steps"],
)
def test_a_log_counts_if_it_is_whole_and_of_its_case(
    raw: bytes, batch: int, codes: list[str]
) -> None:
    """Each reason is said once, and nothing has a number that cannot be trusted."""
    own = replace(CASE, micro_batch_size=batch)
    method = Method(repeats=1, iterations=100, window=(20, 60))
    found = validity.measure_log(log(raw), own, method, trial="t", repeat=1, path="p")
    assert [problem.code for problem in found.problems] == codes
    assert found.state == ("invalid" if codes else "valid")
    assert (found.throughput is None) == bool(codes)
    assert found.log is not None
    assert (found.log.sha256, found.log.rule) == (log(raw).sha256, "clock")


def test_a_log_without_a_clock_lacks_no_window_beside() -> None:
    """Its reader notes NO-CLOCK, and one reason is enough."""
    raw = (SAMPLES / "logs-oneflow-rn50/of_v0.1.8_1n1g_b128_no_timestamp.txt").read_bytes()
    found = oneflow_rn50.WORKLOAD.read([raw], (20, 120))
    assert "NO-CLOCK" in [problem.code for problem in found.problems]
    assert validity.value(found, 128) == (None, [])


@pytest.mark.parametrize(
    ("code", "rule", "is_out"),
    [
        ("NO-CLOCK", "clock", True),
        ("NO-CLOCK", "rates", False),
        ("GAP", "clock", False),
        ("TRUNCATED", "rates", True),
    ],
)
def test_a_problem_keeps_a_trial_out_unless_it_is_a_mark(
    code: str, rule: Rule, *, is_out: bool
) -> None:
    assert validity.keeps_out(Problem(code, "x"), rule) == is_out


def test_the_rule_of_the_method_makes_the_number() -> None:
    """And the measurement's log has the rule, and the lines from which the number is."""
    method = Method(repeats=1, iterations=100, window=(20, 60), rule="rates")
    found = validity.measure_log(log(), CASE, method, trial="t", repeat=1, path="p")
    assert found.log is not None
    assert (found.log.rule, found.log.evidence) == ("rates", log().lines)
    assert found.throughput == log().window_weighed


@pytest.mark.parametrize(
    ("rule", "changes", "batch", "expected"),
    [
        ("clock", {}, 2048, pytest.approx(5915.6, abs=0.05)),
        (
            "latency",
            {"latency_s": LATENCY_S, "start": None},
            GPT_BATCH,
            pytest.approx(39.03, abs=5e-3),
        ),
        (
            "reported",
            {"reported": {"train_throughput": 7810.758929502331}},
            None,
            7810.758929502331,
        ),
        ("rates", {"window_weighed": 7790.25, "window_mean": 7800.5}, None, 7790.25),
        ("arithmetic", {"window_weighed": 7790.25, "window_mean": 7800.5}, None, 7800.5),
        ("clock", {}, None, "NO-BATCH"),
        ("clock", {"end": Moment(120, 0, 140)}, 2048, "CLOCK-STEP"),
        ("clock", {"end": Moment(120, -34_600_000_000, 140)}, 2048, "CLOCK-STEP"),
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
def test_a_rule_gives_the_published_number_or_says_what_it_lacks(
    rule: Rule, changes: dict[str, Any], batch: int | None, expected: object
) -> None:
    """Never 0, and never a number by another rule."""
    found = validity.compute_throughput(replace(LOG, **changes), batch, rule)
    assert (found.code if isinstance(found, Problem) else found) == expected


@pytest.mark.parametrize(("lost", "iteration"), [("start", 25), ("end", 130)])
def test_a_window_off_the_log_names_the_iteration(lost: str, iteration: int) -> None:
    log = replace(LOG, window=(25, 130), **{lost: None})  # type: ignore[arg-type] # one of two
    said = f"the window 25-130 needs iteration {iteration}; the log has 120 steps, from 1 to 120"
    assert validity.compute_throughput(log, 2048, "clock") == Problem("WINDOW", said)


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
def test_half_a_header_gives_no_batch_size_rather_than_half_of_one(
    config: Mapping[str, Scalar], expected: int | None
) -> None:
    assert global_batch_size(config) == expected


def test_the_seeds_listing_agrees_with_32_ranks_and_not_with_16() -> None:
    """The listing printed for 2 nodes is that of 4: clock and rates differ by a factor of 2."""
    four, two = seed_log(32), seed_log(16)
    batches = [global_batch_size(log.config) or 0 for log in (four, two)]
    measured = [
        validity.compute_throughput(log, batch, "clock")
        for log, batch in zip((four, two), batches, strict=True)
    ]
    # 9 iterations in 14:29:18.553769 - 14:29:15.018767 = 3.535002 s.
    assert measured == pytest.approx([9 * 4096 / 3.535002, 9 * 2048 / 3.535002])
    assert validity.rate_problem(four, batches[0]) is None
    problem = validity.rate_problem(two, batches[1])
    assert problem is not None
    assert problem.code == "RATE-MISMATCH"
    assert problem.message.startswith("the clock gives 5214.14, the log's own rates 104")
    assert problem.message.endswith("samples/s; needed agreement within 3%")


BY_CLOCK = replace(LOG, end=Moment(120, 100 * SECOND_NS, 140))  # 100 samples/s of a batch of 100
NAME_ALONE = replace(BY_CLOCK, config={}, agreement=0.004)
WITH_BATCH = replace(BY_CLOCK, config=AGREEING)
OF_SEVERAL = replace(REPORTED, rate=Rate(120, 100.0, 100.0))
LATENT = replace(LOG, window_rate=5.0, start=None, latency_s=20.0)


@pytest.mark.parametrize(
    ("found", "batch", "code"),
    [
        *[
            (replace(WITH_BATCH, window_rate=rate, rule=rule), 100, code)
            for rule in ("clock", "rates")
            for rate, code in (
                *((100.0, None), (102.9, None), (97.1, None)),
                *((103.1, "RATE-MISMATCH"), (96.9, "RATE-MISMATCH"), (200.0, "RATE-MISMATCH")),
            )
        ],
        *[
            (replace(REPORTED, steps=steps, rate=Rate(steps, mean, mean)), None, code)
            for steps, mean, code in (
                *((120, 100.09, None), (120, 100.2, "RATE-MISMATCH")),
                *((12, 100.9, None), (12, 98.9, "RATE-MISMATCH")),
            )
        ],
        *[
            (replace(OF_SEVERAL, samples=128 * share), batch, code)
            for share, batch, code in (
                *(
                    (1.0031, 128, None),
                    (1.0031, 256, "RATE-MISMATCH"),
                    (1.0031, 64, "RATE-MISMATCH"),
                ),
                *((1.009, 128, "RATE-MISMATCH"), (1.0033, 128, None)),
                *((1.005, 128, "CLOCK-JUMP"), (0.995, 128, "CLOCK-JUMP")),
            )
        ],
        (replace(OF_SEVERAL, samples=128.0), None, None),
        (replace(NAME_ALONE, window_rate=100.3), 100, None),
        (replace(NAME_ALONE, window_rate=101.0), 100, "CLOCK-JUMP"),
        (replace(NAME_ALONE, window_rate=104.0), 100, "RATE-MISMATCH"),
        (replace(LOG, window_rate=None), 100, None),
        (replace(LOG, rule="reported"), None, None),
        (replace(LATENT, rule="latency"), 100, None),
        (replace(LATENT, rule="latency"), 200, "RATE-MISMATCH"),
        (LATENT, 100, None),
    ],
)
def test_a_log_whose_clock_and_rates_contradict_one_another_is_found(
    found: TrainingLog, batch: int | None, code: str | None
) -> None:
    """Within 3 % of printed rates; a program's own result within 0.1 % of all its rates.

    By the clock a doubled batch is found; honest logs differ from it by 0.14 % at most.
    """
    problem = validity.rate_problem(found, batch)
    assert (problem.code if problem else None) == code


SAID = "{} is {} in the log and {} in the case"
BARE: dict[str, Scalar] = {"micro_batch_size": 256, "precision": "amp"}


@pytest.mark.parametrize(
    ("config", "own", "method", "words"),
    [
        (AGREEING, FULL, METHOD, None),
        *[
            ({**AGREEING, key: said}, FULL, METHOD, SAID.format(key, said, expected))
            for key, said, expected in (
                ("micro_batch_size", 128, 256),
                ("world_size", 8, 16),
                ("precision", "fp32", "amp"),
                ("iterations", 100, 121),
                ("accumulation_steps", 1, 2),
                ("device", "cpu", "cuda"),
                ("loss_scale", "dynamic", 128),
                ("loss_scale", 256.0, 128),
                ("image_size", 224, 64),
            )
        ],
        (
            {**AGREEING, "micro_batch_size": 128, "precision": "fp32"},
            *(FULL, METHOD),
            SAID.format("micro_batch_size", 128, 256)
            + "; "
            + SAID.format("precision", "fp32", "amp"),
        ),
        (
            {**AGREEING, "loss_scale": 1.0, "precision": "fp32"},
            *(replace(FULL, precision="fp32"), METHOD, None),
        ),
        (
            {**AGREEING, "loss_scale": 1.0, "device": "cpu"},
            replace(FULL, device="cpu"),
            METHOD,
            None,
        ),
        ({**BARE, "iterations": 100, "world_size": 16}, FULL, None, None),
        (BARE, case("2x8"), None, "the log says nothing of world_size, the case 16"),
        (BARE, case("1x1"), None, None),
        ({}, case("2x8"), None, "the log says nothing of world_size, the case 16"),
        (
            {"arch": "resnet50"},
            *(case("1x1"), None),
            "the log says nothing of micro_batch_size, the case 256;"
            " the log says nothing of precision, the case amp",
        ),
    ],
)
def test_a_header_that_differs_from_its_case_is_a_mismatch(
    config: Mapping[str, Scalar], own: Case, method: Method | None, words: str | None
) -> None:
    """Every key that both know is compared, in one problem.

    128 in the playbook is 128.0 in the log. A loss scale has a meaning for AMP on GPUs alone. A
    file name says nothing of iterations, and a log without its world size is of one rank.
    """
    expected = (Problem("CASE-MISMATCH", words),) if words else ()
    assert validity.mismatches(replace(LOG, config=config), own, method) == expected
