"""OneFlow's GPT with data, tensor and pipeline parallelism (OneFlow-Benchmark, LanguageModeling).

Source: seed 002 and DLPerf's page on GPT, whose command line this gives.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Literal

from orchestrator import logs
from orchestrator.launchers import replicate
from orchestrator.model.case import Case
from orchestrator.model.experiment import Method
from orchestrator.model.plan import Command, Placement
from orchestrator.model.report import Layout
from orchestrator.model.text import Count, Noun, Scalar
from orchestrator.workloads import Published, Workload, oneflow_rn50

DATA = "/data/gpt"
DATASET = f"{DATA}/gpt_sample_dataset_text_document"
_STEM = re.compile(
    r"pretrain_gpt_(?P<nodes>\d{1,5})n(?P<gpus_per_node>\d{1,5})d_dp(?P<data_parallel>\d{1,5})"
    r"_mp(?P<tensor_parallel>\d{1,5})_pp(?P<pipeline_parallel>\d{1,5})"
    r"_mbz(?P<micro_batch_size>\d{1,6})_gbz(?P<global_batch_size>\d{1,8})"
    r"_s(?P<seq_length>\d{1,7})_l(?P<num_layers>\d{1,5})_h(?P<hidden_size>\d{1,6})"
    r"_nh(?P<num_attention_heads>\d{1,5})",
    re.ASCII,
)
_GROUP = re.compile(r"(?P<split>DP|MP|2D)(?P<pipeline>_PP)?_\d+x\d+x\d+_\d+_\d+x\d+-", re.ASCII)
PADDED_VOCABULARY = 51_200
"""Words that the published TFLOP/s are reckoned with, however a case pads its own."""


class Params(Noun):
    num_layers: Count
    """Transformer layers."""
    hidden_size: Count
    """Width of each layer."""
    num_attention_heads: Count
    """Attention heads of each layer."""
    seq_length: Count = 2048
    """Tokens of a sequence."""
    group: Literal["DP", "MP", "2D", "PP"] | None = None
    """The report's group of cases; two of them measure the same shape. Else by how it is split."""
    log_interval: Count = 10
    """Iterations from one row of the table to the next."""
    rdma: bool = True
    """Let OneFlow itself use InfiniBand, as in the reports."""


def case_name(case: Case) -> str:
    """Return the report's name of a case, such as ``2D_PP_2x4x4_512_2304x24``."""
    params = Params.model_validate(case.given)
    tensor, pipeline = case.tensor_parallel, case.pipeline_parallel
    split = "MP" if case.data_parallel == 1 and tensor > 1 else "DP" if tensor == 1 else "2D"
    group = params.group or ("PP" if pipeline > 1 else split)
    prefix = f"{split}_PP" if group == "PP" else group
    return (
        f"{prefix}_{case.data_parallel}x{tensor}x{pipeline}_{case.global_batch_size}"
        f"_{params.hidden_size}x{params.num_layers}"
    )


def stem(case: Case) -> str:
    """Return the case's name with upstream's log name, which two cases may share."""
    params = Params.model_validate(case.given)
    return (
        f"{case_name(case)}-pretrain_gpt_{case.nodes}n{case.gpus_per_node}d"
        f"_dp{case.data_parallel}_mp{case.tensor_parallel}_pp{case.pipeline_parallel}"
        f"_mbz{case.micro_batch_size}_gbz{case.global_batch_size}_s{params.seq_length}"
        f"_l{params.num_layers}_h{params.hidden_size}_nh{params.num_attention_heads}"
    )


