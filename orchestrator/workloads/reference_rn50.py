"""Our own ResNet-50 v1.5 in PyTorch 2, on synthetic data, for GPUs of today and for CPUs."""

from collections.abc import Iterator, Mapping
from typing import Literal

from pydantic import Field

from orchestrator import logs
from orchestrator.launchers import gang_env, torchrun
from orchestrator.model.case import Case
from orchestrator.model.experiment import Method
from orchestrator.model.plan import Command, Placement, Seat
from orchestrator.model.text import Count, Noun
from orchestrator.workloads import Workload
from orchestrator.workloads.ngc_pytorch_rn50 import LossScale, amp_options


class Params(Noun):
    loss_scale: LossScale = "dynamic"
    """With AMP on GPUs: dynamic, or a static loss scale such as 128."""
    image_size: int = Field(default=224, ge=32, le=4096)
    """Height and width of the images, in pixels."""
    num_classes: Count = 1000
    """Classes that the network tells apart."""
    memory_format: Literal["nhwc", "nchw"] = "nhwc"
    """The memory layout of tensors; nhwc is PyTorch's channels-last."""
    allow_tf32: bool = False
    """On GPUs: whether float32 may be computed as TF32; without it, fp32 means float32."""
    threads: Count = 1
    """Threads of each process, on CPUs."""


def command(case: Case, method: Method, placement: Placement) -> Command:
    params = Params.model_validate(case.given)
    threads = f"--threads {params.threads}" if case.device == "cpu" else ""
    options = f"""
        --device {case.device} --arch resnet50 --image-size {params.image_size}
        --num-classes {params.num_classes} --memory-format {params.memory_format} {threads}
        -b {case.micro_batch_size} --accumulation-steps {case.accumulation_steps}
        --prof {method.iterations}
    """.split()
    # On CPUs, AMP is bfloat16, which has the exponent of float32: there is nothing to scale.
    if case.precision == "amp" and case.device == "cuda":
        options += amp_options(params.loss_scale)
    elif case.precision != "fp32":
        options.append(f"--{case.precision}")
    if params.allow_tf32:
        options.append("--allow-tf32")
    agent = (placement.python, "-m", "torch.distributed.run")
    return Command(agent, (f"{placement.code}/train.py", *options))


def unsupported(case: Case, _method: Method) -> Iterator[str]:
    if case.device == "cpu" and Params.model_validate(case.given).allow_tf32:
        yield "params.allow_tf32 on cpu; needed `device: cuda`, or leave it out"


def env(case: Case, placement: Placement, seat: Seat) -> Mapping[str, str]:
    """Return the common environment; the case, not torchrun, sets the threads on CPUs."""
    common = gang_env(case, placement, seat)
    if case.device != "cpu":
        return common
    return {**common, "OMP_NUM_THREADS": str(Params.model_validate(case.given).threads)}


WORKLOAD = Workload(
    name="reference_rn50",
    title="ResNet-50 v1.5, reference program of dlperf-orch, PyTorch 2",
    params=Params,
    unit="images/s",
    last_iteration=lambda asked: asked - 1,
    launcher=torchrun,
    port=lambda _: 22333,
    command=command,
    env=env,
    unsupported=unsupported,
    devices=frozenset({"cuda", "cpu"}),
    precisions=frozenset({"fp32", "amp", "bf16"}),
    axes=frozenset({"accumulation_steps"}),
    rules=frozenset({"clock", "rates"}),
    log_prefix="r50",
    read=logs.reader(logs.DLLOGGER, (25, 125)),
    fabric=logs.fabric,
    progress=logs.progress(logs.DLLOGGER),
)
