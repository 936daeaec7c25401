"""From a playbook to its cases: the arithmetic, and everything that makes cases impossible."""

import itertools
import json
import time
from dataclasses import replace

import pytest

from orchestrator.launchers import mpirun
from orchestrator.model.case import Case
from orchestrator.model.cluster import Cluster
from orchestrator.planning import matrix
from orchestrator.workloads import Workload, ngc_pytorch_rn50, reference_rn50
from tests.planning.playbooks import CASE, GRID, RN50, cluster, experiment, mistakes

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


def test_grid_is_the_cartesian_product_with_placements_fastest() -> None:
    """Every combination once; cases that share a table stand together, in the playbook's order."""
    grid = {"placement": ["1x1", "2x8"], "precision": ["amp", "fp32"], "micro_batch_size": [8, 4]}
    found = matrix.cases(experiment(grid=grid))
    assert [(case.precision, case.micro_batch_size, case.placement) for case in found] == list(
        itertools.product(["amp", "fp32"], [8, 4], ["1x1", "2x8"])
    )


def test_cases_of_one_placement_are_made_in_another_too() -> None:
    """Of a grid in each of its combinations, and of a list as each is written."""
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


def test_parameters_of_a_case_stand_over_those_of_all() -> None:
    """A grid's or a case's own parameter replaces the playbook's, and the others stay."""
    listed = [{**CASE, "params": {"threads": 2}}, {**CASE, "placement": "1x2"}]
    found = matrix.cases(experiment(cases=listed, params={"threads": 1, "image_size": 64}))
    assert [dict(case.given) for case in found] == [
        {"image_size": 64, "threads": 2},
        {"image_size": 64, "threads": 1},
    ]
    grid = {**GRID, "params": {"threads": [1, 4]}}
    given = [case.given["threads"] for case in matrix.cases(experiment(grid=grid))]
    assert given == [1, 1, 4, 4]


@pytest.mark.parametrize("line", SEED_GPT.strip().splitlines())
def test_every_printed_gpt_case_gives_its_data_parallel_and_global_batch(line: str) -> None:
    """Seed 002's table comes back: data parallel and global batch size are derived, never typed."""
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
    assert (case.world_size, case.data_parallel, case.global_batch_size) == (
        nodes * gpus,
        data,
        batch,
    )


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


def test_case_names_its_placement_as_playbooks_and_as_dlperf_do() -> None:
    """4x8 in playbooks, 4n8g in DLPerf's folders."""
    case = Case(nodes=4, gpus_per_node=8, micro_batch_size=256, precision="amp", device="cuda")
    assert (case.placement, case.token) == ("4x8", "4n8g")


def test_cases_are_comparable_if_only_their_placement_differs() -> None:
    """Speedup is taken over a case that is equal in everything else."""
    one = Case(nodes=1, gpus_per_node=1, micro_batch_size=256, precision="amp", device="cuda")
    assert replace(one, nodes=4, gpus_per_node=8).comparable == one.comparable
    for change in (
        {"micro_batch_size": 128},
        {"precision": "fp32"},
        {"device": "cpu"},
        {"accumulation_steps": 2},
        {"tensor_parallel": 2},
        {"pipeline_parallel": 2},
        {"params": (("loss_scale", 128),)},
    ):
        assert replace(one, **change).comparable != one.comparable


def test_impossible_split_says_what_does_not_divide() -> None:
    """32 ranks into tensor 8 x pipeline 3, in the words of the message that a user reads."""
    case = {**CASE, "placement": "4x8", "tensor_parallel": 8, "pipeline_parallel": 3}
    found = matrix.conflicts(experiment(cases=[case]), GPT, None)
    assert [(conflict.path, conflict.text) for conflict in found] == [
        (("cases", 0), "4x8: 32 ranks cannot be split into tensor 8 x pipeline 3")
    ]


def test_written_data_parallel_is_checked() -> None:
    """It may be left out; where it stands, it must be what the other sizes leave."""
    case = {**CASE, "placement": "1x8", "tensor_parallel": 2, "data_parallel": 8}
    found = matrix.conflicts(experiment(cases=[case]), GPT, None)
    assert [(conflict.path, conflict.text) for conflict in found] == [
        (
            ("cases", 0, "data_parallel"),
            "data 8 x tensor 2 x pipeline 1 is not 8 ranks; needed data_parallel 4",
        )
    ]


