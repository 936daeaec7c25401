"""OneFlow's ResNet-50 v1.5 (OneFlow-Benchmark, Classification/cnns), and what BERT and GPT share.

Source: seeds 000 and 001, OneFlow-Benchmark's rn50_train.sh, whose command line this gives.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Literal

from orchestrator import logs
from orchestrator.launchers import gang_env, replicate
from orchestrator.model.case import Case
from orchestrator.model.experiment import Method
from orchestrator.model.plan import Command, Placement, Seat
from orchestrator.model.report import Layout
from orchestrator.model.text import Count, Noun
from orchestrator.workloads import Published, Workload

OFRECORD = "/datasets/ImageNet/ofrecord"
# OneFlow-Benchmark renamed these between the commits of 0.1.9 and 0.2.0; a spelling of the other
# one ends the program with a usage error.
OPTIMIZER_OF_0_1_9 = "--model_update=momentum --mom=0.875 --label-smoothing=0.1"
OPTIMIZER = "--optimizer=sgd --momentum=0.875 --label_smoothing=0.1"
AMP = """
    --use_fp16 --channel_last=True --pad_output --fuse_bn_relu=True --fuse_bn_add_relu=True
    --nccl_fusion_threshold_mb=16 --nccl_fusion_max_ops=24 --gpu_image_decoder=True
"""
_PRINT_EVERY = 20


class Shared(Noun):
    """The parameters that a playbook may give ResNet-50 and BERT."""

    release: Literal["0.1.9", "0.2.0"] = "0.1.9"
    """The version of OneFlow in the image; its options differ."""
    print_every: Count = _PRINT_EVERY
    """Iterations from one line of the log to the next; windows begin and end at such lines."""


def is_old(case: Case) -> bool:
    """Return True for 0.1.9, which measured the reports of August 2020, with a fixed port.

    0.2.0 measured those from October on, AMP among them.
    """
    return case.given.get("release") != "0.2.0"


def port(case: Case) -> int:
    return 12138 if is_old(case) else 50051


def node_ips(placement: Placement) -> str:
    """Join the nodes' addresses, leader first: a rank is a place in it, and blanks break it."""
    return ",".join(seat.address for seat in placement.seats)


def environment(case: Case, placement: Placement, seat: Seat) -> Mapping[str, str]:
    """Return the common environment with that of rn50_train.sh and bert_base_pretrain.sh."""
    ours = {"PYTHONUNBUFFERED": "1", "NCCL_LAUNCH_MODE": "PARALLEL"}
    return {**gang_env(case, placement, seat), **ours}


def find_unsupported(case: Case, method: Method, *, base: int) -> Iterator[str]:
    """Yield AMP if the version has none, and windows that end between printed lines.

    Iterations are numbered from ``base``.
    """
    if is_old(case) and case.precision != "fp32":
        yield f"precision {case.precision} with OneFlow 0.1.9; needed fp32, or release 0.2.0"
    every = int(case.given.get("print_every", _PRINT_EVERY))
    printed = range(base + every - 1, base + method.iterations, every)
    off = [end for end in method.window or () if end not in printed]
    if off and method.window:
        first, last = method.window
        nearest = [min(printed, key=lambda number: abs(number - end)) for end in method.window]
        yield (
            f"window [{first}, {last}]; the program prints every {every} iterations from"
            f" {printed.start} on, needed such as {nearest}"
        )


def name_published(case: Case, model: str) -> Published:
    """Return the published names of a case: of its release, or of all if none is given.

    Logs do not say the release that wrote them. Reports of 0.3.1 call AMP by its loss scale.
    """
    patterns = {
        "0.1.9": ("oneflow-0.1.9",),
        "0.2.0": ("oneflow-0.2.0*", "oneflow-0.3.1*", "oneflow-0.4.0*"),
    }
    words = ("fp32",) if case.precision == "fp32" else ("amp", "amp-dynamic")
    return Published(patterns.get(str(case.given.get("release")), ("oneflow-*",)), model, words)


class Params(Shared):
    data: Literal["ofrecord", "synthetic"] = "ofrecord"
    """Synthetic data is made by the program, and measures no input."""
    data_part_num: Count = 256
    """OFRecord files to read."""


def command(case: Case, method: Method, placement: Placement) -> Command:
    """Return the command for one epoch that is exactly as long as the iterations asked for."""
    params = Params.model_validate(case.given)
    old, data = is_old(case), ""
    port = "" if old else f"--ctrl_port={placement.port}"
    if params.data == "ofrecord":
        data = f"--train_data_dir={OFRECORD}/train --train_data_part_num={params.data_part_num}"
    options = f"""
        --num_examples={case.global_batch_size * method.iterations} {data}
        --num_nodes={case.nodes} --gpu_num_per_node={case.gpus_per_node}
        {OPTIMIZER_OF_0_1_9 if old else OPTIMIZER} --learning_rate=0.001
        --loss_print_every_n_iter={params.print_every}
        --batch_size_per_device={case.micro_batch_size} --val_batch_size_per_device=125
        --num_epoch=1 --log_dir=./log --node_ips={node_ips(placement)}
        {port} --model=resnet50
        {AMP if case.precision == "amp" else ""}
    """
    program = f"{placement.code}/Classification/cnns/of_cnn_train_val.py"
    return Command((), ("python3", program, *options.split()))


def data(case: Case) -> Mapping[str, str]:
    synthetic = Params.model_validate(case.given).data == "synthetic"
    return {} if synthetic else {"imagenet_ofrecord": OFRECORD}


def published(case: Case) -> Published | None:
    """Return the published names; None for synthetic data, which nobody has published."""
    return name_published(case, "resnet50v1.5") if data(case) else None


WORKLOAD = Workload(
    name="oneflow_rn50",
    title="ResNet-50 v1.5, OneFlow-Benchmark, OneFlow",
    params=Params,
    unit="images/s",
    launcher=replicate,
    ipv6=False,
    port=port,
    fixed_port=is_old,
    command=command,
    env=environment,
    data=data,
    unsupported=partial(find_unsupported, base=1),
    rules=frozenset({"clock", "rates"}),
    log_prefix="rn50",
    layout=Layout(decimals=1),
    published=published,
    read=logs.reader(logs.ONEFLOW_RN50),
    fabric=logs.fabric,
    progress=logs.progress(logs.ONEFLOW_RN50),
)
