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
FEW = (100.0, 100.1, 99.9)
TOO_FEW = "needed at least 3 valid trials on each side, better five"


def times(values: Sequence[float], factor: float) -> tuple[float, ...]:
    """Return the values of a machine that is faster by a factor."""
    return tuple(value * factor for value in values)


def pair(first: Sequence[float], second: Sequence[float]) -> tuple[SideCase, SideCase]:
    """Return one case of two sides that share no log."""
    return case(first), case(second)


def judge(
    cases: Sequence[tuple[SideCase, SideCase]], slower: float | None = None
) -> tuple[ComparedCase, ...]:
    """Return the verdicts at a bound of 1 %."""
    return verdicts.judge_cases(cases, 0.01, slower)


def one(
    first: Sequence[float],
    second: Sequence[float],
    slower: float | None = None,
    bound: float = 0.01,
) -> ComparedCase:
    (found,) = verdicts.judge_cases([pair(first, second)], bound, slower)
    return found


@pytest.mark.parametrize(
    ("first", "second", "bound", "verdict", "reason"),
    [
        (STEADY, times(STEADY, 0.97), 0.01, "different", None),
        (STEADY, STEADY, 0.01, "same", None),
        (WIDE, times(WIDE, 1.02), 0.01, "unknown", WIDE_OR_AT_THE_BOUND),
        (STEADY, times(STEADY, 0.996), 0.01, "same", None),
        (STEADY, times(STEADY, 0.996), 0.002, "different", None),
        (STEADY, times(STEADY, 1.005), 0.002, "different", None),
        (STEADY, times(STEADY, 0.99001), 0.01, "unknown", WIDE_OR_AT_THE_BOUND),
        (STEADY, times(STEADY, 0.5), 1.0, "same", None),
        (FEW, times(FEW, 0.5), 0.01, "different", None),
        ((100.0, 100.9, 99.1), (95.0, 95.9, 94.1), 0.01, "different", None),
        (FEW, (97.0,), 0.01, "unknown", TOO_FEW),
        (FEW, (), 0.01, "unknown", TOO_FEW),
        ((100.0, 100.1), (50.0, 50.1), 0.01, "unknown", TOO_FEW),
    ],
    ids=[
        *("3 % apart", "equal", "scattered", "too small to matter", "a smaller bound"),
        *("faster", "at the bound", "no lower end", "three trials", "three that agree less"),
        *("one trial", "no trial", "two trials"),
    ],
)
def test_a_case_is_different_the_same_or_unknown(
    first: Sequence[float],
    second: Sequence[float],
    bound: float,
    verdict: str,
    reason: str | None,
) -> None:
    """The interval of two trials covers only 88 %, so they tell nothing, however far apart."""
    found = one(first, second, slower=0.03, bound=bound)
    assert (found.verdict, found.reason) == (verdict, reason)
    assert (found.interval is None) == (len(second) < 2)
    if reason == TOO_FEW:
        assert found.gate == "unknown"
    else:
        assert found.more_trials is None


def test_p_is_that_of_the_rank_test() -> None:
    """There are 3432 ways to split 14 values into halves; two are as uneven as this one."""
    for factor in (0.97, 0.996):
        found = one(STEADY, times(STEADY, factor))
        assert found.p == pytest.approx(2 / 3432)
        assert found.difference == pytest.approx(factor - 1)


def test_about_how_many_more_trials_would_tell_is_named() -> None:
    found = one((100.0, 101.8, 98.2), (95.0, 96.7, 93.3))
    assert found.verdict == "unknown"
    assert found.more_trials is not None
    low, high = found.more_trials
    assert 1 <= low < high < 20
    assert found.reason == f"about {low} to {high} more trials of each would probably tell"


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


def test_holm_is_less_strict_after_the_first() -> None:
    """p values 0.01, 0.02, 0.03, 0.04 of four cases become 0.04, 0.06, 0.06, 0.06."""
    assert verdicts.correct_p(dict(enumerate([0.03, 0.01, 0.04, 0.02]))) == pytest.approx(
        {0: 0.06, 1: 0.04, 2: 0.06, 3: 0.06}
    )


def test_cases_without_trials_correct_nothing() -> None:
    far = pair(STEADY[:4], times(STEADY[:4], 0.9))
    found = judge([pair((), STEADY), far])
    assert [verdict.verdict for verdict in found] == ["unknown", "different"]
    assert found[1].p_holm == found[1].p
    assert (found[0].difference, found[0].interval) == (None, None)
    assert {verdict.gate for verdict in found} == {None}


@pytest.mark.parametrize(
    ("first", "second", "gate"),
    [
        *[(STEADY, times(STEADY, factor), "passed") for factor in (1.0, 1.05, 0.98)],
        (STEADY, times(STEADY, 0.96), "slower"),
        (STEADY, times(STEADY, 0.9701), "unknown"),
        (WIDE, WIDE, "unknown"),
        ((), STEADY, "unknown"),
    ],
)
def test_a_gate_of_3_percent_that_cannot_tell_does_not_pass(
    first: Sequence[float], second: Sequence[float], gate: str
) -> None:
    """Slower by 2 % passes, though it is a difference."""
    assert one(first, second, slower=0.03).gate == gate


def test_the_same_trials_on_both_sides_pass_no_gate() -> None:
    same = case(STEADY, "log")
    (shared,) = judge([(same, same)], 0.03)
    assert (shared.verdict, shared.gate, shared.shared_trials) == ("same", "unknown", 7)


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
