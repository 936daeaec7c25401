"""Shipped playbooks: the command lines that they plan, and the layouts of GPT in the report.

Tables of options were dumped from the running programs at the commits that the images pin.
"""

import argparse
from collections.abc import Iterator

import pytest

from orchestrator import workloads
from orchestrator.files import yaml_reader
from orchestrator.model.attempt import Attempt
from orchestrator.model.case import Case
from orchestrator.model.cluster import Cluster
from orchestrator.model.experiment import Experiment
from orchestrator.model.image import Image, Program
from orchestrator.model.text import Scalar
from orchestrator.planning import bind, matrix, plan
from orchestrator.planning.plan import Recipe
from orchestrator.workloads import oneflow_gpt
from tests import ROOT
from tests.cluster.standin import options
from tests.workloads.test_commands import case, shape

TABLES = ROOT / "tests" / "samples" / "options"
PROGRAMS = {  # by workload, the word of a command line behind which the program's own options begin
    "ngc_pytorch_rn50": "main.py",
    "ngc_tensorflow_rn50": "main.py",
    "oneflow_rn50": "of_cnn_train_val.py",
    "oneflow_bert": "run_pretraining.py",
    "oneflow_gpt": "oneflow_gpt.training",
}
# Seed 002, "Test Case" and "Test Result", and DLPerf's report on GPT of May 2021: its name, nodes x
# GPUs, micro and global batch, layers, heads, ms a step, samples/s, TFLOP/s per GPU.
PRINTED = """
DP_1x1x1_2_1536x16 1x1 2 2 16 16 406.16 4.92 49.43
DP_8x1x1_16_1536x16 1x8 2 16 16 16 417.952 38.28 48.03
DP_16x1x1_32_1536x16 2x8 2 32 16 16 489.674 65.35 41.00
DP_32x1x1_64_1536x16 4x8 2 64 16 16 518.642 123.4 38.71
MP_1x1x1_8_768x12 1x1 8 8 12 12 525.214 15.23 37.98
MP_1x8x1_16_1536x16 1x8 16 16 16 16 642.134 24.92 31.26
MP_1x16x1_16_3072x16 2x8 16 16 16 32 4819.296 3.32 7.25
MP_1x32x1_16_3072x32 4x8 16 16 32 32 9505.832 1.68 3.57
2D_8x1x1_16_1536x16 1x8 2 16 16 16 417.902 38.29 48.04
2D_1x8x1_16_1536x16 1x8 16 16 16 16 644.4 24.83 31.15
2D_2x4x1_16_1536x16 1x8 8 16 16 16 539.696 29.65 37.20
2D_4x2x1_16_1536x16 1x8 4 16 16 16 543.888 29.42 36.91
2D_2x8x1_16_2304x24 2x8 8 16 24 24 1268.532 12.61 23.81
2D_4x8x1_32_2304x24 4x8 8 32 24 24 1480.34 21.62 20.41
DP_PP_8x1x4_512_1536x16 4x8 2 512 16 16 4006.318 127.8 40.09
MP_PP_1x8x4_512_2304x24 4x8 16 512 24 24 19196.65 26.67 25.18
2D_PP_2x4x4_512_2304x24 4x8 8 512 24 24 13117.188 39.03 36.85
2D_PP_2x8x2_512_2304x24 4x8 8 512 24 24 14375.352 35.62 33.62
""".strip().splitlines()


def recipe(playbook: str) -> Recipe:
    """Return a shipped playbook on the cluster of the documents."""
    read = yaml_reader.read(ROOT / f"playbooks/{playbook}.yaml")
    experiment = yaml_reader.validated(read, Experiment)
    cluster = yaml_reader.validated(yaml_reader.read(ROOT / "inventory/v100x4.yaml"), Cluster)
    program = Program("/workspace/code", "python3", "")
    workload = workloads.require(experiment.workload)
    return Recipe(playbook, experiment, workload, cluster, program)


def bind_trials(found: Recipe) -> list[Attempt]:
    """Return the first attempt at every trial."""
    seats = [node.seat("") for node in found.cluster.members]
    return [bind.first(found, trial, seats) for trial in plan.build(found).trials]


RECIPES = {path.stem: recipe(path.stem) for path in sorted((ROOT / "playbooks").glob("*.yaml"))}
UPSTREAM = [name for name, found in RECIPES.items() if found.experiment.workload in PROGRAMS]


def find_parser(workload: str, image: str) -> argparse.ArgumentParser:
    """Return the options of a workload's program at the commit that an image pins."""
    folder = ROOT / "images" / image.split("@")[0]
    pinned = yaml_reader.validated(yaml_reader.read(folder / "image.yaml"), Image).source
    assert pinned is not None
    tables = TABLES.glob(f"{workload}@*.csv")
    (table,) = (path for path in tables if pinned.commit.startswith(path.stem.split("@")[1]))
    return options.parser(str(table), abbreviated=workload != "oneflow_gpt")


def list_options(found: Recipe) -> Iterator[list[str]]:
    """Yield every different command line of a playbook, from the program's own options on."""
    tasks = (task for attempt in bind_trials(found) for task in attempt.tasks)
    word = PROGRAMS[found.experiment.workload]
    for argv in dict.fromkeys(task.argv for task in tasks if not task.service):
        (at,) = (index for index, option in enumerate(argv) if option.endswith(word))
        yield list(argv[at + 1 :])


