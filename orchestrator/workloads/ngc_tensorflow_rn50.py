"""NVIDIA's ResNet-50 v1.5 in TensorFlow 1 (DeepLearningExamples, ConvNets) in the NGC 20.03 image.

Two procedures share the program: DLPerf trains 120 steps over DALI and reads the printed rates;
seed 004 has NVIDIA's training_perf.sh run a benchmark of 500 steps and takes the program's own
result. A training ends with such a result, too: the mean of all rates that it printed.

Source: seed 004, DLPerf's single_node_train.sh and multi_node_train.sh, NVIDIA's training_perf.sh.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Literal

from pydantic import Field

from orchestrator import logs
from orchestrator.launchers import gang_env, mpirun
from orchestrator.logs.formats.tensorflow import UNSHOWN
from orchestrator.model.case import Case
from orchestrator.model.experiment import Method
from orchestrator.model.plan import Command, Placement
from orchestrator.model.text import Noun, Scalar
from orchestrator.workloads import Published, Workload

TFRECORD = "/data/tfrecords"
DALI_IDX = "/data/dali_idx"
RESULTS = "./results"  # in the attempt's own folder: a checkpoint left there would be trained on
_LABELLED = re.compile(r"r50_b\d+_(?:fp32|fp16|amp)(?P<xla>-xla)?(?P<benchmark>-benchmark)?_\d+")


class Params(Noun):
    mode: Literal["train", "training_benchmark"] = "train"
    """train as DLPerf measured, or training_benchmark as NVIDIA's training_perf.sh does."""
    xla: bool = False
    """Compile the graph with XLA."""
    dali: bool | None = None
    """Read images by DALI; if not said, in mode train only, as the two scripts do."""
    loss_scale: Annotated[float, Field(gt=0)] = 128.0
    """With AMP: the static loss scale."""
    warmup_steps: Annotated[int, Field(ge=0, le=1_000_000)] = 200
    """In mode training_benchmark: the first steps, which the program's result leaves out."""
    data: Literal["tfrecord", "synthetic"] = "tfrecord"
    """In mode training_benchmark: synthetic data is made by the program, and measures no input."""

    @property
    def is_benchmark(self) -> bool:
        return self.mode == "training_benchmark"

    @property
    def uses_dali(self) -> bool:
        return not self.is_benchmark if self.dali is None else self.dali


def command(case: Case, method: Method, placement: Placement) -> Command:
    """Return the command of the mode's script; the program chooses GPUs by local rank."""
    params = Params.model_validate(case.given)
    main, results = ("python3", f"{placement.code}/main.py"), f"--results_dir={RESULTS}"
    amp = ""
    if case.precision != "fp32":
        scale = str(params.loss_scale).removesuffix(".0")
        amp = f"--use_tf_amp --use_static_loss_scaling --loss_scale={scale}"
    options = f"--use_dali --data_idx_dir={DALI_IDX}" if params.uses_dali else ""
    options += " --use_xla" if params.xla else ""
    if params.is_benchmark:
        # Without it the program makes its own data.
        data = f"--data_dir={TFRECORD}/" if params.data == "tfrecord" else ""
        program = f"""
            --mode=training_benchmark --warmup_steps {params.warmup_steps}
            --num_iter {method.iterations} --iter_unit batch --batch_size {case.micro_batch_size}
            {data} {results} {amp} {options}
        """
        return Command(("--bind-to", "socket"), (*main, *program.split()))
    # DLPerf's scripts for one and for several nodes differ in two arguments.
    warmup, rate = ("0", "0.256") if case.nodes > 1 else ("10000", "0.001")
    # The precision is fp32 with AMP, too: TensorFlow rewrites the graph itself.
    program = f"""
        --arch=resnet50 --mode=train --iter_unit=batch --num_iter={method.iterations}
        --batch_size={case.micro_batch_size} --warmup_steps={warmup} --use_cosine_lr
        --label_smoothing 0.1 --lr_init={rate} --lr_warmup_epochs=8 --momentum=0.875
        --weight_decay=3.0517578125e-05 --precision=fp32 {amp} --data_dir={TFRECORD}
        {options} {results} --weight_init=fan_in --display_every=1 --gpu_memory_fraction=0.98
    """
    return Command((), (*main, *program.split()))


