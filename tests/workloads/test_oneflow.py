"""OneFlow's workloads: command lines, names of cases, and what they refuse."""

from dataclasses import replace
from typing import Any

import pytest

from orchestrator.files import yaml_reader
from orchestrator.model.attempt import Attempt
from orchestrator.model.case import Case
from orchestrator.model.cluster import Cluster
from orchestrator.model.experiment import Experiment, Method
from orchestrator.model.image import Program
from orchestrator.model.plan import Plan
from orchestrator.model.text import Scalar
from orchestrator.planning import bind, matrix, plan
from orchestrator.planning.plan import Recipe
from orchestrator.workloads import Published, Workload, oneflow_bert, oneflow_gpt, oneflow_rn50
from tests import ROOT

IPS = "10.11.0.2,10.11.0.3,10.11.0.4,10.11.0.5"
CODE = "/workspace/OneFlow-Benchmark"
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


def recipe(playbook: str, workload: Workload, code: str = CODE) -> Recipe:
    """A shipped playbook on the cluster of the documents."""
    experiment = yaml_reader.validated(
        yaml_reader.read(ROOT / f"playbooks/{playbook}.yaml"), Experiment
    )
    cluster = yaml_reader.validated(yaml_reader.read(ROOT / "inventory/v100x4.yaml"), Cluster)
    return Recipe(playbook, experiment, workload, cluster, Program(code, "python3", ""))


def built(playbook: str, workload: Workload) -> Plan:
    """The plan of a shipped playbook."""
    return plan.build(recipe(playbook, workload))


def bound(found: Recipe) -> list[Attempt]:
    """The first attempt at every trial."""
    seats = [node.seat("") for node in found.cluster.members]
    return [bind.first(found, trial, seats) for trial in plan.build(found).trials]


def first(playbook: str, workload: Workload, token: str, batch: int) -> Attempt:
    """The first attempt at the first trial of a placement and micro batch size."""
    return next(
        attempt
        for attempt in bound(recipe(playbook, workload))
        if attempt.trial.startswith(f"{token}-") and f"_b{batch}_" in attempt.trial
    )


def words(task_argv: tuple[str, ...]) -> str:
    """The program's own command line, without the launcher's words before it."""
    return " ".join(task_argv[task_argv.index("python3") :])


def case(precision: str = "fp32", micro_batch_size: int = 128, **params: Scalar) -> Case:
    """One node of 8 GPUs."""
    return Case(
        nodes=1,
        gpus_per_node=8,
        micro_batch_size=micro_batch_size,
        precision=precision,
        device="cuda",
        params=tuple(sorted(params.items())),
    )


def gpt_case(**params: Scalar) -> Case:
    """A shape of GPT that divides as it should."""
    shape = {"num_layers": 16, "hidden_size": 1536, "num_attention_heads": 16}
    return case("amp", 2, **{**shape, **params})


def test_rn50_is_started_as_rn50_train_sh_does() -> None:
    """The same line on every node; one epoch is 120 iterations of 4 x 8 x 128 images."""
    found = first("oneflow-rn50-fp32", oneflow_rn50.WORKLOAD, "4n8g", 128)
    assert words(found.tasks[0].argv) == (
        f"python3 {CODE}/Classification/cnns/of_cnn_train_val.py --num_examples=491520"
        " --train_data_dir=/datasets/ImageNet/ofrecord/train --train_data_part_num=256"
        " --num_nodes=4 --gpu_num_per_node=8 --model_update=momentum --mom=0.875"
        " --label-smoothing=0.1 --learning_rate=0.001 --loss_print_every_n_iter=20"
        " --batch_size_per_device=128 --val_batch_size_per_device=125 --num_epoch=1"
        f" --log_dir=./log --node_ips={IPS} --model=resnet50"
    )
    assert len({task.argv for task in found.tasks}) == 1
    assert found.tasks[0].env["NCCL_LAUNCH_MODE"] == "PARALLEL"
    assert found.tasks[0].env["PYTHONUNBUFFERED"] == "1"
    assert found.trial == "4n8g-rn50_b128_fp32_1"
    assert [mount.target for mount in found.tasks[0].mounts] == ["/datasets/ImageNet/ofrecord"]


