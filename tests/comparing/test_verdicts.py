"""Verdicts: different, the same within the bound, unknown, and what the gate makes of them."""

import random
from collections.abc import Sequence

import pytest

from orchestrator.comparing import verdicts
from orchestrator.comparing.sides import SideCase
from orchestrator.comparing.verdicts import ComparedCase
from tests.comparing.reports import case

STEADY = (100.0, 100.1, 99.9, 100.05, 99.95, 100.02, 99.98)
WIDE = (90.0, 110.0, 95.0, 105.0, 100.0)
WIDE_OR_AT_THE_BOUND = (
    "as far apart as the bound, or spread too wide: 100 more trials of each would probably not tell"
)
TOO_FEW = "needed at least 3 valid trials on each side, better five"


def times(values: Sequence[float], factor: float) -> tuple[float, ...]:
    """The values of a machine that is faster by a factor."""
    return tuple(value * factor for value in values)


def pair(first: Sequence[float], second: Sequence[float]) -> tuple[SideCase, SideCase]:
    """One case of two sides that share no log."""
    return case(first), case(second)


def judge(
    cases: Sequence[tuple[SideCase, SideCase]], slower: float | None = None
) -> tuple[ComparedCase, ...]:
    """The verdicts at a bound of 1 %."""
    return verdicts.judge_cases(cases, 0.01, slower)


def one(
    first: Sequence[float],
    second: Sequence[float],
    slower: float | None = None,
    bound: float = 0.01,
) -> ComparedCase:
    """The verdict on a single case."""
    (found,) = verdicts.judge_cases([pair(first, second)], bound, slower)
    return found


def test_three_verdicts() -> None:
    """3 % apart, equal, and too scattered to say."""
    slower = one(STEADY, times(STEADY, 0.97))
    assert (slower.verdict, slower.more_trials, slower.reason) == ("different", None, None)
    assert slower.p == pytest.approx(2 / 3432)
    assert slower.difference == pytest.approx(-0.03)
    assert one(STEADY, STEADY).verdict == "same"
    unknown = one(WIDE, times(WIDE, 1.02))
    assert (unknown.verdict, unknown.more_trials) == ("unknown", None)
    assert unknown.reason == WIDE_OR_AT_THE_BOUND


@pytest.mark.parametrize("seed", range(20))
def test_a_verdict_is_where_the_whole_interval_lies(seed: int) -> None:
    """Beyond the bound, within, or across one of its ends; so is the gate's."""
    chance = random.Random(seed)
    for _ in range(50):
        factor, deviation = 1 + chance.uniform(-0.06, 0.04), chance.choice([0.1, 0.5, 2])
        first, second = ([chance.gauss(100, deviation) for _ in range(5)] for _ in range(2))
        found = one(first, times(second, factor), slower=0.03)
        interval = found.interval
        assert interval is not None
        beyond = interval.low > 0.01 or interval.high < -0.01
        within = interval.low >= -0.01 and interval.high <= 0.01
        assert found.verdict == ("different" if beyond else "same" if within else "unknown")
        fails, passes = interval.high < -0.03, interval.low >= -0.03
        assert found.gate == ("slower" if fails else "passed" if passes else "unknown")


def test_a_difference_within_the_bound_is_the_same() -> None:
    """Seen beyond doubt, and too small to matter; with another bound it is a difference."""
    small = one(STEADY, times(STEADY, 0.996))
    assert small.verdict == "same"
    assert small.p == pytest.approx(0.0006, abs=1e-4)
    assert one(STEADY, times(STEADY, 0.996), bound=0.002).verdict == "different"
    assert one(STEADY, times(STEADY, 1.005), bound=0.002).verdict == "different"


def test_a_difference_at_the_bound_is_unknown() -> None:
    """Neither larger than the bound nor smaller for sure: no number of trials is named."""
    verdict = one(STEADY, times(STEADY, 0.99001))
    assert (verdict.verdict, verdict.more_trials) == ("unknown", None)
    assert verdict.reason == WIDE_OR_AT_THE_BOUND


def test_three_trials_can_tell() -> None:
    """If they agree well; else about how many more would; one trial has no spread."""
    few = (100.0, 100.1, 99.9)
    assert one(few, times(few, 0.5)).verdict == "different"
    verdict = one((100.0, 100.9, 99.1), (95.0, 95.9, 94.1))
    assert (verdict.verdict, verdict.more_trials) == ("different", None)
    wide = one((100.0, 101.8, 98.2), (95.0, 96.7, 93.3))
    assert wide.verdict == "unknown"
    assert wide.more_trials is not None
    low, high = wide.more_trials
    assert 1 <= low < high < 20
    assert wide.reason == f"about {low} to {high} more trials of each would probably tell"
    single = one(few, (97.0,))
    assert (single.verdict, single.interval) == ("unknown", None)
    assert single.reason == TOO_FEW
    assert one(few, (97.0,), slower=0.03).gate == "unknown"