@pytest.mark.parametrize("playbook", UPSTREAM)
def test_every_planned_command_line_is_one_that_the_program_takes(playbook: str) -> None:
    """No unknown option, no value missing, none of a wrong type or outside its choices."""
    found = RECIPES[playbook]
    parser = find_parser(found.experiment.workload, found.experiment.image)
    lines = list(list_options(found))
    assert lines
    for argv in lines:
        parser.parse_args(argv)


def test_options_may_be_cut_short_where_the_program_takes_them_so() -> None:
    """DLPerf writes ``--mom``, which PyTorch's parser takes; GPT's parser takes none cut short."""
    parser = options.parser(str(TABLES / "ngc_pytorch_rn50@5cc03ca.csv"))
    argv = ["--arch", "resnet50", "--mom", "0.125", "-b", "128", "--prof", "121", "/data/image"]
    assert parser.parse_args(argv).momentum == 0.125
    for wrong in ("--momentums=0.1", "--m=0.1", "--batch-size=many"):
        with pytest.raises(SystemExit):
            parser.parse_args([*argv, wrong])
    gpt = options.parser(str(TABLES / "oneflow_gpt@8da0250.csv"), abbreviated=False)
    assert gpt.parse_known_args(["--num-layer", "16"])[1] == ["--num-layer", "16"]


def test_the_control_port_of_oneflow_0_1_9_cannot_be_chosen() -> None:
    """It is written in the program: every trial has 12138, where 0.2.0 has another each time."""
    assert {attempt.port for attempt in bind_trials(RECIPES["oneflow-bert-fp32"])} == {12138}
    new = [attempt.port for attempt in bind_trials(RECIPES["oneflow-bert-amp"])]
    assert new[0] == 50051
    assert len({*new}) == len(new)


GPT = matrix.cases(RECIPES["oneflow-gpt"].experiment)


@pytest.mark.parametrize(("place", "line"), list(enumerate(PRINTED)))
def test_every_layout_of_the_report_has_its_name_and_its_numbers(place: int, line: str) -> None:
    """Samples/s to the digits of seed 002, TFLOP/s to those of the report."""
    name, placement, micro, whole, layers, heads, latency_ms, samples, tflops = line.split()
    found, seconds = GPT[place], float(latency_ms) / 1000
    assert oneflow_gpt.case_name(found) == name
    assert (found.placement, found.micro_batch_size) == (placement, int(micro))
    assert found.global_batch_size == int(whole)
    shown = (found.given["num_layers"], found.given["num_attention_heads"])
    assert shown == (int(layers), int(heads))
    digits = len(samples.partition(".")[2])
    assert f"{found.global_batch_size / seconds:.{digits}f}" == samples
    assert f"{oneflow_gpt.step_flops(found) / seconds / found.world_size / 1e12:.2f}" == tflops


@pytest.mark.parametrize("found", GPT, ids=oneflow_gpt.case_name)
def test_the_name_of_a_log_tells_its_case(found: Case) -> None:
    """With the group, which upstream's own name lacks."""
    stem = oneflow_gpt.stem(found)
    told = oneflow_gpt.told_by_name(f"{stem}_1")
    document = {**found.document(), **found.given, "seq_length": 2048}
    assert {name: document[name] for name in told} == told
    assert told["group"] == found.given["group"]
    bare = oneflow_gpt.told_by_name(stem.partition("-")[2])
    assert bare == {name: value for name, value in told.items() if name != "group"}


def test_cases_of_one_shape_have_logs_of_their_own() -> None:
    """Upstream writes DP_8x1x1 and 2D_8x1x1 into one file, where the second replaces the first."""
    found = [trial.log for trial in plan.build(RECIPES["oneflow-gpt"]).trials]
    assert len(set(found)) == 18
    assert found[1] == (
        "1n8g/DP_8x1x1_16_1536x16-pretrain_gpt_1n8d_dp8_mp1_pp1_mbz2_gbz16_s2048_l16_h1536_nh16"
        "_1.log"
    )
    assert oneflow_gpt.told_by_name("of_gpt_4n8d_dp2_mp4_pp4_full_README") == {}


@pytest.mark.parametrize(
    ("split", "name"),
    [
        ({}, "DP_8x1x1_16_1536x16"),
        ({"tensor_parallel": 8}, "MP_1x8x1_2_1536x16"),
        ({"tensor_parallel": 2}, "2D_4x2x1_8_1536x16"),
        ({"pipeline_parallel": 4, "accumulation_steps": 8}, "DP_PP_2x1x4_32_1536x16"),
        ({"tensor_parallel": 4, "pipeline_parallel": 2}, "MP_PP_1x4x2_2_1536x16"),
        ({"tensor_parallel": 2, "pipeline_parallel": 2}, "2D_PP_2x2x2_4_1536x16"),
    ],
)
def test_a_case_without_a_group_is_named_by_how_it_is_split(
    split: dict[str, Scalar], name: str
) -> None:
    assert oneflow_gpt.case_name(case("1x8", 2, **shape(**split))) == name
