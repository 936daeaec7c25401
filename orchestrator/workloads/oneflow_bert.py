"""OneFlow's BERT base, pretraining (OneFlow-Benchmark, LanguageModeling/BERT).

Source: seed 001, OneFlow-Benchmark's bert_base_pretrain.sh, whose command line this gives.
"""

from collections.abc import Iterable

from orchestrator import logs
from orchestrator.launchers import replicate
from orchestrator.model.case import Case
from orchestrator.model.experiment import Method
from orchestrator.model.layout import Layout
from orchestrator.model.plan import Command, Mount, Placement, Seat
from orchestrator.model.text import Count, Noun
from orchestrator.workloads import Workload, _oneflow
from orchestrator.workloads._oneflow import Release

WIKI = "/datasets/bert/of_wiki_seq_len_128"


class Params(Noun):
    """The parameters that a playbook may give this program."""

    release: Release = "0.1.9"
    """The version of OneFlow in the image; its options differ."""
    data_part_num: Count = 32
    """OFRecord files to read; upstream's sample has 1."""
    print_every: Count = 20
    """Iterations from one line of the log to the next; windows begin and end at such lines."""


def command(case: Case, method: Method, placement: Placement) -> Command:
    """Return the command for BERT base with sequences of 128 tokens."""
    params = Params.model_validate(case.given)
    old = params.release == "0.1.9"
    return Command(
        agent=(),
        program=(
            *("python3", f"{placement.code}/LanguageModeling/BERT/run_pretraining.py"),
            f"--gpu_num_per_node={case.gpus_per_node}",
            f"--num_nodes={case.nodes}",
            f"--node_ips={_oneflow.node_ips(placement)}",
            *(() if old else (f"--ctrl_port={placement.port}",)),
            "--learning_rate=1e-4",
            f"--batch_size_per_device={case.micro_batch_size}",
            f"--iter_num={method.iterations}",
            f"--loss_print_every_n_iter={params.print_every}",
            *("--seq_length=128", "--max_predictions_per_seq=20"),
            *("--num_hidden_layers=12", "--num_attention_heads=12"),
            *("--max_position_embeddings=512", "--type_vocab_size=2", "--vocab_size=30522"),
            *("--attention_probs_dropout_prob=0.1", "--hidden_dropout_prob=0.1"),
            "--hidden_size_per_head=64",
            *(f"--data_dir={WIKI}", f"--data_part_num={params.data_part_num}"),
            *("--log_dir=./log", "--model_save_every_n_iter=10000"),
            # Of 0.1.9 the option has type=bool, for which every word means yes, False among them.
            "--save_last_snapshot=" if old else "--save_last_snapshot=False",
            "--model_save_dir=./snapshots",
            *(("--use_fp16",) if case.precision == "amp" else ()),
        ),
    )


def mounts(_: Case, seat: Seat) -> tuple[Mount, ...]:
    """Return the mount of Wikipedia as OFRecord."""
    return (Mount(seat.data["wiki_ofrecord"], WIKI, read_only=True),)


def unsupported(case: Case, method: Method) -> Iterable[str]:
    """Yield AMP if the version has none, and windows off the printed lines 19, 39 and so on."""
    params = Params.model_validate(case.given)
    every = params.print_every
    printed = range(every - 1, method.iterations, every)
    return _oneflow.unsupported(case, method, params.release, printed)


def port(case: Case) -> int:
    """Return the control port, which is fixed in the program of 0.1.9."""
    return _oneflow.FIRST_PORT[Params.model_validate(case.given).release]


WORKLOAD = Workload(
    name="oneflow_bert",
    title="BERT base, OneFlow-Benchmark, OneFlow",
    params=Params,
    unit="sentences/s",
    last_iteration=lambda asked: asked - 1,  # it counts from 0
    launcher=replicate.launch,
    ipv6=False,
    port=port,
    fixed_port=lambda case: Params.model_validate(case.given).release == "0.1.9",
    command=command,
    env=_oneflow.environment,
    mounts=mounts,
    data=lambda _: ("wiki_ofrecord",),
    unsupported=unsupported,
    devices=frozenset({"cuda"}),
    axes=frozenset(),
    rules=frozenset({"clock", "rates"}),
    log_prefix="bert_base",
    layout=Layout(decimals=1),
    published=lambda case: _oneflow.published(case, "bert-base"),
    read=logs.reader(logs.ONEFLOW_BERT),
    fabric=logs.fabric,
    progress=logs.progress(logs.ONEFLOW_BERT),
)