@pytest.mark.parametrize("axis", ["accumulation_steps", "tensor_parallel", "pipeline_parallel"])
def test_axis_that_the_workload_cannot_do_is_refused(axis: str) -> None:
    """A program that ignores an axis would be measured as something that it is not."""
    workload = replace(RN50, axes=frozenset())
    case = {**CASE, "placement": "1x2", axis: 2}
    found = matrix.conflicts(experiment(cases=[case]), workload, None)
    assert [conflict.text for conflict in found] == [
        f"1x2: {axis} 2; workload reference_rn50 can only do 1"
    ]


def test_every_impossible_case_is_reported_at_once() -> None:
    """A playbook with seven mistakes gets seven mistakes, each at its own place."""
    cases = [
        {**CASE, "placement": "3x1"},
        {**CASE, "placement": "1x8"},
        {**CASE, "placement": "1x2", "tensor_parallel": 4},
        {**CASE, "params": {"thread": 1}},
        {**CASE, "params": {"image_size": 8}},
        CASE,
        CASE,
    ]
    found = mistakes(
        experiment(cases=cases, exclude=[{"precision": "amp"}]),
        cluster(2, gpus={"count": 4}),
    )
    assert found == [
        (
            ("cases", 3, "params", "thread"),
            "unknown key 'thread'; did you mean 'threads'?",
        ),
        (
            ("cases", 4, "params", "image_size"),
            "got 8; needed at least 32",
        ),
        (("exclude", 0), "no case matches it; needed one that does"),
        (("cases", 2), "1x2: 2 ranks cannot be split into tensor 4 x pipeline 1"),
        (("cases", 2), "1x2: tensor_parallel 4; workload reference_rn50 can only do 1"),
        (("cases", 6), "the case 1x1 is there twice; needed each case once"),
        (("cases", 0), "3x1 asks for 3 nodes; inventory testers has 2; `--case` runs the others"),
        (
            ("cases", 1),
            "1x8 asks for 8 GPUs; inventory testers lets n1 use at most 4",
        ),
    ]


def test_window_and_cases_are_judged_together() -> None:
    """A wrong method does not hide a wrong case."""
    method = {"repeats": 1, "iterations": 21, "window": [5, 50]}
    found = mistakes(experiment(method=method, cases=[{**CASE, "tensor_parallel": 2}]))
    assert [path for path, _ in found] == [("method", "window"), ("cases", 0), ("cases", 0)]


def test_a_rule_that_the_logs_do_not_serve_is_refused() -> None:
    """Every trial would run and give no number."""
    method = {"repeats": 1, "iterations": 121, "rule": "reported"}
    needed = "reported; logs of reference_rn50 can be measured by clock or rates"
    assert mistakes(experiment(method=method, cases=[CASE])) == [(("method", "rule"), needed)]


def test_what_the_workload_cannot_do_is_said_at_its_case() -> None:
    """In the workload's own words; asked only where its parameters are in order."""
    picky = replace(
        reference_rn50.WORKLOAD, unsupported=lambda case, _: (f"{case.nodes} nodes; needed 9",)
    )
    found = matrix.conflicts(experiment(cases=[CASE]), picky, None)
    assert [(conflict.path, conflict.text) for conflict in found] == [
        (("cases", 0), f"{CASE['placement']}: {str(CASE['placement'])[0]} nodes; needed 9")
    ]
    wrong = experiment(cases=[{**CASE, "params": {"image_size": "big"}}])
    texts = [conflict.text for conflict in matrix.conflicts(wrong, picky, None)]
    assert not any("needed 9" in text for text in texts)


def test_window_beyond_the_last_logged_iteration_is_refused() -> None:
    """--prof 121 logs 120 iterations: a window to 121 would find no line, after all the running."""
    method = {"repeats": 1, "iterations": 121, "window": [20, 121]}
    needed = (
        "[20, 121] with iterations: 121, of which reference_rn50 logs up to 120;"
        " needed a window that ends by then"
    )
    assert mistakes(experiment(method=method, cases=[CASE])) == [(("method", "window"), needed)]


