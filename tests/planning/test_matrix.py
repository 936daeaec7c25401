"""From a playbook to its cases, and the arithmetic of batches and parallelism."""

import itertools
from dataclasses import replace

import pytest

from orchestrator.model.case import Case
from orchestrator.planning import matrix
from tests.planning.recipes import CASE, RN50, experiment

GRID = {"placement": ["1x1", "1x2"], "precision": ["fp32"], "micro_batch_size": [4]}
# A workload that can split its model and gather gradients, as GPT can.
GPT = replace(RN50, axes=frozenset({"accumulation_steps", "tensor_parallel", "pipeline_parallel"}))
# Seed 002, table of cases, word for word: nodes, GPUs per node, data, tensor and pipeline parallel
# size, micro batch size, accumulation steps, global batch size.
SEED_GPT = """
DP_1x1x1_2_1536x16 | 1 | 1 | 1 | 1 | 1 | 2 | 2 | 1 | 2
DP_8x1x1_16_1536x16 | 1 | 8 | 8 | 1 | 1 | 2 | 16 | 1 | 16
DP_16x1x1_32_1536x16 | 2 | 8 | 16 | 1 | 1 | 2 | 32 | 1 | 32
DP_32x1x1_64_1536x16 | 4 | 8 | 32 | 1 | 1 | 2 | 64 | 1 | 64
MP_1x1x1_8_768x12 | 1 | 1 | 1 | 1 | 1 | 8 | 8 | 1 | 8
MP_1x8x1_16_1536x16 | 1 | 8 | 1 | 8 | 1 | 16 | 16 | 1 | 16
MP_1x16x1_16_3072x16 | 2 | 8 | 1 | 16 | 1 | 16 | 16 | 1 | 16
MP_1x32x1_16_3072x32 | 4 | 8 | 1 | 32 | 1 | 16 | 16 | 1 | 16
2D_2x4x1_16_1536x16 | 1 | 8 | 2 | 4 | 1 | 8 | 16 | 1 | 16
2D_4x2x1_16_1536x16 | 1 | 8 | 4 | 2 | 1 | 4 | 16 | 1 | 16
2D_2x8x1_16_2304x24 | 2 | 8 | 2 | 8 | 1 | 8 | 16 | 1 | 16
2D_4x8x1_32_2304x24 | 4 | 8 | 4 | 8 | 1 | 8 | 32 | 1 | 32
DP_PP_8x1x4_512_1536x16 | 4 | 8 | 8 | 1 | 4 | 2 | 16 | 32 | 512
MP_PP_1x8x4_512_2304x24 | 4 | 8 | 1 | 8 | 4 | 16 | 16 | 32 | 512
2D_PP_2x4x4_512_2304x24 | 4 | 8 | 2 | 4 | 4 | 8 | 16 | 32 | 512
2D_PP_2x8x2_512_2304x24 | 4 | 8 | 2 | 8 | 2 | 8 | 16 | 32 | 512
"""


def test_a_grid_is_the_cartesian_product_with_placements_fastest() -> None:
    """Cases that share a table are next to each other, in the playbook's order."""
    grid = {"placement": ["1x1", "2x8"], "precision": ["amp", "fp32"], "micro_batch_size": [8, 4]}
    found = matrix.cases(experiment(grid=grid))
    assert [(case.precision, case.micro_batch_size, case.placement) for case in found] == list(
        itertools.product(["amp", "fp32"], [8, 4], ["1x1", "2x8"])
    )


def test_cases_of_one_placement_are_repeated_in_another() -> None:
    grid = {**GRID, "precision": ["fp32", "amp"]}
    listed = [{**CASE, "micro_batch_size": 8}, {**CASE, "placement": "1x2"}]
    for found, more in (
        (experiment(grid=grid), [("fp32", 4), ("amp", 4)]),
        (experiment(cases=listed), [("fp32", 8)]),
    ):
        placed = matrix.add_placement(found, "1x1", "7x1")
        cases = [case for case in matrix.cases(placed) if case not in matrix.cases(found)]
        assert [(case.precision, case.micro_batch_size) for case in cases] == more
        assert {case.placement for case in cases} == {"7x1"}
        assert matrix.add_placement(found, "9x9", "7x1") == found


