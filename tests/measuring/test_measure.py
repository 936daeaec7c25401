"""From logs to numbers: the seed's table comes back, and nothing that does not count is counted."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from orchestrator import errors
from orchestrator.measuring import measure
from orchestrator.model.case import Case
from orchestrator.model.experiment import Method
from orchestrator.model.log import SECOND_NS, Fabric, Moment, Rate, Rule, TrainingLog
from orchestrator.model.problem import Problem
from orchestrator.model.result import Evidence, Interval, Measurement, Result
from orchestrator.workloads import ngc_pytorch_rn50

# Seed 003, section 3: samples/s of each log, by placement and in the order of the logs' numbers,
# as extract_pytorch_logs_time.py printed them for AMP with dynamic loss scale, batch 256.
SEED_AMP = {
    "1x1": (803.69, 793.9, 803.66, 802.4, 802.9),
    "1x4": (3129.63, 3119.23, 3137.44, 3137.67, 3144.55),
    "1x8": (6135.08, 6130.69, 6154.66, 6173.05, 6160.56),
    "2x8": (12046.71, 11896.95, 11991.94, 11999.35, 11964.81),
    "4x8": (22364.13, 22551.16, 22978.13, 23049.75, 22053.98),
}
# The JSON that it printed after them: average_speed, median_speed, speedup.
SEED_AMP_RESULT = {
    "1x1": (801.31, 802.9, 1.0),
    "1x4": (3133.7, 3137.44, 3.91),
    "1x8": (6150.81, 6154.66, 7.67),
    "2x8": (11979.95, 11991.94, 14.94),
    "4x8": (22599.43, 22551.16, 28.09),
}
# Seed 003, "performance results": samples/s and speedup of the other two tables.
SEED_FP32 = {
    "1x1": (367.29, 1.00),
    "1x4": (1449.48, 3.95),
    "1x8": (2887.65, 7.86),
    "2x8": (5716.79, 15.56),
    "4x8": (10917.09, 29.72),
}
SEED_STATIC = {"1x1": (827.86, 1.00), "1x4": (3253.68, 3.93), "1x8": (6446.74, 7.79)}
# Seed 003's listing of the 2-node run, whose times and rates are those of its 4-node run.
SEED_HEADER = (
    "DLL 2020-09-15 14:28:53.498443 - PARAMETER data : /data/image  data_backend : dali-cpu"
    "  arch : resnet50  batch_size : 128  fp16 : False  static_loss_scale : 1"
    "  dynamic_loss_scale : False  prof : 121  amp : False  world_size : {world_size} \n"
)
SEED_STEPS = """\
DLL 2020-09-15 14:29:13.473765 - Epoch: 0 Iteration: 1  train.loss : 7.09304  train.total_ips : 267.44 img/s
DLL 2020-09-15 14:29:14.427490 - Epoch: 0 Iteration: 2  train.loss : 6.93504  train.total_ips : 4294.91 img/s
DLL 2020-09-15 14:29:15.018767 - Epoch: 0 Iteration: 3  train.loss : 6.85957  train.total_ips : 6928.79 img/s
DLL 2020-09-15 14:29:15.387051 - Epoch: 0 Iteration: 4  train.loss : 6.80420  train.total_ips : 11124.52 img/s
DLL 2020-09-15 14:29:15.791445 - Epoch: 0 Iteration: 5  train.loss : 6.75717  train.total_ips : 10131.38 img/s
DLL 2020-09-15 14:29:16.161849 - Epoch: 0 Iteration: 6  train.loss : 6.73528  train.total_ips : 11064.93 img/s
DLL 2020-09-15 14:29:16.538463 - Epoch: 0 Iteration: 7  train.loss : 6.72415  train.total_ips : 10879.48 img/s
DLL 2020-09-15 14:29:16.946395 - Epoch: 0 Iteration: 8  train.loss : 6.71593  train.total_ips : 10044.52 img/s
DLL 2020-09-15 14:29:17.334849 - Epoch: 0 Iteration: 9  train.loss : 6.69474  train.total_ips : 10547.30 img/s
DLL 2020-09-15 14:29:17.744287 - Epoch: 0 Iteration: 10  train.loss : 6.69965  train.total_ips : 10007.33 img/s
DLL 2020-09-15 14:29:18.159381 - Epoch: 0 Iteration: 11  train.loss : 6.69236  train.total_ips : 9872.60 img/s
DLL 2020-09-15 14:29:18.553769 - Epoch: 0 Iteration: 12  train.loss : 6.67351  train.total_ips : 10393.54 img/s
"""  # noqa: E501 - a listing, as it was printed
LOG = TrainingLog(
    runs=1,
    steps=120,
    first_iteration=1,
    last_iteration=120,
    config={},
    # DLPerf prints 1597933942.9863544 and 1597933977.6064055 in extract_cnn_result.py, of a run
    # of 2 x 8 GPUs, batch 128.
    start=Moment(20, 0, 40),
    end=Moment(120, 34_620_051_100, 140),
    rate=None,
    window_rate=None,
    unit="images/s",
    reported={},
    digest="",
    size_bytes=0,
    sha256="",
    fabric=Fabric(),
    problems=(),
    window=(20, 120),
)
METHOD = Method(repeats=5, iterations=121, window=(20, 120))
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


def case(placement: str = "2x8", precision: str = "amp", micro_batch_size: int = 256) -> Case:
    """A case without parameters."""
    nodes, gpus = map(int, placement.split("x"))
    return Case(
        nodes=nodes,
        gpus_per_node=gpus,
        micro_batch_size=micro_batch_size,
        precision=precision,
        device="cuda",
    )


FULL = replace(case(), accumulation_steps=2, params=(("image_size", 64), ("loss_scale", 128)))


def trial(name: str, throughput: float | None, state: str = "valid") -> Measurement:
    """A trial that gave this number."""
    return Measurement(
        trial=name,
        repeat=1,
        attempt=1,
        state=state,
        throughput=throughput,
        rate=None,
        problems=(),
        marks=(),
        evidence=None,
        provenance={},
    )


def results(values: Mapping[str, Sequence[float]], micro_batch_size: int = 256) -> list[Result]:
    """A result for each placement over these throughputs."""
    return [
        measure.result(
            case(placement, micro_batch_size=micro_batch_size),
            [trial(f"{placement}_{number}", value) for number, value in enumerate(each, 1)],
        )
        for placement, each in values.items()
    ]


def backed(name: str, *, digest: str = "", sha256: str = "") -> Measurement:
    """A trial with such evidence."""
    return replace(trial(name, 800.0), evidence=Evidence(f"{name}.log", None, sha256, digest))


def seed_log(world_size: int) -> TrainingLog:
    """The seed's listing with this world size in its header, read from iteration 3 to 12."""
    text = SEED_HEADER.format(world_size=world_size) + SEED_STEPS
    return ngc_pytorch_rn50.WORKLOAD.read([text.encode()], (3, 12))


