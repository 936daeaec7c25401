"""Logs, cases and trials for the rules that measure."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from orchestrator.measuring import medians
from orchestrator.model.case import Case
from orchestrator.model.experiment import Method
from orchestrator.model.log import Fabric, Moment, TrainingLog
from orchestrator.model.result import Measurement, Result
from orchestrator.workloads import ngc_pytorch_rn50

# Seed 003's listing of the 2-node run, whose times and rates are those of its 4-node run.
SEED_HEADER = (
    "DLL 2020-09-15 14:28:53.498443 - PARAMETER data : /data/image  data_backend : dali-cpu"
    "  arch : resnet50  batch_size : 128  fp16 : False  static_loss_scale : 1"
    "  dynamic_loss_scale : False  prof : 121  amp : False  world_size : {world_size} \n"
)
SEED_STEPS = """\
DLL 2020-09-15 14:29:13.473765 - Epoch: 0 Iteration: 1  train.loss : 7.09304  train.total_ips : 267.44 img/s
DLL 2020-09-15 14:29:14.427490 - Epoch: 0 Iteration: 2  train.loss : 6.93504  train.total_ips : 4294.91 img/s
DLL 2020-09-15 14:29:15.018767 - Epoch: 0 Iteration: 3  train.loss : 6.85957  train.total_ips : 6928.79 img/s
DLL 2020-09-15 14:29:15.387051 - Epoch: 0 Iteration: 4  train.loss : 6.80420  train.total_ips : 11124.52 img/s
DLL 2020-09-15 14:29:15.791445 - Epoch: 0 Iteration: 5  train.loss : 6.75717  train.total_ips : 10131.38 img/s
DLL 2020-09-15 14:29:16.161849 - Epoch: 0 Iteration: 6  train.loss : 6.73528  train.total_ips : 11064.93 img/s
DLL 2020-09-15 14:29:16.538463 - Epoch: 0 Iteration: 7  train.loss : 6.72415  train.total_ips : 10879.48 img/s
DLL 2020-09-15 14:29:16.946395 - Epoch: 0 Iteration: 8  train.loss : 6.71593  train.total_ips : 10044.52 img/s
DLL 2020-09-15 14:29:17.334849 - Epoch: 0 Iteration: 9  train.loss : 6.69474  train.total_ips : 10547.30 img/s
DLL 2020-09-15 14:29:17.744287 - Epoch: 0 Iteration: 10  train.loss : 6.69965  train.total_ips : 10007.33 img/s
DLL 2020-09-15 14:29:18.159381 - Epoch: 0 Iteration: 11  train.loss : 6.69236  train.total_ips : 9872.60 img/s
DLL 2020-09-15 14:29:18.553769 - Epoch: 0 Iteration: 12  train.loss : 6.67351  train.total_ips : 10393.54 img/s
"""  # noqa: E501 - a listing, as it was printed
LOG = TrainingLog(
    runs=1,
    steps=120,
    first_iteration=1,
    last_iteration=120,
    config={},
    # DLPerf prints 1597933942.9863544 and 1597933977.6064055 in extract_cnn_result.py, of a run
    # of 2 x 8 GPUs, batch 128.
    start=Moment(20, 0, 40),
    end=Moment(120, 34_620_051_100, 140),
    rate=None,
    window_rate=None,
    unit="images/s",
    reported={},
    digest="",
    sha256="",
    fabric=Fabric(),
    problems=(),
    window=(20, 120),
)
METHOD = Method(repeats=5, iterations=121, window=(20, 120))


def case(placement: str = "2x8", precision: str = "amp", micro_batch_size: int = 256) -> Case:
    """A case without parameters."""
    nodes, gpus = map(int, placement.split("x"))
    return Case(
        nodes=nodes,
        gpus_per_node=gpus,
        micro_batch_size=micro_batch_size,
        precision=precision,
        device="cuda",
    )


def trial(name: str, throughput: float | None, state: str = "valid") -> Measurement:
    """A trial of this throughput."""
    return Measurement(
        trial=name,
        repeat=1,
        attempt=1,
        state=state,
        throughput=throughput,
        problems=(),
    )


def results(values: Mapping[str, Sequence[float]], micro_batch_size: int = 256) -> list[Result]:
    """A result for each placement over these throughputs."""
    return [
        medians.result(
            case(placement, micro_batch_size=micro_batch_size),
            [trial(f"{placement}_{number}", value) for number, value in enumerate(throughputs, 1)],
        )
        for placement, throughputs in values.items()
    ]


def backed(name: str, *, digest: str = "", sha256: str = "") -> Measurement:
    """A trial with such evidence."""
    return replace(trial(name, 800.0), log=replace(LOG, sha256=sha256, digest=digest))


def seed_log(world_size: int) -> TrainingLog:
    """The seed's listing with this world size in its header, read from iteration 3 to 12."""
    text = SEED_HEADER.format(world_size=world_size) + SEED_STEPS
    return ngc_pytorch_rn50.WORKLOAD.read([text.encode()], (3, 12))
