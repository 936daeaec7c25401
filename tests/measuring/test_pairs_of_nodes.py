"""The speed of nodes by trials of two: a slow one is told from the partners that it held up."""

import random
from collections.abc import Collection, Iterable

import pytest

from orchestrator.measuring import node_speeds
from orchestrator.model.result import NodeSpeed
from orchestrator.sweeping.campaign import pair
from tests.measuring.test_node_speeds import result, slow_ones, trial

DRAWS = 200
ROUNDS = 6
Rates = list[tuple[tuple[str, ...], float]]


def names(count: int) -> tuple[str, ...]:
    return tuple(f"n{at}" for at in range(1, count + 1))


def drawn(dice: random.Random, count: int, slow: Collection[str]) -> Rates:
    """Rounds of an all-reduce over pairs: the slower of both sets the pace; 0.5 % of spread."""
    gangs = [pair(names(count), repeat + 1) for repeat in range(ROUNDS * (count // 2))]
    return [
        (gang, 40.0 * (0.95 if {*gang} & {*slow} else 1) * dice.gauss(1, 0.005)) for gang in gangs
    ]


def speeds(*cases: Iterable[tuple[tuple[str, ...], float]]) -> tuple[NodeSpeed, ...]:
    return node_speeds.compare_nodes(
        [
            result(at, *(trial(" ".join(gang), rate) for gang, rate in case))
            for at, case in enumerate(cases, 1)
        ]
    )


@pytest.mark.parametrize(
    ("count", "slow"),
    [
        (3, ["n3"]),
        (4, ["n3"]),
        (4, ["n1", "n3"]),
        (5, ["n1", "n3"]),
        (8, ["n1", "n3"]),
        (32, ["n3"]),
    ],
)
def test_slow_nodes_are_named_in_nearly_all_draws(count: int, slow: list[str]) -> None:
    """5 % slower, at a spread of 0.5 %; two of four slow nodes leave one pair of six unharmed."""
    dice = random.Random(f"{count}{slow}")
    found = [speeds(drawn(dice, count, slow)) for _ in range(DRAWS // 4)]
    assert sum(slow_ones(one) == tuple(slow) for one in found) >= 0.9 * len(found)


@pytest.mark.parametrize("count", [3, 4, 8])
def test_equal_nodes_are_named_in_few_draws(count: int) -> None:
    """At most 5 %."""
    dice = random.Random(count)
    named = sum(bool(slow_ones(speeds(drawn(dice, count, ())))) for _ in range(DRAWS))
    assert named <= 0.05 * DRAWS


@pytest.mark.parametrize("gangs", [["a b"], ["a b", "c d"], ["a b", "b c"]])
def test_a_node_that_met_one_other_only_is_not_compared(gangs: list[str]) -> None:
    """One pair, two pairs, a chain: a lack could be either's."""
    rates: Rates = [(tuple(gang.split()), 40.0 + at) for at, gang in enumerate(gangs)] * 3
    assert speeds(rates) == ()


def test_a_node_can_do_what_it_did_in_its_best_trial() -> None:
    """Of three pairs the two with b are at 36: b is 10 % slower than a and c."""
    once: Rates = [(("a", "b"), 36.0), (("b", "c"), 36.0), (("c", "a"), 40.0)]
    found = speeds([*once, *once])
    assert [speed.speed for speed in found] == pytest.approx([1, 0.9, 1])
    assert [speed.trials for speed in found] == [4, 4, 4]
    assert slow_ones(found) == ("b",)


def test_trials_of_single_nodes_count_before_those_of_pairs() -> None:
    """What two nodes do together is another thing than what one can do."""
    singles = [(("a",), 10.0), (("b",), 9.0)] * 2
    pairs = [(("a", "b"), 5.0), (("b", "c"), 5.0), (("c", "a"), 3.0)] * 2
    assert [speed.node for speed in speeds(singles, pairs)] == ["a", "b"]