def test_published_trial_comes_back() -> None:
    """The times behind the report's 5915.6 samples/s give 5915.6 samples/s."""
    assert measure.throughput(LOG, 128 * 16, "clock") == pytest.approx(5915.6, abs=0.05)


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
    with pytest.raises(errors.LogError, match=words) as raised:
        measure.throughput(log, 2048, "clock")
    assert raised.value.code == "WINDOW"


@pytest.mark.parametrize("lasted_ns", [0, -34_600_000_000])
def test_clock_that_stands_still_or_goes_back_is_an_error(lasted_ns: int) -> None:
    """Neither an infinite nor a negative rate is ever a number of ours."""
    log = replace(LOG, start=Moment(20, 10**11, 40), end=Moment(120, 10**11 + lasted_ns, 140))
    with pytest.raises(errors.LogError, match="needed a clock that goes on") as raised:
        measure.throughput(log, 2048, "clock")
    assert raised.value.code == "CLOCK-STEP"


# Seed 002's log of 2D_PP_2x4x4_512_2304x24: the mean of its last five rows, and its global batch.
LATENCY_S, GPT_BATCH = 13.117188, 512


def test_published_latency_gives_the_published_throughput() -> None:
    """512 / 13.117188 s is the 39.03 samples/s of seed 002."""
    log = replace(LOG, latency_s=LATENCY_S, start=None, end=None)
    assert f"{measure.throughput(log, GPT_BATCH, 'latency'):.2f}" == "39.03"