def test_parameters_of_a_case_override_those_of_the_playbook() -> None:
    listed = [{**CASE, "params": {"threads": 2}}, {**CASE, "placement": "1x2"}]
    found = matrix.cases(experiment(cases=listed, params={"threads": 1, "image_size": 64}))
    assert [dict(case.given) for case in found] == [
        {"image_size": 64, "threads": 2},
        {"image_size": 64, "threads": 1},
    ]
    grid = {**GRID, "params": {"threads": [1, 4]}}
    given = [case.given["threads"] for case in matrix.cases(experiment(grid=grid))]
    assert given == [1, 1, 4, 4]


def test_an_exclusion_removes_the_cases_that_match_all_of_its_values() -> None:
    """Also parameters, whether the grid or the playbook gives them."""
    grid = {**GRID, "placement": ["1x1", "1x2", "2x2"], "precision": ["fp32", "amp"]}
    exclude = [{"placement": "2x2", "precision": "amp"}, {"placement": "1x2"}]
    found = matrix.cases(experiment(grid=grid, exclude=exclude))
    assert [(case.placement, case.precision) for case in found] == [
        *(("1x1", "fp32"), ("2x2", "fp32"), ("1x1", "amp"))
    ]
    grid = {**GRID, "placement": ["1x1"], "params": {"threads": [1, 2]}}
    exclude = [{"params": {"threads": 2, "image_size": 64}}]  # type: ignore[dict-item]  # JSON
    found = matrix.cases(experiment(grid=grid, params={"image_size": 64}, exclude=exclude))
    assert [case.given["threads"] for case in found] == [1]


@pytest.mark.parametrize("line", SEED_GPT.split("\n")[1:-1])
def test_seed_row_gives_its_data_parallel_and_global_batch(line: str) -> None:
    nodes, gpus, data, tensor, pipeline, micro, _, steps, batch = map(int, line.split(" | ")[1:])
    entry = {
        "placement": f"{nodes}x{gpus}",
        "precision": "amp",
        "micro_batch_size": micro,
        "accumulation_steps": steps,
        "tensor_parallel": tensor,
        "pipeline_parallel": pipeline,
        "data_parallel": data,
    }
    found = experiment(cases=[entry])
    assert matrix.conflicts(found, GPT, None) == ()
    (case,) = matrix.cases(found)
    assert (case.world_size, case.data_parallel) == (nodes * gpus, data)
    assert case.global_batch_size == batch


def test_ranks_are_always_data_times_tensor_times_pipeline() -> None:
    """For every split of up to 64 ranks: either the product is exact, or the case is refused."""
    sizes = ((1, 2, 3, 8), (1, 2, 4, 8), (1, 2, 3, 8, 16), (1, 2, 4, 5))
    for nodes, gpus, tensor, pipeline in itertools.product(*sizes):
        said = {"tensor_parallel": tensor, "pipeline_parallel": pipeline, "accumulation_steps": 3}
        found = experiment(cases=[{**CASE, **said, "placement": f"{nodes}x{gpus}"}])
        refused = matrix.conflicts(found, GPT, None)
        (case,) = matrix.cases(found)
        exact = case.data_parallel * tensor * pipeline == nodes * gpus
        assert exact == (not refused)
        if exact:
            assert case.global_batch_size * tensor * pipeline == 4 * 3 * nodes * gpus


def test_a_case_writes_its_placement_as_playbooks_and_as_dlperf_do() -> None:
    """4x8 in playbooks, 4n8g in DLPerf's folders."""
    case = Case(nodes=4, gpus_per_node=8, micro_batch_size=256, precision="amp", device="cuda")
    assert (case.placement, case.token) == ("4x8", "4n8g")


def test_cases_are_comparable_if_only_their_placement_differs() -> None:
    """Speedup is taken over a case that is equal in everything else."""
    one = Case(nodes=1, gpus_per_node=1, micro_batch_size=256, precision="amp", device="cuda")
    assert replace(one, nodes=4, gpus_per_node=8).comparable == one.comparable
    changes: dict[str, object] = {
        "micro_batch_size": 128,
        "precision": "fp32",
        "device": "cpu",
        "params": (("loss_scale", 128),),
        **dict.fromkeys(("accumulation_steps", "tensor_parallel", "pipeline_parallel"), 2),
    }
    for name, value in changes.items():
        other = replace(one, **{name: value})  # type: ignore[arg-type]  # a field and its value
        assert other.comparable != one.comparable, name
