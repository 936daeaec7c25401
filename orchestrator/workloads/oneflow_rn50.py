"""OneFlow's ResNet-50 v1.5 (OneFlow-Benchmark, Classification/cnns).

Source: seeds 000 and 001, OneFlow-Benchmark's rn50_train.sh, whose command line this gives.
"""

from collections.abc import Mapping
from functools import partial
from typing import Literal

from orchestrator import logs
from orchestrator.launchers import replicate
from orchestrator.model.case import Case
from orchestrator.model.experiment import Method
from orchestrator.model.plan import Command, Placement
from orchestrator.model.report import Layout
from orchestrator.model.text import Count
from orchestrator.workloads import Published, Workload, _oneflow

OFRECORD = "/datasets/ImageNet/ofrecord"
# OneFlow-Benchmark renamed these between the commits of 0.1.9 and 0.2.0; a spelling of the other
# one ends the program with a usage error.
OPTIMIZER_OF_0_1_9 = ("--model_update=momentum", "--mom=0.875", "--label-smoothing=0.1")
OPTIMIZER = ("--optimizer=sgd", "--momentum=0.875", "--label_smoothing=0.1")
AMP = (
    *("--use_fp16", "--channel_last=True", "--pad_output"),
    *("--fuse_bn_relu=True", "--fuse_bn_add_relu=True"),
    *("--nccl_fusion_threshold_mb=16", "--nccl_fusion_max_ops=24"),
    "--gpu_image_decoder=True",
)


class Params(_oneflow.Params):
    data: Literal["ofrecord", "synthetic"] = "ofrecord"
    """Synthetic data is made by the program, and measures no input."""
    data_part_num: Count = 256
    """OFRecord files to read."""


def command(case: Case, method: Method, placement: Placement) -> Command:
    """Return the command for one epoch that is exactly as long as the iterations asked for."""
    params = Params.model_validate(case.given)
    old = _oneflow.is_old(case)
    data = (
        f"--train_data_dir={OFRECORD}/train",
        f"--train_data_part_num={params.data_part_num}",
    )
    return Command(
        agent=(),
        program=(
            *("python3", f"{placement.code}/Classification/cnns/of_cnn_train_val.py"),
            f"--num_examples={case.global_batch_size * method.iterations}",
            *(data if params.data == "ofrecord" else ()),
            f"--num_nodes={case.nodes}",
            f"--gpu_num_per_node={case.gpus_per_node}",
            *(OPTIMIZER_OF_0_1_9 if old else OPTIMIZER),
            "--learning_rate=0.001",
            f"--loss_print_every_n_iter={params.print_every}",
            f"--batch_size_per_device={case.micro_batch_size}",
            *("--val_batch_size_per_device=125", "--num_epoch=1", "--log_dir=./log"),
            f"--node_ips={_oneflow.node_ips(placement)}",
            *(() if old else (f"--ctrl_port={placement.port}",)),
            "--model=resnet50",
            *(AMP if case.precision == "amp" else ()),
        ),
    )


def data(case: Case) -> Mapping[str, str]:
    """Return ImageNet as OFRecord, unless the program makes its own."""
    synthetic = Params.model_validate(case.given).data == "synthetic"
    return {} if synthetic else {"imagenet_ofrecord": OFRECORD}


def published(case: Case) -> Published | None:
    """Return the published names; None for synthetic data, which nobody has published."""
    return _oneflow.published(case, "resnet50v1.5") if data(case) else None


WORKLOAD = Workload(
    name="oneflow_rn50",
    title="ResNet-50 v1.5, OneFlow-Benchmark, OneFlow",
    params=Params,
    unit="images/s",
    last_iteration=lambda asked: asked,
    launcher=replicate.launch,
    ipv6=False,
    port=_oneflow.port,
    fixed_port=_oneflow.is_old,
    command=command,
    env=_oneflow.environment,
    data=data,
    unsupported=partial(_oneflow.unsupported, base=1),
    rules=frozenset({"clock", "rates"}),
    log_prefix="rn50",
    layout=Layout(decimals=1),
    published=published,
    read=logs.reader(logs.ONEFLOW_RN50),
    fabric=logs.fabric,
    progress=logs.progress(logs.ONEFLOW_RN50),
)