def told_by_name(stem: str) -> Mapping[str, Scalar]:
    """Parse the case from upstream's name of a log, and from the report's name before it."""
    found = _STEM.search(stem)
    if found is None:
        return {}
    said: dict[str, Scalar] = {name: int(text) for name, text in found.groupdict().items()}
    split = int(found["tensor_parallel"]) * int(found["pipeline_parallel"])
    replicas = int(found["nodes"]) * int(found["gpus_per_node"]) // max(split, 1)
    micro = int(found["micro_batch_size"]) * replicas
    said["accumulation_steps"] = max(int(found["global_batch_size"]) // max(micro, 1), 1)
    group = _GROUP.match(stem)
    if group:
        said["group"] = "PP" if group["pipeline"] else group["split"]
    return said


def command(case: Case, method: Method, placement: Placement) -> Command:
    """Return the same command for every node; ``checkpoint`` is a folder of the attempt's own."""
    params = Params.model_validate(case.given)
    options = f"""
        --num-layers {params.num_layers} --hidden-size {params.hidden_size}
        --num-attention-heads {params.num_attention_heads}
        --micro-batch-size {case.micro_batch_size} --global-batch-size {case.global_batch_size}
        --tensor-model-parallel-size {case.tensor_parallel}
        --pipeline-model-parallel-size {case.pipeline_parallel}
        --num-gpus-per-node {case.gpus_per_node} --num-nodes {case.nodes}
        --node-ips {oneflow_rn50.node_ips(placement)} --ctrl-port {placement.port}
        --train-iters {method.iterations} --dataset {DATASET} --seq-length {params.seq_length}
        --log-interval {params.log_interval} --learning-rate 0.00015 --min-lr 1.0e-5
        --lr-decay-style cosine --lr-decay-iters 320000 --lr-warmup-fraction 0.01
        --initial-loss-scale 1048576 --optimizer adamw --weight-decay 1e-2 --clip-grad 1.0
        --vocab-size 50257 --split 949,50,1
        --load checkpoint --save checkpoint --save-interval 20000
        --metric-print-format table --checkpoint-activations --multihead-attention-fusion
        {"--fp16" if case.precision == "amp" else ""} {"--use-rdma" if params.rdma else ""}
    """
    return Command((), ("python3", "-m", "oneflow_gpt.training", *options.split()))


def unsupported(case: Case, method: Method) -> Iterator[str]:
    params = Params.model_validate(case.given)
    hidden, heads, layers = params.hidden_size, params.num_attention_heads, params.num_layers
    for name, whole, by, split in (
        ("hidden_size", hidden, "num_attention_heads", heads),
        ("num_attention_heads", heads, "tensor_parallel", case.tensor_parallel),
        ("num_layers", layers, "pipeline_parallel", case.pipeline_parallel),
    ):
        if whole % split:
            yield f"{name} {whole} over {by} {split}; needed a multiple"
    every = params.log_interval
    if any(end % every for end in method.window or ()):
        yield f"window {list(method.window or ())}; the table has a row every {every} iterations"


def step_flops(case: Case) -> float:
    """Return the floating-point operations of a step: forward, backward, forward again.

    Source: DLPerf's report on GPT of May 2021, whose TFLOP/s it gives; Megatron-LM's formula with
    activation checkpointing.
    """
    params = Params.model_validate(case.given)
    hidden, layers, length = params.hidden_size, params.num_layers, params.seq_length
    attention = length / (6 * hidden)
    logits = PADDED_VOCABULARY / (16 * layers * hidden)
    return 96 * case.global_batch_size * length * layers * hidden**2 * (1 + attention + logits)


def published(case: Case) -> Published:
    """Return the published names; the reports' fp16 is this program's amp."""
    batch = f"gbs={case.global_batch_size}"
    precision = "fp16" if case.precision == "amp" else case.precision
    frameworks = ("oneflow-0.3.5*", "megatron*")
    return Published(frameworks, f"gpt {case_name(case)}", (precision,), batch)


WORKLOAD = Workload(
    name="oneflow_gpt",
    title="GPT, OneFlow-Benchmark, OneFlow",
    params=Params,
    unit="samples/s",
    launcher=replicate,
    ipv6=False,
    port=lambda _: 50051,
    command=command,
    env=oneflow_rn50.environment,
    data=lambda _: {"gpt": DATA},
    unsupported=unsupported,
    axes=frozenset({"accumulation_steps", "tensor_parallel", "pipeline_parallel"}),
    rules=frozenset({"latency"}),
    log_prefix="pretrain_gpt",
    told_by_name=told_by_name,
    stem=stem,
    case_name=case_name,
    layout=Layout(kind="groups"),
    step_flops=step_flops,
    published=published,
    read=logs.reader(logs.ONEFLOW_GPT),
    fabric=logs.fabric,
    progress=logs.progress(logs.ONEFLOW_GPT),
)
