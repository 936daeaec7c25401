"""Results of cases: medians, intervals, speedups, and which trials count in them."""

from dataclasses import replace

import pytest

from orchestrator.measuring import medians, validity
from orchestrator.model.case import Case
from orchestrator.model.problem import Problem
from orchestrator.model.result import Interval
from tests.measuring.trials import LOG, backed, case, results, seed_log, trial
from tests.seeds import RN50_AMP


def test_speedup_is_absent_without_the_case_of_one_rank() -> None:
    """Never 1.0: upstream's script gives 1.0 to every case where 1n1g is missing."""
    without = {placement: values for placement, values in RN50_AMP.items() if placement != "1x1"}
    for found in medians.compared(results(without)):
        assert (found.speedup, found.efficiency) == (None, None)


def test_speedup_is_absent_if_the_case_of_one_rank_gave_nothing() -> None:
    """A failed 1x1 is no baseline, and a case that failed itself has no speedup."""
    failed = medians.result(case("1x1"), [trial("a", None, "failed")])
    ran = medians.result(case("2x8"), [trial("b", 11991.94)])
    assert [result.speedup for result in medians.compared([failed, ran])] == [None, None]
    good = medians.result(case("1x1"), [trial("a", 802.9)])
    lost = medians.result(case("2x8"), [trial("b", None, "infra-lost")])
    assert [result.speedup for result in medians.compared([good, lost])] == [1.0, None]


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
    one = medians.result(case("1x1"), [trial("a", 802.9)])
    found = medians.compared([one, medians.result(other, [trial("b", 5716.79)])])
    assert found[1].speedup is None


@pytest.mark.parametrize(("factor", "marked"), [(16 * 1.049, False), (16 * 1.051, True)])
def test_more_than_the_ranks_can_give_is_marked_and_not_hidden(
    factor: float, *, marked: bool
) -> None:
    """Efficiency over 105 %: the number stays, with IMPLAUSIBLE beside it."""
    found = medians.compared(results({"1x1": (800.0,), "2x8": (800.0 * factor,)}))[1]
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
    found = medians.summary(values).interval
    assert found is not None
    assert (found.low, found.high) == (low * low, high * high)
    assert found.coverage == pytest.approx(coverage, abs=0.0006)


def test_summary_of_the_seeds_largest_case_is_complete() -> None:
    """Five values: the interval is [min, max] and covers the median with 93.75 %."""
    found = medians.summary(RN50_AMP["4x8"])
    assert (found.n, found.median, found.low, found.high) == (5, 22551.16, 22053.98, 23049.75)
    assert found.spread == (23049.75 - 22053.98) / 22551.16
    assert found.interval == Interval(22053.98, 23049.75, 0.9375)


def test_a_single_trial_has_no_spread_and_no_interval() -> None:
    """One number says nothing of how numbers scatter."""
    found = medians.summary([6098.37])
    assert (found.n, found.median, found.spread, found.interval) == (1, 6098.37, None, None)


def test_median_of_an_even_number_lies_between_the_two_in_the_middle() -> None:
    """As numpy's, which upstream uses."""
    assert medians.summary([4.0, 1.0, 2.0, 3.0]).median == 2.5


def test_only_valid_trials_are_counted() -> None:
    """What failed, was invalid or never ran is shown with the result and is in no number."""
    states = ("valid", "failed", "invalid", "infra-lost", "interrupted", "planned", "valid")
    trials = [trial(f"t{at}", 100.0 * at, state) for at, state in enumerate(states, 1)]
    found = medians.result(case(), trials)
    assert found.trials == tuple(trials)
    assert found.statistics == medians.summary([100.0, 700.0])


def test_case_without_a_valid_trial_has_no_number() -> None:
    """Neither 0 nor NaN."""
    assert medians.result(case(), [trial("t1", None, "failed")]).statistics is None
    assert medians.result(case(), []).statistics is None


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
    found = medians.result(case(), trials)
    assert [measured.state for measured in found.trials] == ["failed", "valid", "invalid", "valid"]
    assert found.trials[2].problems == (
        Problem("PROVENANCE", "driver is 450.80.02, in most trials 440.33.01"),
    )
    assert found.statistics == medians.summary([800.0, 802.0])