def test_rn50_of_0_2_0_has_amp_and_a_port_of_its_own() -> None:
    """The options that the report on AMP adds, and the control port of the attempt."""
    found = first("oneflow-rn50-amp", oneflow_rn50.WORKLOAD, "1n1g", 256)
    said = words(found.tasks[0].argv)
    assert "--optimizer=sgd" in said
    assert f"--ctrl_port={found.port}" in said
    assert said.endswith(
        "--use_fp16 --channel_last=True --pad_output --fuse_bn_relu=True"
        " --fuse_bn_add_relu=True --nccl_fusion_threshold_mb=16 --nccl_fusion_max_ops=24"
        " --gpu_image_decoder=True"
    )


def test_synthetic_data_needs_no_data_set() -> None:
    """Nothing is mounted, and the program is told of no folder."""
    synthetic = case(data="synthetic")
    assert oneflow_rn50.WORKLOAD.data(synthetic) == {}
    found = recipe("oneflow-rn50-fp32", oneflow_rn50.WORKLOAD)
    told = found.experiment.model_copy(update={"params": {"data": "synthetic"}})
    begun = bound(replace(found, experiment=told))[0]
    assert "train_data_dir" not in words(begun.tasks[0].argv)
    assert begun.tasks[0].mounts == ()


def test_the_control_port_of_0_1_9_cannot_be_chosen() -> None:
    """It is written in the program: every trial has 12138, where 0.2.0 has another each time."""
    old = bound(recipe("oneflow-bert-fp32", oneflow_bert.WORKLOAD))
    assert {attempt.port for attempt in old} == {12138}
    new = bound(recipe("oneflow-bert-amp", oneflow_bert.WORKLOAD))
    assert new[0].port == 50051
    assert len({attempt.port for attempt in new}) == len(new)
    assert not oneflow_gpt.WORKLOAD.fixed_port(gpt_case())


def test_bert_is_started_as_bert_base_pretrain_sh_does() -> None:
    """With the last snapshot really left out: of 0.1.9 the word False would mean yes."""
    found = first("oneflow-bert-fp32", oneflow_bert.WORKLOAD, "2n8g", 96)
    assert words(found.tasks[1].argv) == (
        f"python3 {CODE}/LanguageModeling/BERT/run_pretraining.py --gpu_num_per_node=8"
        " --num_nodes=2 --node_ips=10.11.0.2,10.11.0.3 --learning_rate=1e-4"
        " --batch_size_per_device=96 --iter_num=140 --loss_print_every_n_iter=20 --seq_length=128"
        " --max_predictions_per_seq=20 --num_hidden_layers=12 --num_attention_heads=12"
        " --max_position_embeddings=512 --type_vocab_size=2 --vocab_size=30522"
        " --attention_probs_dropout_prob=0.1 --hidden_dropout_prob=0.1 --hidden_size_per_head=64"
        " --data_dir=/datasets/bert/of_wiki_seq_len_128 --data_part_num=32 --log_dir=./log"
        " --model_save_every_n_iter=10000 --save_last_snapshot= --model_save_dir=./snapshots"
    )
    assert found.trial == "2n8g-bert_base_b96_fp32_1"
    amp = first("oneflow-bert-amp", oneflow_bert.WORKLOAD, "2n8g", 160)
    assert words(amp.tasks[0].argv).endswith(
        "--save_last_snapshot=False --model_save_dir=./snapshots --use_fp16"
    )