def test_reported_and_mean_rates_need_no_batch_size() -> None:
    """What the program says of its whole run, and the mean of what it printed in the window."""
    log = replace(LOG, reported={"train_throughput": 7810.758929502331}, window_mean=7800.5)
    assert measure.throughput(log, None, "reported") == 7810.758929502331
    assert measure.throughput(log, None, "rates") == 7800.5


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
        ("rates", {"window_mean": None}, 512, "WINDOW"),
        ("rates", {"start": None}, 512, "WINDOW"),
    ],
)
def test_a_rule_without_what_it_needs_gives_no_number(
    rule: Rule, changes: dict[str, Any], batch: int | None, code: str
) -> None:
    """Never 0, and never a number by another rule."""
    with pytest.raises(errors.LogError) as raised:
        measure.throughput(replace(LOG, **changes), batch, rule)
    assert raised.value.code == code


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
    assert measure.global_batch_size(replace(LOG, config=config)) == expected


def test_seed_listing_agrees_with_32_ranks_and_not_with_16() -> None:
    """The listing printed for 2 nodes is that of 4: clock and rates differ by a factor of 2."""
    four, two = seed_log(32), seed_log(16)
    batches = [measure.global_batch_size(log) or 0 for log in (four, two)]
    measured = [
        measure.throughput(four, batches[0], "clock"),
        measure.throughput(two, batches[1], "clock"),
    ]
    # 9 iterations in 14:29:18.553769 - 14:29:15.018767 = 3.535002 s.
    assert measured == pytest.approx([9 * 4096 / 3.535002, 9 * 2048 / 3.535002])
    assert measure.rate_problem(four, batches[0], "clock") is None
    problem = measure.rate_problem(two, batches[1], "clock")
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
    for rule in ("clock", "rates"):
        assert (measure.rate_problem(by_clock, 100, rule) is None) == agrees
    rate = Rate(100, window_rate, None)
    reporting = replace(LOG, reported={"train_throughput": 100.0}, rate=rate)
    assert (measure.rate_problem(reporting, None, "reported") is None) == agrees


def test_log_that_prints_no_rates_is_not_contradicted_by_them() -> None:
    """There is nothing to compare."""
    assert measure.rate_problem(replace(LOG, window_rate=None), 100, "clock") is None
    assert measure.rate_problem(LOG, None, "reported") is None
    silent = replace(LOG, window_rate=5.0, start=None, latency_s=20.0)
    assert measure.rate_problem(silent, 100, "latency") is None
    assert measure.rate_problem(silent, 200, "latency") is not None
    assert measure.rate_problem(silent, 100, "clock") is None


def test_header_that_agrees_in_everything_is_no_mismatch() -> None:
    """128 in the playbook is 128.0 in the log, and what the case does not ask for is free."""
    assert measure.mismatches(replace(LOG, config=AGREEING), FULL, METHOD) == ()


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
    assert measure.mismatches(log, FULL, METHOD) == (Problem("CASE-MISMATCH", text),)


def test_every_mismatch_of_a_header_is_in_one_problem() -> None:
    """A log of quite another run is told apart at one glance."""
    log = replace(LOG, config={**AGREEING, "micro_batch_size": 128, "precision": "fp32"})
    (problem,) = measure.mismatches(log, FULL, METHOD)
    assert problem.message == (
        "micro_batch_size is 128 in the log and 256 in the case;"
        " precision is fp32 in the log and amp in the case"
    )