def data(case: Case) -> Mapping[str, str]:
    """Return ImageNet as TFRecord, and the index with which DALI finds images in it."""
    params = Params.model_validate(case.given)
    images = {"imagenet_tfrecord": TFRECORD} if params.data == "tfrecord" else {}
    return {**images, "dali_idx": DALI_IDX} if params.uses_dali else images


def unsupported(case: Case, method: Method) -> Iterable[str]:
    params = Params.model_validate(case.given)
    if params.data == "synthetic" and not params.is_benchmark:
        yield "data: synthetic in mode train; needed mode: training_benchmark, or tfrecord"
    if params.data == "synthetic" and params.dali:
        yield "dali: true with data: synthetic, which nothing reads; needed one of them"
    if "warmup_steps" in case.given and not params.is_benchmark:
        yield (
            "warmup_steps in mode train, which has its own;"
            " needed mode: training_benchmark, or no warmup_steps"
        )
    unshown = params.warmup_steps if params.is_benchmark else UNSHOWN
    if method.iterations <= unshown:
        yield (
            f"iterations: {method.iterations} in mode {params.mode}, which leaves out the first"
            f" {unshown}; needed more"
        )
    # Benchmarks count from 0, trainings print how many steps are done.
    begin, end = unshown + (not params.is_benchmark), method.iterations - params.is_benchmark
    first, last = method.window or (begin, end)
    if first < begin or last > end:
        yield (
            f"window: [{first}, {last}] in mode {params.mode} with iterations:"
            f" {method.iterations}; needed a window from {begin} to {end}"
        )


def stem(case: Case) -> str:
    params = Params.model_validate(case.given)
    label = "-xla" * params.xla + "-benchmark" * params.is_benchmark
    return f"r50_b{case.micro_batch_size}_{case.precision}{label}"


def told_by_name(stem: str) -> Mapping[str, Scalar]:
    """Parse parameters from our own names of logs; upstream's contain batch and precision only."""
    found = _LABELLED.fullmatch(stem)
    said: dict[str, Scalar] = {}
    if found and found["xla"]:
        said["xla"] = True
    if found and found["benchmark"]:
        said["mode"] = "training_benchmark"
    return said


def published(case: Case) -> Published | None:
    """Return the published names; None for synthetic data, which nobody has published.

    DLPerf published mode train, with XLA in the precision. PaddlePaddle/Perf published benchmarks,
    all of them with XLA, which is in the framework's name.
    """
    params = Params.model_validate(case.given)
    if params.data == "synthetic":
        return None
    if params.is_benchmark:
        frameworks = ("ngc-tf1-xla-*",) if params.xla else ()
        return Published(frameworks, "resnet50v1.5", (case.precision,))
    precision = f"{case.precision}-xla" if params.xla else case.precision
    return Published(("ngc-tf1",), "resnet50v1.5", (precision,))


WORKLOAD = Workload(
    name="ngc_tensorflow_rn50",
    title="ResNet-50 v1.5, NVIDIA DeepLearningExamples, TensorFlow 1",
    params=Params,
    unit="images/s",
    launcher=mpirun.launch,
    port=lambda _: 12345,
    command=command,
    env=gang_env,
    data=data,
    unsupported=unsupported,
    rules=frozenset({"clock", "rates", "arithmetic", "reported"}),
    log_prefix="r50",
    told_by_name=told_by_name,
    stem=stem,
    published=published,
    read=logs.reader(logs.TENSORFLOW),
    fabric=logs.fabric,
    progress=logs.progress(logs.TENSORFLOW),
)