def test_gpt_is_started_as_the_report_does() -> None:
    """DLPerf's command line for 2D_PP_2x4x4_512_2304x24, with a control port of its own."""
    found = next(
        attempt
        for attempt in bound(recipe("oneflow-gpt", oneflow_gpt.WORKLOAD))
        if "2D_PP_2x4x4_512_2304x24" in attempt.trial
    )
    assert words(found.tasks[3].argv) == (
        "python3 -m oneflow_gpt.training --num-layers 24 --hidden-size 2304"
        " --num-attention-heads 24 --micro-batch-size 8 --global-batch-size 512"
        " --tensor-model-parallel-size 4 --pipeline-model-parallel-size 4 --num-gpus-per-node 8"
        f" --num-nodes 4 --node-ips {IPS} --ctrl-port {found.port} --train-iters 100"
        " --dataset /data/gpt/gpt_sample_dataset_text_document --seq-length 2048"
        " --log-interval 10 --learning-rate 0.00015 --min-lr 1.0e-5 --lr-decay-style cosine"
        " --lr-decay-iters 320000 --lr-warmup-fraction 0.01 --initial-loss-scale 1048576"
        " --optimizer adamw --weight-decay 1e-2 --clip-grad 1.0 --vocab-size 50257"
        " --split 949,50,1 --load checkpoint --save checkpoint --save-interval 20000"
        " --metric-print-format table --checkpoint-activations --multihead-attention-fusion"
        " --fp16 --use-rdma"
    )


@pytest.mark.parametrize(("place", "line"), list(enumerate(PRINTED)))
def test_every_layout_of_the_report_comes_out_by_its_name(place: int, line: str) -> None:
    """Name, placement, batches and shape of all 18, in the report's order."""
    name, placement, micro, whole, layers, heads, *_ = line.split()
    found = matrix.cases(recipe("oneflow-gpt", oneflow_gpt.WORKLOAD).experiment)[place]
    assert oneflow_gpt.case_name(found) == name
    assert (found.placement, found.micro_batch_size) == (placement, int(micro))
    assert found.global_batch_size == int(whole)
    assert (found.given["num_layers"], found.given["num_attention_heads"]) == (
        int(layers),
        int(heads),
    )


@pytest.mark.parametrize(("place", "line"), list(enumerate(PRINTED)))
def test_published_latency_gives_the_published_throughput_and_tflops(place: int, line: str) -> None:
    """Samples/s to the digits of seed 002, TFLOP/s per GPU to those of the report of May 2021."""
    *_, latency_ms, samples, tflops = line.split()
    found = matrix.cases(recipe("oneflow-gpt", oneflow_gpt.WORKLOAD).experiment)[place]
    seconds = float(latency_ms) / 1000
    digits = len(samples.partition(".")[2])
    assert f"{found.global_batch_size / seconds:.{digits}f}" == samples
    assert f"{oneflow_gpt.step_flops(found) / seconds / found.world_size / 1e12:.2f}" == tflops


def test_cases_of_one_shape_have_logs_of_their_own() -> None:
    """Upstream writes DP_8x1x1 and 2D_8x1x1 into one file, where the second replaces the first."""
    found = [trial.log for trial in built("oneflow-gpt", oneflow_gpt.WORKLOAD).trials]
    assert len(set(found)) == 18
    assert found[1] == (
        "1n8g/DP_8x1x1_16_1536x16-pretrain_gpt_1n8d_dp8_mp1_pp1_mbz2_gbz16_s2048_l16_h1536_nh16"
        "_1.log"
    )


@pytest.mark.parametrize(
    ("changes", "name"),
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
    changes: dict[str, Any], name: str
) -> None:
    """A playbook of one's own need not know the report's groups."""
    assert oneflow_gpt.case_name(replace(gpt_case(), **changes)) == name


