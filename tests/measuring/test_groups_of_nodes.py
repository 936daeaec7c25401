"""Many nodes together, beside pairs of them: bus bandwidth is the same for any number."""

from dataclasses import replace

import pytest

from orchestrator.measuring import node_speeds, published
from orchestrator.model.result import Result, Statistics
from orchestrator.workloads import all_reduce
from tests.measuring.test_node_speeds import result, trial
from tests.measuring.test_published import ROWS
from tests.reported import sweep

PAIRS = Statistics(n=2, median=40.0, mean=40.0, low=39.0, high=41.0, spread=0.05, interval=None)


def of(*trials: tuple[str, float | None]) -> Result:
    return result(1, *(trial(nodes, rate) for nodes, rate in trials))


AT_40 = replace(of(), statistics=PAIRS)


def test_a_group_is_slow_below_two_thirds_of_the_pairs() -> None:
    """By the median of the pairs; of a trial without a number there is no group."""
    together = (of(("n1 n2 n3 n4", 27.0)), of(("n1 n2 n3", 26.0), ("n4 n5 n6", None)))
    first, second = node_speeds.compare_groups(AT_40, together)
    assert (first.nodes, first.busbw, first.share) == (("n1", "n2", "n3", "n4"), 27.0, 0.675)
    assert not first.is_slow
    assert second.is_slow


def test_without_pairs_nothing_is_compared() -> None:
    """None of their trials is valid."""
    assert node_speeds.compare_groups(of(), (of(("n1 n2 n3", 26.0)),)) == ()


def test_the_smallest_slow_groups_are_named() -> None:
    """Not those that hold a slow half."""
    names = ("n1 n2 n3 n4 n5 n6 n7 n8", "n1 n2 n3 n4", "n5 n6 n7 n8")
    rates = (10.0, 39.0, 12.0)
    found = node_speeds.compare_groups(AT_40, [of(one) for one in zip(names, rates, strict=True)])
    assert [*node_speeds.find_smallest_slow(found)] == [found[2]]


@pytest.mark.parametrize(
    ("gpu", "placement", "reached", "needed"),
    [
        ("Tesla V100-SXM2-32GB", (1, 8), 98.0, 110.0),
        ("Tesla V100-SXM2-32GB", (1, 8), 100.0, None),
        ("NVIDIA H100 80GB HBM3", (2, 8), 231.0, 470.0),
        ("NVIDIA H100 80GB HBM3", (8, 8), 1.0, None),
        ("NVIDIA A100-SXM4-80GB", (1, 8), 1.0, 228.0),
        ("NVIDIA L4", (1, 8), 1.0, None),
    ],
)
def test_a_bandwidth_below_the_lowest_published_is_told(
    gpu: str, placement: tuple[int, int], reached: float, needed: float | None
) -> None:
    """Of the same GPUs and placement; 231 GB/s over two nodes of H100 is what nccl#2409 reports."""
    nodes, gpus = placement
    case = replace(
        of().case, nodes=nodes, gpus_per_node=gpus, device="cuda", params=(("size_mib", 8192),)
    )
    key = all_reduce.published(case)
    assert key is not None
    rows = published.select_for_case(ROWS, case, key, "", (gpu,))
    result = replace(of(), case=case, statistics=replace(PAIRS, median=reached))
    found = node_speeds.find_better_published(sweep((result,), published={case: rows}))
    assert (found.throughput if found else None) == needed


def test_small_buffers_and_processors_are_compared_with_nothing() -> None:
    """Bandwidths are published of large buffers on GPUs."""
    case = replace(of().case, device="cuda", params=(("size_mib", 1024),))
    assert all_reduce.published(case) is None
    assert all_reduce.published(replace(case, device="cpu", params=())) is None
    assert node_speeds.find_better_published(sweep((of(),))) is None