@pytest.mark.parametrize(
    ("placement", "fits"),
    [("2x4", True), ("1x1", True), ("3x4", False), ("2x5", False), ("3x5", False)],
)
def test_placement_must_fit_into_the_cluster(placement: str, *, fits: bool) -> None:
    """As many nodes and GPUs as there are can be taken, and not one more."""
    found = mistakes(
        experiment(cases=[{**CASE, "placement": placement}]), cluster(2, gpus={"count": 4})
    )
    assert (found == []) == fits


def test_impossible_case_of_a_grid_is_complained_about_at_its_placement() -> None:
    """Once, however many precisions and batch sizes it would have been run with."""
    grid = {"placement": ["1x1", "3x1"], "precision": ["amp", "fp32"], "micro_batch_size": [4, 8]}
    assert mistakes(experiment(grid=grid), cluster(2, gpus={"count": 4})) == [
        (
            ("grid", "placement", 1),
            "3x1 asks for 3 nodes; inventory testers has 2; `--case` runs the others",
        )
    ]


@pytest.mark.parametrize(
    ("workload", "takes"),
    [
        (reference_rn50.WORKLOAD, True),
        (replace(reference_rn50.WORKLOAD, ipv6=False), False),
        (replace(reference_rn50.WORKLOAD, launcher=mpirun.launch), False),
    ],
)
def test_a_workload_that_takes_no_ipv6_is_refused_on_several_such_nodes(
    workload: Workload, *, takes: bool
) -> None:
    """torchrun meets at an IPv6 address as it is; mpirun and OneFlow's programs cut it."""
    nodes = [{"name": f"n{number}", "address": f"fd00::{number}"} for number in (1, 2)]
    where = Cluster.model_validate_json(
        json.dumps({"name": "six", "defaults": {"gpus": {"count": 1}}, "nodes": nodes})
    )
    cases = [{**CASE, "placement": placement} for placement in ("1x1", "2x1")]
    found = matrix.conflicts(experiment(cases=cases), workload, where)
    needed = (
        "2x1: workload reference_rn50 takes no IPv6 addresses, as fd00::1 of node n1;"
        " needed IPv4 in inventory six"
    )
    assert [(conflict.path, conflict.text) for conflict in found] == (
        [] if takes else [(("cases", 1), needed)]
    )


def test_gpus_that_may_not_be_used_are_not_counted() -> None:
    """Of 8 GPUs the inventory lets us use three: a case of four does not fit."""
    where = cluster(1, gpus={"count": 8, "use": [1, 3, 5]})
    assert mistakes(experiment(cases=[{**CASE, "placement": "1x3"}]), where) == []
    assert mistakes(experiment(cases=[{**CASE, "placement": "1x4"}]), where) == [
        (("cases", 0), "1x4 asks for 4 GPUs; inventory testers lets n1 use at most 3")
    ]


def test_a_case_needs_as_many_nodes_that_fit_wherever_they_stand() -> None:
    """A node with too few GPUs is passed over; where too few nodes fit, one that does not is told.

    As many as would have to be mended for the case to run.
    """
    nodes = [
        {"name": f"n{n}", "address": f"10.0.0.{n}", "gpus": {"count": count}}
        for n, count in ((1, 2), (2, 4), (3, 2), (4, 4))
    ]
    where = Cluster.model_validate_json(json.dumps({"name": "testers", "nodes": nodes}))
    assert mistakes(experiment(cases=[{**CASE, "placement": "2x4"}]), where) == []
    assert mistakes(experiment(cases=[{**CASE, "placement": "3x4"}]), where) == [
        (("cases", 0), "3x4 asks for 4 GPUs; inventory testers lets n1 use at most 2")
    ]


def test_ranks_on_cpus_need_no_gpus() -> None:
    """A CPU case may have more ranks per node than there are GPUs."""
    found = experiment(cases=[{**CASE, "placement": "2x16"}], device="cpu")
    assert mistakes(found, cluster(2)) == []


