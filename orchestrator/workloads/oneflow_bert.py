"""OneFlow's BERT base, pretraining (OneFlow-Benchmark, LanguageModeling/BERT).

Source: seed 001, OneFlow-Benchmark's bert_base_pretrain.sh, whose command line this gives.
"""

from dataclasses import replace
from functools import partial

from orchestrator import logs
from orchestrator.model.case import Case
from orchestrator.model.experiment import Method
from orchestrator.model.plan import Command, Placement
from orchestrator.model.text import Count
from orchestrator.workloads import oneflow_rn50

WIKI = "/datasets/bert/of_wiki_seq_len_128"


class Params(oneflow_rn50.Shared):
    data_part_num: Count = 32
    """OFRecord files to read; upstream's sample has 1."""


def command(case: Case, method: Method, placement: Placement) -> Command:
    params = Params.model_validate(case.given)
    old = oneflow_rn50.is_old(case)
    port = "" if old else f"--ctrl_port={placement.port}"
    options = f"""
        --gpu_num_per_node={case.gpus_per_node} --num_nodes={case.nodes}
        --node_ips={oneflow_rn50.node_ips(placement)} {port}
        --learning_rate=1e-4 --batch_size_per_device={case.micro_batch_size}
        --iter_num={method.iterations} --loss_print_every_n_iter={params.print_every}
        --seq_length=128 --max_predictions_per_seq=20
        --num_hidden_layers=12 --num_attention_heads=12 --max_position_embeddings=512
        --type_vocab_size=2 --vocab_size=30522 --attention_probs_dropout_prob=0.1
        --hidden_dropout_prob=0.1 --hidden_size_per_head=64
        --data_dir={WIKI} --data_part_num={params.data_part_num}
        --log_dir=./log --model_save_every_n_iter=10000
    """.split()
    # Of 0.1.9 the option has type=bool, for which every word means yes, False among them.
    options.append("--save_last_snapshot=" if old else "--save_last_snapshot=False")
    options.append("--model_save_dir=./snapshots")
    if case.precision == "amp":
        options.append("--use_fp16")
    program = f"{placement.code}/LanguageModeling/BERT/run_pretraining.py"
    return Command((), ("python3", program, *options))


WORKLOAD = replace(
    oneflow_rn50.WORKLOAD,
    name="oneflow_bert",
    title="BERT base, OneFlow-Benchmark, OneFlow",
    params=Params,
    unit="sentences/s",
    last_iteration=lambda asked: asked - 1,  # it counts from 0
    command=command,
    data=lambda _: {"wiki_ofrecord": WIKI},
    unsupported=partial(oneflow_rn50.find_unsupported, base=0),
    log_prefix="bert_base",
    published=lambda case: oneflow_rn50.name_published(case, "bert-base"),
    read=logs.reader(logs.ONEFLOW_BERT),
    progress=logs.progress(logs.ONEFLOW_BERT),
)
