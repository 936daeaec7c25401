"""Results of cases: medians, intervals, marks, speedups, and which trials count in them."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

import hypothesis
import pytest
from hypothesis import strategies

from orchestrator.measuring import intervals, medians, validity
from orchestrator.model.problem import Problem
from orchestrator.model.result import Interval, Measurement, Result
from tests.benchmarks import comparisons
from tests.measuring.trials import LOG, backed, case, results, seed_log, trial
from tests.reported import RN50_AMP

ONE = (10.0, 10.1, 10.3, 10.6, 11.0)
FIVE = (48.0, 50.0, 50.5, 51.0, 53.0)
GAP = Problem("GAP", "iteration 40 took 3 s")
OLD, NEW = {"driver": "440.33.01"}, {"driver": "450.80.02"}
RATES = strategies.lists(strategies.floats(0.01, 1e6), min_size=1, max_size=11)


def of(*trials: Measurement, placement: str = "2x8") -> Result:
    return medians.result(case(placement), trials)


def seen(number: int, value: float | None = 100.0, **fields: object) -> Measurement:
    """Return a valid trial with these fields."""
    return replace(trial(f"t{number}", value), **fields)  # type: ignore[arg-type] # passed on


def messages(found: Result) -> dict[str, str]:
    return {mark.code: mark.message for mark in found.marks}


@hypothesis.given(RATES)
def test_statistics_are_those_of_the_ordered_values(values: list[float]) -> None:
    """The interval's coverage is counted over all ways in which values can lie around a median."""
    found, ordered, n = medians.summary(values), sorted(values), len(values)
    middle = (ordered[(n - 1) // 2] + ordered[n // 2]) / 2
    assert (found.n, found.low, found.high) == (n, ordered[0], ordered[-1])
    assert found.median == pytest.approx(middle)
    assert found.mean == pytest.approx(math.fsum(values) / n)
    if n == 1:
        assert (found.spread, found.interval) == (None, None)
        return
    assert found.spread == pytest.approx((ordered[-1] - ordered[0]) / middle)
    below = [sum(ways) for ways in itertools.product((0, 1), repeat=n)]
    covered = [
        sum(cut < count < n - cut for count in below) / len(below)
        for cut in range((n - 1) // 2 + 1)
    ]
    cut = max((at for at, share in enumerate(covered) if share >= 0.95), default=0)
    assert found.interval == Interval(ordered[cut], ordered[n - 1 - cut], covered[cut])


# Ranks of the interval's ends among n ordered values and what it covers: tables of confidence
# intervals for the median by the sign test, such as those of Conover and of Hollander and Wolfe.
@pytest.mark.parametrize(
    ("n", "low", "high", "coverage"),
    [
        *[(5, 1, 5, 0.9375), (8, 1, 8, 0.992), (9, 2, 8, 0.961), (10, 2, 9, 0.979)],
        *[(15, 4, 12, 0.965), (20, 6, 15, 0.959), (25, 8, 18, 0.957), (50, 18, 33, 0.967)],
    ],
)
def test_interval_is_the_tables_own(n: int, low: int, high: int, coverage: float) -> None:
    """The narrowest symmetric one that covers 95 %; of few values, what [min, max] does cover."""
    found = medians.summary([float(value * value) for value in range(n, 0, -1)]).interval
    assert found is not None
    assert (found.low, found.high) == (low * low, high * high)
    assert found.coverage == pytest.approx(coverage, abs=0.0006)


@pytest.mark.parametrize(
    ("outside", "freedom", "value"),
    [
        *[(0.05, 1, 12.706), (0.05, 2, 4.303), (0.05, 3, 3.182), (0.05, 4, 2.776)],
        *[(0.05, 10, 2.228), (0.05, 30, 2.042), (0.05, 120, 1.980)],
        *[(0.01, 1, 63.657), (0.01, 8, 3.355), (0.002, 5, 5.893)],
    ],
)
def test_students_t_is_that_of_the_tables(outside: float, freedom: int, value: float) -> None:
    """Source: any table of it, two-sided."""
    assert intervals.student(outside, freedom) == pytest.approx(value, abs=5e-4)


def test_a_quotients_interval_is_welchs_widened_to_the_medians() -> None:
    """By hand: mean logarithms 3.92146 and 2.34120, squared errors 0.0002554 and 0.0002998."""
    found = intervals.of_quotient(FIVE, ONE)
    assert found is not None
    half = 2.365 * math.sqrt(0.0002554 + 0.0002998)  # 7.9 degrees of freedom, taken as 7
    low, high = 3.92146 - 2.34120, math.log(50.5 / 10.3)  # of means and of medians
    assert math.log(found.low) == pytest.approx(low - half, abs=2e-4)
    assert math.log(found.high) == pytest.approx(high + half, abs=2e-4)
    assert found.coverage == 0.95


def test_a_quotients_interval_of_few_trials_covers_less() -> None:
    """One has no interval; of two to four the simulation shows less."""
    assert intervals.of_quotient(FIVE[:1], ONE) is None
    for count, coverage in ((2, 0.88), (3, 0.92), (4, 0.94), (5, 0.95)):
        found = intervals.of_quotient(FIVE[:count], ONE)
        assert found is not None
        assert found.coverage == pytest.approx(coverage)


def test_a_quotients_interval_is_as_narrow_as_its_trials_agree() -> None:
    """Equal ones have no degrees of freedom; hundreds have an interval at once."""
    many = [100.0 + number % 7 for number in range(1000)]
    equal, narrow = intervals.of_quotient((2.0, 2.0), (1.0,) * 3), intervals.of_quotient(many, many)
    assert equal is not None
    assert narrow is not None
    assert (equal.low, equal.high) == pytest.approx((2.0, 2.0))
    assert 0.99 < narrow.low < 1 < narrow.high < 1.01


@pytest.mark.parametrize(
    "sizes", [(2, 2), (3, 3), (5, 5), (7, 7), (9, 9), (3, 9), (9, 3), (30, 30)]
)
def test_a_quotients_interval_covers_what_it_claims(sizes: tuple[int, int]) -> None:
    """For normal, heavy-tailed, skewed trials and outliers; for equal and unequal spreads.

    Of 400 draws that are covered with 95 %, 97 of 100 times at least 92.9 % are.
    """
    covered = comparisons.cover(intervals.of_quotient, sizes, draws=400)
    for setting, (claims, held) in covered.items():
        assert held >= claims - 0.025, setting


FAILED = medians.result(case("1x1"), [trial("a", None, "failed")])
LOST = medians.result(case("2x8"), [trial("b", None, "infra-lost")])
BASE, WIDE = results({"1x1": (802.9,), "2x8": (11991.94,)})


@pytest.mark.parametrize(
    ("found", "speedups"),
    [
        ([BASE, WIDE], [1.0, 11991.94 / 802.9]),
        ([WIDE], [None]),
        ([FAILED, WIDE], [None, None]),
        ([BASE, LOST], [1.0, None]),
        *[
            ([BASE, replace(WIDE, case=replace(WIDE.case, **fields))], [1.0, None])
            for fields in (
                {"precision": "fp32"},
                {"micro_batch_size": 128},
                {"device": "cpu"},
                {"accumulation_steps": 2},
                {"params": (("loss_scale", 128),)},
            )
        ],
    ],
    ids=[
        *("both", "no 1x1", "1x1 failed", "case failed"),
        *("precision", "batch", "device", "accumulation", "parameter"),
    ],
)
def test_a_speedup_is_over_the_1x1_case_of_the_same_kind_or_absent(
    found: Sequence[Result], speedups: list[float | None]
) -> None:
    """Never 1.0 without it, and never over another precision or batch, as upstream's scripts do."""
    judged = medians.compared(found)
    assert [result.speedup for result in judged] == speedups
    ranks = [result.case.world_size for result in judged]
    shares = [each and each / count for each, count in zip(speedups, ranks, strict=True)]
    assert [result.efficiency for result in judged] == shares


def test_a_speedup_has_an_interval_if_both_cases_have_several_trials() -> None:
    """Seed 003: 22551.16 / 802.9 lies in it, and the 1x1 case itself has none."""
    one, *_, largest = medians.compared(results(RN50_AMP))
    assert one.speedup_interval is None
    assert largest.speedup_interval == intervals.of_quotient(RN50_AMP["4x8"], RN50_AMP["1x1"])
    assert largest.speedup_interval is not None
    assert largest.speedup_interval.low < 22551.16 / 802.9 < largest.speedup_interval.high
    for single in ({"1x1": (800.0,)}, {"1x4": (3129.63,)}):
        both = {"1x1": RN50_AMP["1x1"], "1x4": RN50_AMP["1x4"], **single}
        assert medians.compared(results(both))[1].speedup_interval is None


@pytest.mark.parametrize(("efficiency", "marked"), [(1.049, False), (1.051, True)])
def test_more_than_the_ranks_can_give_is_marked_and_not_hidden(
    efficiency: float, *, marked: bool
) -> None:
    found = medians.compared(results({"1x1": (800.0,), "2x8": (800.0 * 16 * efficiency,)}))[1]
    assert found.efficiency == pytest.approx(efficiency)
    said = "efficiency 1.051: more than 16 ranks can give; look at the 1x1 case"
    assert messages(found) == ({"IMPLAUSIBLE": said} if marked else {})


def test_a_speedup_over_a_case_measured_otherwise_is_not_given() -> None:
    """Another driver behind the 1x1 case: a mark with both, and no number."""
    one = of(seen(1, provenance={**OLD, "tasks": "1x1"}), placement="1x1")
    four = of(seen(1, 390.0, provenance={**NEW, "tasks": "1x4"}), placement="1x4")
    first, second = medians.compared([one, four])
    assert (first.speedup, second.speedup, second.efficiency) == (1.0, None, None)
    said = "driver is 450.80.02, in the 1x1 case 440.33.01"
    assert messages(second) == {"BASELINE-DIFFERS": said}


def test_results_are_ordered_by_ranks_then_nodes() -> None:
    """Whatever order a plan has, 2x8 comes before 4x8 and 1x8 before 2x4; equals stay."""
    asked = ("4x8", "8x1", "2x8", "1x1", "2x4", "1x8")
    found = medians.compared(results(dict.fromkeys(asked, (100.0,))))
    ordered = [result.case.placement for result in found]
    assert ordered == ["1x1", "1x8", "2x4", "8x1", "2x8", "4x8"]
    others = results({"4x8": (1.0,), "1x1": (2.0,)}, micro_batch_size=128)
    cases = [result.case for result in medians.compared([*found, *others])]
    assert [case.micro_batch_size for case in cases] == [256, 128, *[256] * 5, 128]


def test_only_valid_trials_are_counted() -> None:
    """What failed, was invalid or never ran is shown with the result and is in no number."""
    states = ("valid", "failed", "invalid", "infra-lost", "interrupted", "planned", "valid")
    trials = [trial(f"t{at}", 100.0 * at, state) for at, state in enumerate(states, 1)]
    found = of(*trials)
    assert found.trials == tuple(trials)
    assert found.statistics == medians.summary([100.0, 700.0])
    assert of(trial("t1", None, "failed")).statistics is of().statistics is None


PAIR, OTHERS = ("vs001", "vs002"), ("vs003", "vs004")


@pytest.mark.parametrize(
    ("drivers", "problems"),
    [
        ("1 2 1", {1: "driver is 2, in most trials 1"}),
        ("1 2 2 2 2", {0: "driver is 1, in most trials 2"}),
        ("1 1 ?", {2: "driver is unknown, in most trials 1"}),
        ("? 1 ?", {1: "driver is 1, in most trials unknown"}),
        ("1 2", {0: "driver is 1, in other trials 2;", 1: "driver is 2, in other trials 1;"}),
        (
            "1 2 2 3",
            {
                0: "driver is 1, in other trials 2 and 3;",
                1: "driver is 2, in other trials 1 and 3;",
                2: "driver is 2, in other trials 1 and 3;",
                3: "driver is 3, in other trials 1 and 2;",
            },
        ),
    ],
)
def test_trials_of_another_provenance_than_most_share_no_median(
    drivers: str, problems: dict[int, str]
) -> None:
    """The majority judges, not the first trial; without one no trial is right."""
    trials = [
        seen(n, 100.0 + n, provenance={} if it == "?" else {"driver": it})
        for n, it in enumerate(drivers.split())
    ]
    lost = seen(9, None, state="failed", provenance={"driver": "9"})
    found = of(lost, *trials)
    assert found.trials[0] == lost
    for number, trial_found in enumerate(found.trials[1:]):
        said = problems.get(number, "").replace(";", "; no majority agrees")
        expected = (Problem("PROVENANCE", said),) if said else ()
        assert (trial_found.problems, trial_found.state == "invalid") == (expected, bool(said))
    values = [100.0 + n for n in range(len(trials)) if n not in problems]
    assert found.statistics == (medians.summary(values) if values else None)


def test_a_trial_without_a_number_is_no_reference_for_others() -> None:
    """As of a valid outcome whose log is gone."""
    gone, there = seen(1, None, provenance={}), seen(2, provenance=OLD)
    assert of(gone, there).trials[1] == there


@pytest.mark.parametrize(
    ("transports", "problems"),
    [
        (
            ("Socket ib0", "IB mlx5_0", "IB mlx5_0"),
            {0: "transport is Socket ib0, in most trials IB mlx5_0"},
        ),
        (
            (
                "vs001: IB a; vs002: IB b",
                "vs003: IB b; vs004: IB a",
                "vs003: IB b; vs004: Socket",
            ),
            {2: "transport is IB b; Socket, in most trials IB a; IB b"},
        ),
    ],
)
def test_trials_over_another_transport_than_most_share_no_median(
    transports: Sequence[str], problems: dict[int, str]
) -> None:
    """The same mixture on other nodes is the same transport; another mixture is not."""
    trials = [
        seen(n, transport=it, nodes=OTHERS if "vs003" in it else PAIR)
        for n, it in enumerate(transports)
    ]
    for number, one in enumerate(of(*trials).trials):
        expected = (Problem("PROVENANCE", problems[number]),) if number in problems else ()
        assert (one.problems, one.state == "invalid") == (expected, number in problems)


@pytest.mark.parametrize(
    ("trials", "marks"),
    [
        ([seen(1), seen(2, 111.0, marks=(GAP, GAP)), seen(3, 105.0)], ["GAP", "WIDE-SPREAD"]),
        ([seen(1), seen(3, 105.0)], []),
        ([seen(1), seen(2, 110.0), seen(3, 100.0)], []),
        (
            [
                seen(1, marks=(GAP,)),
                seen(2),
                seen(3, state="invalid", marks=(GAP,)),
                seen(4, None, state="infra-lost", marks=(GAP,)),
            ],
            ["GAP"],
        ),
        ([seen(1, nodes=PAIR), seen(2, nodes=PAIR[::-1])], []),
        ([seen(1, nodes=PAIR), seen(2, nodes=OTHERS, state="failed")], []),
    ],
    ids=["wide", "narrow", "at the limit", "of valid trials", "same nodes", "failed elsewhere"],
)
def test_what_a_reader_should_know_of_a_median_is_marked_at_the_case(
    trials: list[Measurement], marks: list[str]
) -> None:
    """A mark of trials counts those of the median alone."""
    found = messages(of(*trials))
    assert list(found) == marks
    assert found.get("GAP", "in 1 trial") == "in 1 trial"


def test_medians_over_several_sets_of_nodes_and_beside_others_are_marked() -> None:
    beside = ("4n8g-rn50_1", "1n1g-rn50_2", "4n8g-rn50_2")
    found = of(seen(1, nodes=PAIR), seen(2, nodes=OTHERS, beside=beside), seen(3, nodes=PAIR[::-1]))
    assert messages(found) == {
        "NODE-SETS": "its trials ran on vs[001-002] and on vs[003-004]",
        "BESIDE": "in 1 trial, beside trials of 1n1g, 4n8g",
    }


def test_an_outlier_is_named_and_counts() -> None:
    """9 % below four that agree within 0.1 %: marked, in the median, its name in the report."""
    values = (384.9, 385.0, 350.0, 384.8, 385.1)
    trials = [trial(f"r50_{n}", value) for n, value in enumerate(values, 1)]
    found = of(trial("r50_6", None, "failed"), *trials)
    assert found.statistics is not None
    assert (found.statistics.n, found.statistics.median) == (5, 384.9)
    marked = {one.trial: one.marks[0].message for one in found.trials if one.marks}
    assert marked == {"r50_3": "9.1% below the median of 5 trials"}
    assert messages(found)["OUTLIER"] == "in 1 trial"
    high = of(trial("a", 420.0), *trials[:2], *trials[3:], trial("b", 385.0))
    assert high.trials[0].marks[0].message == "9.1% above the median of 6 trials"


@pytest.mark.parametrize(
    "values",
    [(), (1.0, 1.0, 9.0), (1.0, 1.01, 1.02, 9.0), (2.0,) * 4 + (9.0,), RN50_AMP["1x1"]],
    ids=["none", "3 values", "4 values", "mostly equal", "seed 003"],
)
def test_too_few_or_mostly_equal_values_have_no_outlier(values: tuple[float, ...]) -> None:
    """Equal ones have no deviation to measure by; seed 003's second trial is 1.1 % below."""
    assert medians.find_outliers(values) == {}


TWO, FOUR = seed_log(16), seed_log(32)


@pytest.mark.parametrize(
    ("trials", "others"),
    [
        (
            [backed(f"t{n}", sha256=it) for n, it in enumerate(("aa", "bb", "aa"))],
            {0: "t2", 2: "t0"},
        ),
        (
            [
                backed(f"t{n}", digest=it.digest, sha256=it.sha256)
                for n, it in enumerate((TWO, FOUR))
            ],
            {0: "t1", 1: "t0"},
        ),
        ([backed("a", sha256="aa"), backed("b", sha256="bb"), trial("c", None, "failed")], {}),
        ([replace(trial(n, None), log=replace(LOG, sha256=validity.NOTHING)) for n in "ab"], {}),
    ],
    ids=["same bytes", "same steps under another header", "no evidence", "empty"],
)
def test_logs_that_are_copies_make_their_trials_invalid(
    trials: list[Measurement], others: dict[int, str]
) -> None:
    """It is not known which of them was measured."""
    assert TWO.sha256 != FOUR.sha256
    for number, (found, before) in enumerate(
        zip(validity.same_evidence(trials), trials, strict=True)
    ):
        text = f"the same steps also serve {others.get(number)}"
        problems = (Problem("SAME-EVIDENCE", text),) if number in others else ()
        assert found.problems == problems
        assert found.state == ("invalid" if problems else before.state)


def test_copied_log_of_a_failed_trial_keeps_its_state() -> None:
    """What had failed before is not called invalid, and still says whose log it shares."""
    failed = replace(backed("t1", sha256="aa"), state="failed", problems=(Problem("A", "b"),))
    found, *_ = validity.same_evidence([failed, *(backed(it, sha256="aa") for it in ("t2", "t3"))])
    assert found.state == "failed"
    said = Problem("SAME-EVIDENCE", "the same steps also serve t2, t3")
    assert found.problems == (Problem("A", "b"), said)


PLACES = ("start", "middle", "end")


def watch(values: Sequence[float], *own: float) -> tuple[float | None, float, str]:
    """Return drift, bound and message of a canary, whose case has these trials of its own."""
    trials = [trial(place, value) for place, value in zip(PLACES, values, strict=False)]
    result = of(*(trial(str(n), value) for n, value in enumerate(own)), placement="1x1")
    found = medians.judge_canary(case("1x1"), PLACES[: len(trials)], trials, result)
    assert all(mark.code == "DRIFT" for mark in found.marks)
    return found.drift, found.bound, "".join(mark.message for mark in found.marks)


def test_a_canary_that_differs_by_more_than_two_percent_is_a_drift() -> None:
    """The mark says what was measured when."""
    drift, bound, message = watch((802.9, 790.0, 780.0))
    assert drift == pytest.approx(22.9 / 790)
    assert bound == 0.02
    assert message == (
        "2.9% between 802.90 at the start, 790.00 at the middle, 780.00 at the end;"
        " expected at most 2.0%: the machines changed"
    )
    assert watch((802.9, 790.0, 788.0))[2] == ""
    assert watch((101.0, 100.0, 99.0))[2] == ""


@pytest.mark.parametrize(
    ("own", "bound"),
    [((800.0, 780.0, 820.0), 0.05), ((780.0, 820.0), 0.02), ((800.0, 800.1, 800.2), 0.02)],
    ids=["wide", "two trials", "narrow"],
)
def test_a_canary_of_a_case_that_scatters_has_a_wider_bound(
    own: tuple[float, ...], bound: float
) -> None:
    """Of two trials nothing is learnt, and 2 % is the least."""
    _, used, message = watch((802.9, 790.0, 780.0), *own)
    assert (used, message == "") == (bound, bound == 0.05)


def test_a_canary_that_failed_or_was_not_run_is_no_drift() -> None:
    failed, planned = trial("middle", None, "failed"), trial("end", None, "planned")
    found = medians.judge_canary(
        case("1x1"), PLACES, [trial("start", 802.9), failed, planned], None
    )
    assert (found.drift, found.marks, len(found.trials)) == (None, (), 3)
    assert medians.judge_canary(case("1x1"), ("end",), [planned], None).drift is None