def test_loss_scale_counts_only_where_it_has_a_meaning() -> None:
    """FP32 and CPUs have none, whatever the playbook says for its other cases."""
    log = replace(LOG, config={**AGREEING, "loss_scale": 1.0, "precision": "fp32"})
    assert measure.mismatches(log, replace(FULL, precision="fp32"), METHOD) == ()
    log = replace(LOG, config={**AGREEING, "loss_scale": 1.0, "device": "cpu"})
    assert measure.mismatches(log, replace(FULL, device="cpu"), METHOD) == ()


def test_iterations_are_free_for_a_case_that_a_file_name_says() -> None:
    """A name such as 2n8g/r50_b256_amp_1.log says nothing of them."""
    said: dict[str, str | int | float | bool] = {
        "iterations": 100,
        "world_size": 16,
        "micro_batch_size": 256,
        "precision": "amp",
    }
    assert measure.mismatches(replace(LOG, config=said), FULL, None) == ()


def test_log_that_does_not_say_its_world_size_can_only_be_of_one_rank() -> None:
    """Without it, a log of one GPU would pass for one of sixteen."""
    log = replace(LOG, config={"micro_batch_size": 256, "precision": "amp"})
    assert measure.mismatches(log, case("2x8"), None) == (
        Problem("CASE-MISMATCH", "the log says nothing of world_size, the case 16"),
    )
    assert measure.mismatches(log, case("1x1"), None) == ()


def test_header_that_lacks_batch_or_precision_proves_no_case() -> None:
    """A header that is there must say what the case is about."""
    (found,) = measure.mismatches(replace(LOG, config={"arch": "resnet50"}), case("1x1"), None)
    assert "nothing of micro_batch_size" in found.message
    assert "nothing of precision" in found.message


def test_seed_table_comes_back_from_its_25_printed_trials() -> None:
    """Average, median and speedup of all five placements, as printed."""
    assert sum(map(len, SEED_AMP.values())) == 25
    for found in measure.compared(results(SEED_AMP)):
        assert found.statistics is not None
        assert found.speedup is not None
        summed = (found.statistics.mean, found.statistics.median, found.speedup)
        assert tuple(round(value, 2) for value in summed) == SEED_AMP_RESULT[found.case.placement]
        assert found.efficiency == found.speedup / found.case.world_size
        assert found.marks == ()


@pytest.mark.parametrize(("table", "batch"), [(SEED_FP32, 128), (SEED_STATIC, 256)])
def test_published_speedups_come_back_from_published_medians(
    table: Mapping[str, tuple[float, float]], batch: int
) -> None:
    """The seed's FP32 and static tables, to the two decimals that it prints."""
    medians = {placement: (median,) for placement, (median, _) in table.items()}
    for found in measure.compared(results(medians, batch)):
        assert found.speedup is not None
        assert round(found.speedup, 2) == table[found.case.placement][1]


def test_speedup_is_taken_before_rounding() -> None:
    """OneFlow's BERT report prints 29.74 from 4455.97 / 149.84; rounded first, it was 29.75."""
    unrounded = measure.compared(results({"1x1": (149.84,), "4x8": (4455.97,)}))[1].speedup
    rounded = measure.compared(results({"1x1": (149.8,), "4x8": (4456.0,)}))[1].speedup
    assert (f"{unrounded:.2f}", f"{rounded:.2f}") == ("29.74", "29.75")


def test_speedup_is_absent_without_the_case_of_one_rank() -> None:
    """Never 1.0: upstream's script gives 1.0 to every case where 1n1g is missing."""
    without = {placement: values for placement, values in SEED_AMP.items() if placement != "1x1"}
    for found in measure.compared(results(without)):
        assert (found.speedup, found.efficiency) == (None, None)


def test_speedup_is_absent_if_the_case_of_one_rank_gave_nothing() -> None:
    """A failed 1x1 is no baseline, and a case that failed itself has no speedup."""
    failed = measure.result(case("1x1"), [trial("a", None, "failed")])
    ran = measure.result(case("2x8"), [trial("b", 11991.94)])
    assert [each.speedup for each in measure.compared([failed, ran])] == [None, None]
    good = measure.result(case("1x1"), [trial("a", 802.9)])
    lost = measure.result(case("2x8"), [trial("b", None, "infra-lost")])
    assert [each.speedup for each in measure.compared([good, lost])] == [1.0, None]