def test_the_majority_of_the_trials_judges_and_not_the_first() -> None:
    """The driver was updated after repeat 1: the four that agree are the result."""
    old, new = {"driver": "440.33.01"}, {"driver": "450.80.02"}
    trials = [replace(trial("t1", 700.0), provenance=old)]
    trials += [replace(trial(f"t{n}", 800.0 + n), provenance=new) for n in (2, 3, 4, 5)]
    found = medians.result(case(), trials)
    assert [one.state for one in found.trials] == ["invalid", *4 * ["valid"]]
    assert found.trials[0].problems == (
        Problem("PROVENANCE", "driver is 440.33.01, in most trials 450.80.02"),
    )
    assert found.statistics == medians.summary([802.0, 803.0, 804.0, 805.0])


def test_without_a_majority_no_trial_is_right() -> None:
    """Two against two, or two of four: every trial names its difference, and no median is given."""
    drivers = ("1", "2", "2", "1")
    trials = [
        replace(trial(f"t{place}", 800.0), provenance={"driver": driver})
        for place, driver in enumerate(drivers)
    ]
    found = medians.result(case(), trials)
    assert found.statistics is None
    assert [one.problems[0].message for one in found.trials] == [
        f"driver is {here}, in other trials {there}; no majority agrees"
        for here, there in (("1", "2"), ("2", "1"), ("2", "1"), ("1", "2"))
    ]
    third = replace(trials[3], provenance={"driver": "3"})
    found = medians.result(case(), [*trials[:3], third])
    assert {one.state for one in found.trials} == {"invalid"}
    assert "in other trials 1 and 3" in found.trials[1].problems[0].message


def test_trials_of_another_transport_share_no_median() -> None:
    """A repeat that fell back to sockets does not count beside one over InfiniBand."""
    fast = replace(trial("t1", 11991.94), transport="IB mlx5_0")
    slow = replace(trial("t2", 9000.0), transport="Socket ib0")
    found = medians.result(case(), [slow, fast, replace(fast, trial="t3")])
    assert found.trials[0].problems == (
        Problem("PROVENANCE", "transport is Socket ib0, in most trials IB mlx5_0"),
    )
    assert found.statistics == medians.summary([11991.94, 11991.94])
    assert found.transport == "IB mlx5_0"


def test_provenance_that_one_trial_lacks_is_named() -> None:
    """Whichever of the two knows more."""
    known = replace(trial("t1", 800.0), provenance={"driver": "440.33.01"})
    unknown = trial("t2", 900.0)
    found = medians.result(case(), [known, known, unknown]).trials[2]
    assert found.problems[0].message == "driver is unknown, in most trials 440.33.01"
    found = medians.result(case(), [unknown, known, unknown]).trials[1]
    assert found.problems[0].message == "driver is 440.33.01, in most trials unknown"


def test_same_bytes_in_two_trials_make_both_invalid() -> None:
    """A log copied to another name measured one run, and it is not known of which."""
    trials = [backed("t1", sha256="aa"), backed("t2", sha256="bb"), backed("t3", sha256="aa")]
    found = validity.same_evidence(trials)
    assert [measured.state for measured in found] == ["invalid", "valid", "invalid"]
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
    found = validity.same_evidence(trials)
    assert [measured.problems for measured in found] == [
        (Problem("SAME-EVIDENCE", "the same steps also serve 4n8g"),),
        (Problem("SAME-EVIDENCE", "the same steps also serve 2n8g"),),
    ]


def test_trials_without_evidence_are_not_the_same() -> None:
    """Two logs without a window have no steps in common, and two failures no log."""
    trials = [backed("t1", sha256="aa"), backed("t2", sha256="bb"), trial("t3", None, "failed")]
    assert validity.same_evidence(trials) == trials


def test_copied_log_of_a_failed_trial_keeps_its_state() -> None:
    """What had failed before is not called invalid, and still says whose log it shares."""
    failed = replace(backed("t1", sha256="aa"), state="failed", problems=(Problem("A", "b"),))
    found = validity.same_evidence([failed, backed("t2", sha256="aa"), backed("t3", sha256="aa")])
    assert found[0].state == "failed"
    assert found[0].problems == (
        Problem("A", "b"),
        Problem("SAME-EVIDENCE", "the same steps also serve t2, t3"),
    )


