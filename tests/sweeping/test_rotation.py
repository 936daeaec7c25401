"""The repeats of a case go round the nodes."""

from dataclasses import replace

from orchestrator.model.case import Case
from orchestrator.model.plan import Trial
from orchestrator.sweeping.rotation import Rotation


def trial(batch: int) -> Trial:
    case = Case(nodes=1, gpus_per_node=1, micro_batch_size=batch, precision="fp32", device="cpu")
    return Trial(f"t{batch}", 1, case, "", 0)


def test_nodes_on_which_a_case_ran_least_come_first() -> None:
    """Each case by itself; before nodes are given, none is preferred; a canary never moves."""
    rotation, one, other = Rotation(), trial(1), trial(2)
    rotation.add(one, ["a"])
    assert rotation.order(one) == ()
    rotation.begin(["a", "b", "c"])
    assert rotation.order(one) == ("b", "c", "a")
    rotation.add(one, ["c", "b"])
    assert rotation.order(one) == rotation.order(other) == ("a", "b", "c")
    assert rotation.order(replace(one, canary="start")) == ()
