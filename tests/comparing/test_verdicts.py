"""Verdicts: different, the same within the bound, unknown, and what the gate makes of them."""

import random
from collections.abc import Sequence

import pytest

from orchestrator.comparing import verdicts
from orchestrator.comparing.verdicts import Samples, Verdict

STEADY = (100.0, 100.1, 99.9, 100.05, 99.95, 100.02, 99.98)


def times(values: Sequence[float], factor: float) -> tuple[float, ...]:
    """The values of a machine that is faster by a factor; no two of them equal."""
    return tuple(value * factor * (1 + 1e-6) for value in values)


def one(first: Sequence[float], second: Sequence[float], **more: float) -> Verdict:
    """The verdict on a single case."""
    slower = more.pop("slower", None)
    samples = Samples(tuple(first), tuple(second), **{"bound": 0.01, **more})  # type: ignore[arg-type] # counts are whole in the tests
    (verdict,) = verdicts.judged([samples], slower)
    return verdict


def test_three_verdicts() -> None:
    """3 % apart, equal, and too scattered to say."""
    slower = one(STEADY, times(STEADY, 0.97))
    assert (slower.kind, slower.needs, slower.reason) == ("different", None, "")
    assert slower.p == pytest.approx(2 / 3432)
    assert slower.difference == pytest.approx(-0.03, abs=1e-5)
    assert one(STEADY, times(STEADY, 1.0)).kind == "same"
    wide = (90.0, 110.0, 95.0, 105.0, 100.0)
    unknown = one(wide, times(wide, 1.02))
    assert (unknown.kind, unknown.reason) == (
        *("unknown", f"{unknown.needs} trials of each would probably tell"),
    )
    assert unknown.needs is not None
    assert unknown.needs > 100


def test_a_difference_within_the_bound_is_the_same() -> None:
    """Seen beyond doubt, and too small to matter; with another bound it is a difference."""
    small = one(STEADY, times(STEADY, 0.996))
    assert small.kind == "same"
    assert small.p == pytest.approx(2 / 3432)
    assert one(STEADY, times(STEADY, 0.996), bound=0.002).kind == "different"


def test_a_difference_at_the_bound_is_unknown() -> None:
    """Neither larger than the bound nor smaller for sure."""
    verdict = one(STEADY, times(STEADY, 0.99001))
    assert verdict.kind == "unknown"
    assert "as far apart as the bound" in verdict.reason


def test_too_few_trials_claim_nothing() -> None:
    """3 of each, however far apart: it says how many are needed."""
    verdict = one((100.0, 100.1, 99.9), (50.0, 50.1, 49.9))
    assert (verdict.kind, verdict.needs) == ("unknown", 4)
    assert verdict.p == pytest.approx(0.1)
    assert verdict.reason == (
        "3 and 3 trials are too few for any claim: needed 4 of each; 4 of each would probably tell"
    )
    equal = one((100.0, 100.1, 99.9), (100.0, 100.1, 99.9), slower=0.03)
    assert (equal.kind, equal.gate) == ("unknown", "unknown")
    hopeless = one((100.0, 120.0), (101.0, 119.0))
    assert hopeless.reason.endswith("needed 4 of each; 1000 that scatter like these would not tell")


def test_many_cases_need_more_trials() -> None:
    """4 of each suffice for one case, not for two: Holm's correction doubles the smaller p."""
    far = Samples(STEADY[:4], times(STEADY[:4], 0.9), 0.01)
    assert [verdict.kind for verdict in verdicts.judged([far])] == ["different"]
    found = verdicts.judged([far, far])
    assert [verdict.kind for verdict in found] == ["unknown", "unknown"]
    assert found[0].p_holm == pytest.approx(2 * 2 / 70)
    assert "needed 5 of each" in found[0].reason


def test_holm_is_less_strict_after_the_first() -> None:
    """p values 0.01, 0.02, 0.03, 0.04 of four cases become 0.04, 0.06, 0.06, 0.06."""
    assert verdicts._holm(range(4), [0.03, 0.01, 0.04, 0.02]) == pytest.approx(
        [0.06, 0.04, 0.06, 0.06]
    )
    assert verdicts._holm([1], [0.03, 0.01]) == [0.03, 0.01]


def test_cases_without_trials_do_not_count() -> None:
    """A failed case and a published one make no other case harder to tell."""
    far = Samples(STEADY[:4], times(STEADY[:4], 0.9), 0.01)
    empty = Samples((), STEADY, 0.01)
    published = Samples(STEADY, (103.0,), 0.01, published=True)
    found = verdicts.judged([empty, far, published])
    assert [verdict.kind for verdict in found] == ["unknown", "different", "unknown"]
    assert found[0].difference is None
    assert found[2].difference == pytest.approx(0.03, abs=1e-3)
    assert found[2].interval is None
    assert found[2].reason == "published: one value, no trials"
    assert {verdict.gate for verdict in found} == {None}


@pytest.mark.parametrize(
    ("factor", "gate"), [(1.0, "passed"), (1.05, "passed"), (0.98, "passed"), (0.96, "slower")]
)
def test_the_gate(factor: float, gate: str) -> None:
    """Slower by 4 % fails a gate of 3 %; 2 % slower passes, though it is a difference."""
    assert one(STEADY, times(STEADY, factor), slower=0.03).gate == gate


def test_a_gate_that_cannot_tell_does_not_pass() -> None:
    """Scattered trials, an edge of exactly 3 %, no trials, and the same trials on both sides."""
    wide = (90.0, 110.0, 95.0, 105.0, 100.0)
    assert one(wide, times(wide, 1.0), slower=0.03).gate == "unknown"
    assert one(STEADY, times(STEADY, 0.9701), slower=0.03).gate == "unknown"
    assert one((), STEADY, slower=0.03).gate == "unknown"
    shared = one(STEADY, STEADY, slower=0.03, shared=7)
    assert (shared.kind, shared.gate) == ("same", "unknown")
    assert (
        shared.reason
        == "7 trials on both sides tell nothing of two runs: compare with another sweep"
    )


def test_a_bound_of_everything_claims_nothing() -> None:
    """A bound of 100 % and more has no lower end."""
    assert one(STEADY, times(STEADY, 0.5), bound=1.0).kind == "unknown"


@pytest.mark.parametrize("seed", range(20))
def test_a_comparison_with_itself_finds_no_difference(seed: int) -> None:
    """Whatever the trials are."""
    chance = random.Random(seed)
    cases = []
    for _ in range(chance.randint(1, 12)):
        values = tuple(
            chance.choice([chance.gauss(100, 5), 100.0]) for _ in range(chance.randint(1, 9))
        )
        cases.append(Samples(values, values, 0.01))
    for verdict in verdicts.judged(cases, 0.03):
        assert verdict.kind != "different"
        assert verdict.gate != "slower"
        assert (verdict.difference, verdict.p) == (0.0, 1.0)


@pytest.mark.parametrize("seed", range(10))
def test_swapped_sides_have_the_same_verdict(seed: int) -> None:
    """A is different from B as B is from A, by the same p."""
    chance = random.Random(seed)
    first = tuple(chance.gauss(100, 1) for _ in range(7))
    second = tuple(chance.gauss(98, 1) for _ in range(6))
    there, back = one(first, second, bound=0.002), one(second, first, bound=0.002)
    assert there.p == pytest.approx(back.p)
    assert there.kind == back.kind