@pytest.mark.parametrize(
    "other",
    [
        case("2x8", precision="fp32"),
        case("2x8", micro_batch_size=128),
        replace(case("2x8"), device="cpu"),
        replace(case("2x8"), accumulation_steps=2),
        replace(case("2x8"), params=(("loss_scale", 128),)),
    ],
)
def test_speedup_is_never_over_another_kind_of_case(other: Case) -> None:
    """Upstream mixes precisions and batch sizes under one key; here both keep to themselves."""
    one = measure.result(case("1x1"), [trial("a", 802.9)])
    found = measure.compared([one, measure.result(other, [trial("b", 5716.79)])])
    assert found[1].speedup is None


@pytest.mark.parametrize(("factor", "marked"), [(16 * 1.049, False), (16 * 1.051, True)])
def test_more_than_the_ranks_can_give_is_marked_and_not_hidden(
    factor: float, *, marked: bool
) -> None:
    """Efficiency over 105 %: the number stays, with IMPLAUSIBLE beside it."""
    found = measure.compared(results({"1x1": (800.0,), "2x8": (800.0 * factor,)}))[1]
    assert found.speedup == pytest.approx(factor)
    assert [mark.code for mark in found.marks] == (["IMPLAUSIBLE"] if marked else [])
    if marked:
        assert found.marks[0].message == (
            "efficiency 1.051: more than 16 ranks can give; look at the 1x1 case"
        )


# Ranks of the interval's ends among n ordered values and what it covers: tables of confidence
# intervals for the median by the sign test, such as those of Conover and of Hollander and Wolfe.
@pytest.mark.parametrize(
    ("n", "low", "high", "coverage"),
    [
        (2, 1, 2, 0.5),
        (3, 1, 3, 0.75),
        (4, 1, 4, 0.875),
        (5, 1, 5, 0.9375),
        (6, 1, 6, 0.969),
        (7, 1, 7, 0.984),
        (8, 1, 8, 0.992),
        (9, 2, 8, 0.961),
        (10, 2, 9, 0.979),
        (15, 4, 12, 0.965),
        (20, 6, 15, 0.959),
        (25, 8, 18, 0.957),
        (50, 18, 33, 0.967),
    ],
)
def test_interval_is_the_tables_own(n: int, low: int, high: int, coverage: float) -> None:
    """Narrowest symmetric one that covers 95 %; with fewer values, what [min, max] does cover."""
    values = [float(value * value) for value in range(n, 0, -1)]
    found = measure.summary(values).interval
    assert found is not None
    assert (found.low, found.high) == (low * low, high * high)
    assert found.coverage == pytest.approx(coverage, abs=0.0006)


def test_summary_of_the_seeds_largest_case_is_complete() -> None:
    """Five values: the interval is [min, max] and covers the median with 93.75 %."""
    found = measure.summary(SEED_AMP["4x8"])
    assert (found.n, found.median, found.low, found.high) == (5, 22551.16, 22053.98, 23049.75)
    assert found.spread == (23049.75 - 22053.98) / 22551.16
    assert found.interval == Interval(22053.98, 23049.75, 0.9375)


def test_a_single_trial_has_no_spread_and_no_interval() -> None:
    """One number says nothing of how numbers scatter."""
    found = measure.summary([6098.37])
    assert (found.n, found.median, found.spread, found.interval) == (1, 6098.37, None, None)


def test_median_of_an_even_number_lies_between_the_two_in_the_middle() -> None:
    """As numpy's, which upstream uses."""
    assert measure.summary([4.0, 1.0, 2.0, 3.0]).median == 2.5


def test_only_valid_trials_are_counted() -> None:
    """What failed, was invalid or never ran is shown with the result and is in no number."""
    states = ("valid", "failed", "invalid", "infra-lost", "interrupted", "planned", "valid")
    trials = [trial(f"t{at}", 100.0 * at, state) for at, state in enumerate(states, 1)]
    found = measure.result(case(), trials)
    assert found.trials == tuple(trials)
    assert found.statistics == measure.summary([100.0, 700.0])