def test_speedup_over_a_case_measured_otherwise_is_not_given() -> None:
    """Another driver behind the 1x1 case: a mark with both, and no number."""
    one, two = (
        medians.result(
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
    first, second = medians.compared([one, two])
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
    found = medians.result(case("1x1"), trials)
    assert [mark.code for mark in found.marks] == ["GAP", "WIDE-SPREAD"]
    assert found.marks[0].message == "in 1 trial"
    assert medians.result(case("1x1"), trials[::2]).marks == ()


def test_a_mark_counts_the_trials_of_the_median() -> None:
    """A trial that is out may have the mark as well: its number is not behind the median."""
    gap = Problem("GAP", "line 7")
    out = replace(trial("c", 400.0, "invalid"), marks=(gap,))
    lost = replace(trial("d", None, "infra-lost"), marks=(gap,))
    (mark,) = medians.result(
        case(), [replace(trial("a", 100.0), marks=(gap,)), trial("b", 101.0), out, lost]
    ).marks
    assert (mark.code, mark.message) == ("GAP", "in 1 trial")


def test_a_median_over_trials_that_ran_beside_others_is_marked() -> None:
    """With how many, and beside trials of which placements."""
    beside = ("4n8g-rn50_1", "1n1g-rn50_2", "4n8g-rn50_2")
    trials = [trial("a", 100.0), replace(trial("b", 100.0), beside=beside)]
    (mark,) = medians.result(case("1x1"), trials).marks
    assert mark == Problem("BESIDE", "in 1 trial, beside trials of 1n1g, 4n8g")


def test_a_median_over_several_sets_of_nodes_is_marked() -> None:
    """Their order within a set says nothing; a trial that does not count says nothing either."""
    ran = [("vs001", "vs002"), ("vs002", "vs001"), ("vs003", "vs004")]
    trials = [replace(trial(str(at), 100.0), nodes=nodes) for at, nodes in enumerate(ran)]
    (mark,) = medians.result(case("2x8"), trials).marks
    assert mark == Problem("NODE-SETS", "its trials ran on vs[001-002] and on vs[003-004]")
    assert medians.result(case("2x8"), trials[:2]).marks == ()
    failed = replace(trials[2], state="failed")
    assert medians.result(case("2x8"), [*trials[:2], failed]).marks == ()


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
    found = medians.result(case("2x8"), [one, two, three])
    assert [measured.state for measured in found.trials] == ["valid", "valid", "invalid"]


def test_trial_without_a_number_is_no_reference_for_the_others() -> None:
    """A valid outcome whose log is gone must not throw out the trials that are there."""
    gone = replace(trial("a", None), provenance={})
    there = replace(trial("b", 100.0), provenance={"driver": "440"})
    assert [measured.state for measured in medians.result(case("1x1"), [gone, there]).trials][
        1
    ] == "valid"


def test_two_empty_logs_are_no_copies_of_each_other() -> None:
    """Nothing is no evidence."""
    empty = replace(LOG, sha256=validity.NOTHING)
    trials = [replace(trial(name, None, "invalid"), log=empty) for name in ("a", "b")]
    assert [measured.problems for measured in validity.same_evidence(trials)] == [(), ()]


@pytest.mark.parametrize("trials", [{"1x1": (800.0,)}, {"1x4": (3129.63,)}])
def test_a_speedup_of_single_trials_has_no_interval(trials: dict[str, tuple[float, ...]]) -> None:
    """One number has no interval, so neither has its quotient."""
    both = {"1x1": RN50_AMP["1x1"], "1x4": RN50_AMP["1x4"], **trials}
    assert medians.compared(results(both))[1].speedup_interval is None


def test_results_are_ordered_by_ranks_then_nodes() -> None:
    """Whatever order a plan has, 2x8 comes before 4x8 and 1x8 before 2x4; equals stay."""
    asked = ("4x8", "8x1", "2x8", "1x1", "2x4", "1x8")
    found = medians.compared(results(dict.fromkeys(asked, (100.0,))))
    ordered = [result.case.placement for result in found]
    assert ordered == ["1x1", "1x8", "2x4", "8x1", "2x8", "4x8"]
    others = results({"4x8": (1.0,), "1x1": (2.0,)}, micro_batch_size=128)
    cases = [result.case for result in medians.compared([*found, *others])]
    assert [case.micro_batch_size for case in cases] == [256, 128, *[256] * 5, 128]
