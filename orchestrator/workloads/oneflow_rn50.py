"""OneFlow's ResNet-50 v1.5 (OneFlow-Benchmark, Classification/cnns).

Source: seeds 000 and 001, OneFlow-Benchmark's rn50_train.sh, whose command line this gives.
"""

from collections.abc import Iterable
from typing import Literal

from orchestrator import logs
from orchestrator.launchers import replicate
from orchestrator.model.case import Case
from orchestrator.model.experiment import Method
from orchestrator.model.layout import Layout
from orchestrator.model.plan import Command, Mount, Placement, Seat
from orchestrator.model.text import Count, Noun
from orchestrator.workloads import Published, Workload, _oneflow
from orchestrator.workloads._oneflow import Release

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


class Params(Noun):
    """The parameters that a playbook may give this program."""

    release: Release = "0.1.9"
    """The version of OneFlow in the image; its options differ."""
    data: Literal["ofrecord", "synthetic"] = "ofrecord"
    """Synthetic data is made by the program, and measures no input."""
    data_part_num: Count = 256
    """OFRecord files to read."""
    print_every: Count = 20
    """Iterations from one line of the log to the next; windows begin and end at such lines."""


def command(case: Case, method: Method, placement: Placement) -> Command:
    """Return the command for one epoch that is exactly as long as the iterations asked for."""
    params = Params.model_validate(case.given)
    old = params.release == "0.1.9"
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


def mounts(case: Case, seat: Seat) -> tuple[Mount, ...]:
    """Return the mount of ImageNet's OFRecord files, where the scripts look for them."""
    return tuple(Mount(seat.data[name], OFRECORD, read_only=True) for name in data(case))


def data(case: Case) -> tuple[str, ...]:
    """Return ImageNet as OFRecord, unless the program makes its own."""
    synthetic = Params.model_validate(case.given).data == "synthetic"
    return () if synthetic else ("imagenet_ofrecord",)


def unsupported(case: Case, method: Method) -> Iterable[str]:
    """Yield AMP if the version has none, and windows off the printed lines."""
    params = Params.model_validate(case.given)
    every = params.print_every
    printed = range(every, method.iterations + 1, every)
    return _oneflow.unsupported(case, method, params.release, printed)


def port(case: Case) -> int:
    """Return the control port, which is fixed in the program of 0.1.9."""
    return _oneflow.FIRST_PORT[Params.model_validate(case.given).release]


def published(case: Case) -> Published | None:
    """Return the published names; None for synthetic data, which nobody has published."""
    synthetic = Params.model_validate(case.given).data == "synthetic"
    return None if synthetic else _oneflow.published(case, "resnet50v1.5")


WORKLOAD = Workload(
    name="oneflow_rn50",
    title="ResNet-50 v1.5, OneFlow-Benchmark, OneFlow",
    params=Params,
    unit="images/s",
    last_iteration=lambda asked: asked,
    launcher=replicate.launch,
    ipv6=False,
    port=port,
    fixed_port=lambda case: Params.model_validate(case.given).release == "0.1.9",
    command=command,
    env=_oneflow.environment,
    mounts=mounts,
    data=data,
    unsupported=unsupported,
    devices=frozenset({"cuda"}),
    axes=frozenset(),
    rules=frozenset({"clock", "rates"}),
    log_prefix="rn50",
    layout=Layout(decimals=1),
    published=published,
    read=logs.reader(logs.ONEFLOW_RN50),
    fabric=logs.fabric,
    progress=logs.progress(logs.ONEFLOW_RN50),
)