def test_case_without_a_valid_trial_has_no_number() -> None:
    """Neither 0 nor NaN."""
    assert measure.result(case(), [trial("t1", None, "failed")]).statistics is None
    assert measure.result(case(), []).statistics is None


def test_trials_of_another_provenance_share_no_median() -> None:
    """A driver that was updated between the repeats: what came after it does not count."""
    before, after = (
        {"driver": "440.33.01", "image": "sha256:1"},
        {"driver": "450.80.02", "image": "sha256:1"},
    )
    trials = [
        replace(trial("t0", None, "failed"), provenance=after),
        replace(trial("t1", 800.0), provenance=before),
        replace(trial("t2", 900.0), provenance=after),
        replace(trial("t3", 802.0), provenance=before),
    ]
    found = measure.result(case(), trials)
    assert [each.state for each in found.trials] == ["failed", "valid", "invalid", "valid"]
    assert found.trials[2].problems == (
        Problem("PROVENANCE", "driver is 450.80.02, in t1 440.33.01"),
    )
    assert found.statistics == measure.summary([800.0, 802.0])


def test_trials_of_another_transport_share_no_median() -> None:
    """A repeat that fell back to sockets does not count beside one over InfiniBand."""
    fast = replace(trial("t1", 11991.94), transport="IB mlx5_0")
    slow = replace(trial("t2", 9000.0), transport="Socket ib0")
    found = measure.result(case(), [fast, slow])
    assert found.trials[1].problems == (
        Problem("PROVENANCE", "transport is Socket ib0, in t1 IB mlx5_0"),
    )
    assert found.statistics == measure.summary([11991.94])
    assert found.transport == "IB mlx5_0"


def test_provenance_that_one_trial_lacks_is_named() -> None:
    """Whichever of the two knows more."""
    known = replace(trial("t1", 800.0), provenance={"driver": "440.33.01"})
    unknown = trial("t2", 900.0)
    found = measure.result(case(), [known, unknown]).trials[1]
    assert found.problems[0].message == "driver is None, in t1 440.33.01"
    found = measure.result(case(), [unknown, known]).trials[1]
    assert found.problems[0].message == "driver is 440.33.01, in t2 None"


def test_same_bytes_in_two_trials_make_both_invalid() -> None:
    """A log copied to another name measured one run, and it is not known of which."""
    trials = [backed("t1", sha256="aa"), backed("t2", sha256="bb"), backed("t3", sha256="aa")]
    found = measure.same_evidence(trials)
    assert [each.state for each in found] == ["invalid", "valid", "invalid"]
    assert found[0].problems == (Problem("SAME-EVIDENCE", "the same steps also serve t3"),)
    assert found[2].problems == (Problem("SAME-EVIDENCE", "the same steps also serve t1"),)
    assert found[1] == trials[1]


def test_same_steps_under_another_header_make_both_invalid() -> None:
    """The seed's two listings differ in a header and a path, and their steps are the same."""
    two, four = seed_log(16), seed_log(32)
    assert two.sha256 != four.sha256
    trials = [
        backed("2n8g", digest=two.digest, sha256=two.sha256),
        backed("4n8g", digest=four.digest, sha256=four.sha256),
    ]
    found = measure.same_evidence(trials)
    assert [each.problems for each in found] == [
        (Problem("SAME-EVIDENCE", "the same steps also serve 4n8g"),),
        (Problem("SAME-EVIDENCE", "the same steps also serve 2n8g"),),
    ]


def test_trials_without_evidence_are_not_the_same() -> None:
    """Two logs without a window have no steps in common, and two failures no log."""
    trials = [backed("t1", sha256="aa"), backed("t2", sha256="bb"), trial("t3", None, "failed")]
    assert measure.same_evidence(trials) == tuple(trials)