@pytest.mark.parametrize(
    ("workload", "refused", "method", "said"),
    [
        (
            oneflow_rn50.WORKLOAD,
            case("amp"),
            Method(repeats=1, iterations=120, window=(20, 120)),
            "precision amp with OneFlow 0.1.9; needed fp32, or release 0.2.0",
        ),
        (
            oneflow_rn50.WORKLOAD,
            case(),
            Method(repeats=1, iterations=120, window=(25, 120)),
            "window [25, 120]; the program prints every 20 iterations from 20 on, needed such as"
            " [20, 120]",
        ),
        (
            oneflow_bert.WORKLOAD,
            case(),
            Method(repeats=1, iterations=140, window=(20, 120)),
            "window [20, 120]; the program prints every 20 iterations from 19 on, needed such as"
            " [19, 119]",
        ),
        (
            oneflow_gpt.WORKLOAD,
            gpt_case(num_attention_heads=7),
            Method(repeats=1, iterations=100, window=(60, 100)),
            "hidden_size 1536 over num_attention_heads 7; needed a multiple",
        ),
        (
            oneflow_gpt.WORKLOAD,
            replace(gpt_case(num_attention_heads=12), tensor_parallel=8),
            Method(repeats=1, iterations=100, window=(60, 100)),
            "num_attention_heads 12 over tensor_parallel 8; needed a multiple",
        ),
        (
            oneflow_gpt.WORKLOAD,
            replace(gpt_case(num_layers=15), pipeline_parallel=4),
            Method(repeats=1, iterations=100, window=(60, 100)),
            "num_layers 15 over pipeline_parallel 4; needed a multiple",
        ),
        (
            oneflow_gpt.WORKLOAD,
            gpt_case(),
            Method(repeats=1, iterations=100, window=(55, 100)),
            "window [55, 100]; the table has a row every 10 iterations",
        ),
    ],
)
def test_what_the_program_cannot_do_is_refused(
    workload: Workload, refused: Case, method: Method, said: str
) -> None:
    """Before a GPU is touched, and with the numbers."""
    assert list(workload.unsupported(refused, method)) == [said]


def test_a_reported_result_needs_no_window() -> None:
    """Nothing is said of a window that is not there."""
    method = Method(repeats=1, iterations=100, rule="reported")
    for workload, found in (
        (oneflow_rn50.WORKLOAD, case()),
        (oneflow_bert.WORKLOAD, case()),
        (oneflow_gpt.WORKLOAD, gpt_case()),
    ):
        assert list(workload.unsupported(found, method)) == []


def called(workload: Workload, found: Case) -> Published:
    """How published results call a case."""
    assert workload.published
    said = workload.published(found)
    assert said
    return said


def test_published_results_call_cases_by_these_words() -> None:
    """Of the release that a playbook says; a log says none, and is compared with all of them."""
    old = called(oneflow_rn50.WORKLOAD, case(release="0.1.9"))
    assert (old.frameworks, old.model) == (("oneflow-0.1.9",), "resnet50v1.5")
    assert old.precision == ("fp32",)
    new = called(oneflow_bert.WORKLOAD, case("amp", release="0.2.0"))
    assert new.frameworks[0] == "oneflow-0.2.0*"
    assert (new.model, new.precision) == ("bert-base", ("amp", "amp-dynamic"))
    assert called(oneflow_rn50.WORKLOAD, case()).frameworks == ("oneflow-*",)
    gpt = called(oneflow_gpt.WORKLOAD, gpt_case(group="DP"))
    assert (gpt.model, gpt.batch) == ("gpt DP_8x1x1_16_1536x16", "gbs=16")
    assert gpt.precision == ("fp16",)
    full = replace(gpt_case(), precision="fp32")
    assert called(oneflow_gpt.WORKLOAD, full).precision == ("fp32",)


def test_synthetic_images_are_compared_with_nothing() -> None:
    """What was published read ImageNet."""
    assert oneflow_rn50.published(case(data="synthetic")) is None


@pytest.mark.parametrize("line", PRINTED)
def test_names_of_logs_tell_the_case_of_the_report(line: str) -> None:
    """Every name that a sweep writes is read back, with the group that upstream's lacks."""
    place = PRINTED.index(line)
    found = matrix.cases(recipe("oneflow-gpt", oneflow_gpt.WORKLOAD).experiment)[place]
    told = oneflow_gpt.told_by_name(f"{oneflow_gpt.stem(found)}_1")
    document = {**found.document(), **found.given, "seq_length": 2048}
    assert {name: document[name] for name in told} == told
    assert told["group"] == found.given["group"]
    bare = oneflow_gpt.stem(found).partition("-")[2]
    assert oneflow_gpt.told_by_name(bare) == {k: v for k, v in told.items() if k != "group"}


def test_a_name_of_somebody_else_s_tells_nothing() -> None:
    """Then the header alone tells the case."""
    assert oneflow_gpt.told_by_name("of_gpt_4n8d_dp2_mp4_pp4_full_README") == {}
