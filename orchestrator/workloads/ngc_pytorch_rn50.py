"""NVIDIA's ResNet-50 v1.5 in PyTorch (DeepLearningExamples, ConvNets) in the NGC 20.03 image.

Source: seed 003 and DLPerf's single_node_train.sh, whose command line this gives word for word.
"""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from orchestrator import logs
from orchestrator.launchers import gang_env, torchrun
from orchestrator.model.case import Case
from orchestrator.model.experiment import Method
from orchestrator.model.plan import Command, Placement
from orchestrator.model.text import Noun
from orchestrator.workloads import Published, Workload

CODE = "/workspace/rn50"
DATA = "/data/image"


LossScale = Annotated[
    Literal["dynamic"] | Annotated[float, Field(gt=0)], Field(union_mode="left_to_right")
]


class Params(Noun):
    loss_scale: LossScale = "dynamic"
    """With AMP: dynamic, or a static loss scale such as 128."""
    data_backend: Literal["dali-cpu", "dali-gpu", "pytorch", "syntetic"] = "dali-cpu"
    """The input, in the program's own spelling; syntetic makes images up, and measures no
    input."""


def learning_rate(case: Case) -> str:
    """Return the scripts' learning rate: micro batch x GPUs per node / 1000, not x nodes."""
    return f"{case.micro_batch_size * case.gpus_per_node / 1000:.6g}"


def amp_options(loss_scale: LossScale) -> tuple[str, ...]:
    """Return the options for AMP, which the reference program shares."""
    if loss_scale == "dynamic":
        return ("--amp", "--dynamic-loss-scale")
    return ("--amp", "--static-loss-scale", str(loss_scale).removesuffix(".0"))


def command(case: Case, method: Method, _: Placement) -> Command:
    params = Params.model_validate(case.given)
    options = f"""
        --data-backend {params.data_backend} --raport-file {CODE}/raport.json -j8 -p 1
        --lr {learning_rate(case)} --optimizer-batch-size -1 --warmup 8
        --arch resnet50 -c fanin --label-smoothing 0.1 --lr-schedule cosine
        --mom 0.125 --wd 3.0517578125e-05 --workspace {CODE} -b {case.micro_batch_size}
        --epochs 1 --prof {method.iterations} --training-only --no-checkpoints
    """.split()
    if case.precision == "amp":
        options += amp_options(params.loss_scale)
    return Command(("python", f"{CODE}/multiproc.py"), (f"{CODE}/main.py", *options, DATA))


def data(case: Case) -> Mapping[str, str]:
    synthetic = Params.model_validate(case.given).data_backend == "syntetic"
    return {} if synthetic else {"imagenet": DATA}


def published(case: Case) -> Published | None:
    """Return the published names; all of those measurements read images, by DALI on the CPUs."""
    params = Params.model_validate(case.given)
    if params.data_backend == "syntetic":
        return None
    precision = case.precision
    if precision == "amp":
        precision = "amp-dynamic" if params.loss_scale == "dynamic" else "amp-static"
    return Published(("ngc-pytorch*",), "resnet50v1.5", (precision,))


WORKLOAD = Workload(
    name="ngc_pytorch_rn50",
    title="ResNet-50 v1.5, NVIDIA DeepLearningExamples, PyTorch",
    params=Params,
    unit="images/s",
    last_iteration=lambda asked: asked - 1,
    launcher=torchrun,
    port=lambda case: 22333 if case.nodes > 1 else 29500,
    command=command,
    env=gang_env,
    data=data,
    rules=frozenset({"clock", "rates"}),
    log_prefix="r50",
    published=published,
    read=logs.reader(logs.DLLOGGER, (25, 125)),
    fabric=logs.fabric,
    progress=logs.progress(logs.DLLOGGER),
)