def test_copied_log_of_a_failed_trial_keeps_its_state() -> None:
    """What had failed before is not called invalid, and still says whose log it shares."""
    failed = replace(backed("t1", sha256="aa"), state="failed", problems=(Problem("A", "b"),))
    found = measure.same_evidence([failed, backed("t2", sha256="aa"), backed("t3", sha256="aa")])
    assert found[0].state == "failed"
    assert found[0].problems == (
        Problem("A", "b"),
        Problem("SAME-EVIDENCE", "the same steps also serve t2, t3"),
    )


def test_speedup_over_a_case_measured_otherwise_is_not_given() -> None:
    """Another driver behind the 1x1 case: a mark with both, and no number."""
    one, two = (
        measure.result(
            case(placement),
            [
                replace(
                    trial(f"{placement}_1", value),
                    provenance={"driver": driver, "tasks": placement},
                )
            ],
        )
        for placement, value, driver in (("1x1", 100.0, "440"), ("1x4", 390.0, "535"))
    )
    first, second = measure.compared([one, two])
    assert (first.speedup, second.speedup, second.efficiency) == (1.0, None, None)
    (mark,) = second.marks
    assert (mark.code, mark.message) == (
        "BASELINE-DIFFERS",
        "driver is 535, in the 1x1 case 440",
    )


def test_marks_of_trials_and_a_wide_spread_are_seen_at_the_case() -> None:
    """What a reader should know of a median stands beside it."""
    gap = Problem("GAP", "iteration 40 took 3 s")
    trials = [trial("a", 100.0), replace(trial("b", 111.0), marks=(gap, gap)), trial("c", 105.0)]
    found = measure.result(case("1x1"), trials)
    assert [mark.code for mark in found.marks] == ["GAP", "WIDE-SPREAD"]
    assert found.marks[0].message == "in 1 trial"
    assert measure.result(case("1x1"), trials[::2]).marks == ()


def test_a_median_over_several_sets_of_nodes_is_marked() -> None:
    """Their order within a set says nothing; a trial that does not count says nothing either."""
    ran = [("vs001", "vs002"), ("vs002", "vs001"), ("vs003", "vs004")]
    trials = [replace(trial(str(at), 100.0), nodes=nodes) for at, nodes in enumerate(ran)]
    (mark,) = measure.result(case("2x8"), trials).marks
    assert mark == Problem("NODE-SETS", "its trials ran on vs[001-002] and on vs[003-004]")
    assert measure.result(case("2x8"), trials[:2]).marks == ()
    failed = replace(trials[2], state="failed")
    assert measure.result(case("2x8"), [*trials[:2], failed]).marks == ()


def test_transports_are_compared_without_the_names_of_nodes() -> None:
    """The same mixture on other nodes is the same transport; another mixture is not."""
    first = "vs001: IB mlx5_0; vs002: IB mlx5_1"
    same = "vs003: IB mlx5_1; vs004: IB mlx5_0"
    other = "vs003: IB mlx5_1; vs004: Socket ib0"
    one, two, three = (
        replace(trial(words, 100.0), transport=words, nodes=nodes)
        for words, nodes in (
            (first, ("vs001", "vs002")),
            (same, ("vs003", "vs004")),
            (other, ("vs003", "vs004")),
        )
    )
    found = measure.result(case("2x8"), [one, two, three])
    assert [each.state for each in found.trials] == ["valid", "valid", "invalid"]


def test_trial_without_a_number_is_no_reference_for_the_others() -> None:
    """A valid outcome whose log is gone must not throw out the trials that are there."""
    gone = replace(trial("a", None), provenance={})
    there = replace(trial("b", 100.0), provenance={"driver": "440"})
    assert [each.state for each in measure.result(case("1x1"), [gone, there]).trials][1] == "valid"


def test_two_empty_logs_are_no_copies_of_each_other() -> None:
    """Nothing is no evidence."""
    empty = Evidence("a.log", None, measure.NOTHING, "")
    trials = [replace(trial(name, None, "invalid"), evidence=empty) for name in ("a", "b")]
    assert [each.problems for each in measure.same_evidence(trials)] == [(), ()]