def test_local_nodes_need_the_device_said() -> None:
    """On this machine it is not plain whether a number is one of CPUs or of GPUs."""
    where = cluster(2, transport="local", runtime="process", gpus={"count": 4})
    text = "node n1 is local and no device is named; needed `device: cpu` or `device: cuda`"
    assert mistakes(experiment(grid=GRID, device=None), where) == [((), text)]
    assert mistakes(experiment(grid=GRID, device="cpu"), where) == []
    assert mistakes(experiment(grid=GRID, device="cuda"), where) == []
    assert mistakes(experiment(grid=GRID, device=None), cluster(2, gpus={"count": 4})) == []


def test_data_set_that_the_workload_reads_must_be_there() -> None:
    """Each node that a case uses must have it; a node that no case uses need not."""
    found = experiment(
        workload="ngc_pytorch_rn50",
        cases=[{**CASE, "placement": "2x1"}, {**CASE, "placement": "1x1"}],
    )
    where = cluster(3, gpus={"count": 1})
    (conflict,) = matrix.conflicts(found, ngc_pytorch_rn50.WORKLOAD, where)
    assert (conflict.path, conflict.text) == (
        ("workload",),
        "workload ngc_pytorch_rn50 reads the data set 'imagenet';"
        " needed data.imagenet for n[1-2] in inventory testers",
    )
    where = cluster(3, gpus={"count": 1}, data={"imagenet": "/data/image"})
    assert matrix.conflicts(found, ngc_pytorch_rn50.WORKLOAD, where) == ()


def test_grid_of_a_million_cases_is_refused_without_expanding_it() -> None:
    """A slip in a list of numbers costs a moment, not the machine's memory."""
    hundred = list(range(1, 101))
    grid = {**GRID, "micro_batch_size": hundred, "accumulation_steps": hundred}
    params = {"image_size": list(range(100, 200))}
    found = experiment(grid={**grid, "placement": ["1x1"], "params": params})
    begin = time.perf_counter()
    assert mistakes(found, cluster(1)) == [
        (("grid",), "1000000 trials; needed at most 10000"),
    ]
    assert time.perf_counter() - begin < 1.0


@pytest.mark.parametrize(("repeats", "allowed"), [(5, True), (6, False)])
def test_trials_are_counted_with_their_repeats(repeats: int, *, allowed: bool) -> None:
    """2,000 cases of 5 repeats are the most; one repeat more is refused."""
    grid = {**GRID, "placement": ["1x1"], "micro_batch_size": list(range(1, 2001))}
    method = {"repeats": repeats, "iterations": 21, "window": [5, 20]}
    found = mistakes(experiment(grid=grid, method=method))
    assert found == ([] if allowed else [(("grid",), "12000 trials; needed at most 10000")])


def test_too_many_written_cases_are_refused_at_their_list() -> None:
    """The mistake stands where the cases do."""
    method = {"repeats": 1000, "iterations": 21, "window": [5, 20]}
    cases = [{**CASE, "micro_batch_size": size} for size in range(1, 12)]
    assert mistakes(experiment(cases=cases, method=method)) == [
        (("cases",), "11000 trials; needed at most 10000")
    ]


def test_device_that_the_program_cannot_use_is_refused() -> None:
    """NVIDIA's program needs GPUs; saying nothing means cuda."""
    grid = {"placement": ["1x1"], "precision": ["amp"], "micro_batch_size": [256]}
    for device in (None, "cuda", "cpu"):
        asked = experiment(workload="ngc_pytorch_rn50", grid=grid, device=device)
        found = matrix.conflicts(asked, ngc_pytorch_rn50.WORKLOAD, None)
        assert [conflict.path for conflict in found] == ([("device",)] if device == "cpu" else [])
    only_cpu = replace(RN50, devices=frozenset({"cpu"}))
    (refused,) = matrix.conflicts(experiment(grid=grid, device=None), only_cpu, None)
    assert refused.text == "workload reference_rn50 cannot compute on cuda; needed `device: cpu`"


def test_a_precision_that_the_program_cannot_do_is_refused() -> None:
    """NVIDIA's program of 2020 knows no bfloat16."""
    given = experiment(cases=[{**CASE, "precision": "bf16"}], device="cuda")
    found = matrix.conflicts(given, ngc_pytorch_rn50.WORKLOAD, None)
    needed = "1x1: precision bf16; workload ngc_pytorch_rn50 needs amp or fp32"
    assert [conflict.text for conflict in found] == [needed]
