"""The repeats of a case go round the nodes."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.model.case import Case
from orchestrator.model.plan import Trial
from orchestrator.sweeping.campaign import Rotation, pair


def trial(batch: int) -> Trial:
    case = Case(nodes=1, gpus_per_node=1, micro_batch_size=batch, precision="fp32", device="cpu")
    return Trial(f"t{batch}", 1, case, "", 0)


def test_nodes_on_which_a_case_ran_least_come_first() -> None:
    """Each case by itself; before nodes are given, none is preferred; a canary never moves."""
    rotation, one, other = Rotation(), trial(1), trial(2)
    rotation.add(one, ["a"])
    assert rotation.order(one) == ()
    rotation.nodes = ["a", "b", "c"]
    assert rotation.order(one) == ("b", "c", "a")
    rotation.add(one, ["c", "b"])
    assert rotation.order(one) == rotation.order(other) == ("a", "b", "c")
    assert rotation.order(replace(one, canary="start")) == ()


@given(st.integers(2, 40))
def test_repeats_of_two_nodes_go_round_the_pairs(count: int) -> None:
    """In each round no node is there twice; in as many rounds as there are partners, many meet."""
    nodes = [f"n{at}" for at in range(count)]
    per_round = count // 2
    pairs = [pair(nodes, repeat) for repeat in range(1, 1 + per_round * (count - 1))]
    for at in range(0, len(pairs), per_round):
        used = [node for gang in pairs[at : at + per_round] for node in gang]
        assert len(set(used)) == len(used) == 2 * per_round
    met = {frozenset(gang) for gang in pairs}
    assert len(met) >= min(3, count - 1) * per_round


def test_a_pair_comes_before_nodes_that_were_used_less() -> None:
    """The pair of its repeat, in the order of nodes; of one node there is none."""
    rotation, two = Rotation(), replace(trial(1), case=replace(trial(1).case, nodes=2))
    rotation.nodes = ["a", "b", "c", "d"]
    rotation.add(two, ["a", "d"])
    assert rotation.order(two) == ("a", "d", "b", "c")
    assert pair(["a"], 1) == ()