def test_holm_is_less_strict_after_the_first() -> None:
    """p values 0.01, 0.02, 0.03, 0.04 of four cases become 0.04, 0.06, 0.06, 0.06."""
    assert verdicts.correct_p(dict(enumerate([0.03, 0.01, 0.04, 0.02]))) == pytest.approx(
        {0: 0.06, 1: 0.04, 2: 0.06, 3: 0.06}
    )


def test_cases_without_trials_do_not_count() -> None:
    """A failed case corrects nothing."""
    far = pair(STEADY[:4], times(STEADY[:4], 0.9))
    found = judge([pair((), STEADY), far])
    assert [verdict.verdict for verdict in found] == ["unknown", "different"]
    assert found[1].p_holm == found[1].p
    assert (found[0].difference, found[0].interval) == (None, None)
    assert found[0].reason == TOO_FEW
    assert {verdict.gate for verdict in found} == {None}


@pytest.mark.parametrize(
    ("factor", "gate"), [(1.0, "passed"), (1.05, "passed"), (0.98, "passed"), (0.96, "slower")]
)
def test_the_gate(factor: float, gate: str) -> None:
    """Slower by 4 % fails a gate of 3 %; 2 % slower passes, though it is a difference."""
    assert one(STEADY, times(STEADY, factor), slower=0.03).gate == gate


def test_a_gate_that_cannot_tell_does_not_pass() -> None:
    """Scattered trials, an edge of exactly 3 %, no trials, and the same trials on both sides."""
    assert one(WIDE, WIDE, slower=0.03).gate == "unknown"
    assert one(STEADY, times(STEADY, 0.9701), slower=0.03).gate == "unknown"
    assert one((), STEADY, slower=0.03).gate == "unknown"
    same = case(STEADY, "log")
    (shared,) = judge([(same, same)], 0.03)
    assert (shared.verdict, shared.gate) == ("same", "unknown")
    assert (
        shared.reason
        == "7 trials on both sides tell nothing of two runs: compare with another sweep"
    )


def test_many_cases_pass_as_one_does_and_fail_less_easily() -> None:
    """20 of 5 trials: a pass needs no correction, a failure does, and says so."""
    equal = pair(STEADY[:5], STEADY[1:6])
    assert {verdict.gate for verdict in judge([equal] * 20, 0.03)} == {"passed"}
    slow = pair((100.0, 100.9, 99.1, 100.4, 99.6), (95.2, 96.1, 94.3, 95.6, 94.8))
    assert judge([slow], 0.03)[0].gate == "slower"
    found = judge([slow, *[equal] * 19], 0.03)[0]
    assert (found.verdict, found.gate) == ("different", "unknown")
    assert found.gate_interval is not None
    assert found.gate_interval.high > -0.03
    assert found.gate_interval.coverage == pytest.approx(1 - 0.05 / 20)
    assert str(found.reason).startswith("slower by more than 3.00% by its own interval, but not by")
    far = pair(STEADY[:5], times(STEADY[1:6], 0.9))
    assert judge([far, *[equal] * 19], 0.03)[0].gate == "slower"


def test_a_bound_of_everything_calls_nothing_different() -> None:
    """A bound of 100 % and more has no lower end."""
    assert one(STEADY, times(STEADY, 0.5), bound=1.0).verdict == "same"


@pytest.mark.parametrize("seed", range(20))
def test_a_comparison_with_itself_finds_no_difference(seed: int) -> None:
    """Whatever the trials are."""
    chance = random.Random(seed)
    cases = []
    for _ in range(chance.randint(1, 12)):
        values = tuple(
            chance.choice([chance.gauss(100, 5), 100.0]) for _ in range(chance.randint(1, 9))
        )
        cases.append(pair(values, values))
    for verdict in judge(cases, 0.03):
        assert verdict.verdict != "different"
        assert verdict.gate != "slower"
        assert (verdict.difference, verdict.p) == (0.0, 1.0)


@pytest.mark.parametrize("seed", range(10))
def test_swapped_sides_have_the_same_verdict(seed: int) -> None:
    """A is different from B as B is from A, by the same p."""
    chance = random.Random(seed)
    first = tuple(chance.gauss(100, 1) for _ in range(7))
    second = tuple(chance.gauss(97, 1) for _ in range(6))
    there, back = one(first, second, bound=0.002), one(second, first, bound=0.002)
    assert there.p == pytest.approx(back.p)
    assert there.verdict == back.verdict


def test_two_trials_a_side_give_neither_verdict_nor_gate() -> None:
    """However far apart: their interval covers 88 %."""
    (found,) = judge([pair((100.0, 100.1), (50.0, 50.1))], 0.03)
    assert (found.verdict, found.gate, found.reason) == ("unknown", "unknown", TOO_FEW)
    assert found.interval is not None
