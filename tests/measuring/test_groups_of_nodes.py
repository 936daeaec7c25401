"""Many nodes together, beside pairs of them: bus bandwidth is the same for any number."""

from dataclasses import replace

from orchestrator.measuring import node_groups
from orchestrator.model.result import Result, Statistics
from tests.measuring.test_node_speeds import result, trial

PAIRS = Statistics(n=2, median=40.0, mean=40.0, low=39.0, high=41.0, spread=0.05, interval=None)


def of(*trials: tuple[str, float | None]) -> Result:
    return result(1, *(trial(nodes, rate) for nodes, rate in trials))


AT_40 = replace(of(), statistics=PAIRS)


def test_a_group_is_slow_below_two_thirds_of_the_pairs() -> None:
    """By the median of the pairs; of a trial without a number there is no group."""
    together = (of(("n1 n2 n3 n4", 27.0)), of(("n1 n2 n3", 26.0), ("n4 n5 n6", None)))
    first, second = node_groups.groups(AT_40, together)
    assert (first.nodes, first.busbw, first.share) == (("n1", "n2", "n3", "n4"), 27.0, 0.675)
    assert not first.is_slow
    assert second.is_slow


def test_without_pairs_nothing_is_compared() -> None:
    """None of their trials is valid."""
    assert node_groups.groups(of(), (of(("n1 n2 n3", 26.0)),)) == ()


def test_the_smallest_slow_groups_are_named() -> None:
    """Not those that hold a slow half."""
    names = ("n1 n2 n3 n4 n5 n6 n7 n8", "n1 n2 n3 n4", "n5 n6 n7 n8")
    rates = (10.0, 39.0, 12.0)
    found = node_groups.groups(AT_40, [of(one) for one in zip(names, rates, strict=True)])
    assert [*node_groups.smallest_slow(found)] == [found[2]]
