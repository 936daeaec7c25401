"""Logs, cases and trials for the rules that measure."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from orchestrator.measuring import medians
from orchestrator.model.case import Case
from orchestrator.model.experiment import Method
from orchestrator.model.log import Moment, TrainingLog
from orchestrator.model.result import Measurement, Result
from orchestrator.workloads import ngc_pytorch_rn50
from tests import reported

# Seed 003's listing of the 2-node run, whose times and rates are those of its 4-node run.
LISTING = (Path(__file__).parent / "seed_listing.log").read_text()
# DLPerf prints 1597933942.9863544 and 1597933977.6064055 in extract_cnn_result.py, of a run of
# 2 x 8 GPUs, batch 128.
LOG = replace(
    reported.LOG,
    steps=120,
    last_iteration=120,
    config={},
    end=Moment(120, 34_620_051_100, 140),
    rate=None,
    window_rate=None,
    digest="",
    sha256="",
    window=(20, 120),
)
METHOD = Method(repeats=5, iterations=121, window=(20, 120))


def case(placement: str = "2x8", precision: str = "amp", micro_batch_size: int = 256) -> Case:
    nodes, gpus = map(int, placement.split("x"))
    return Case(
        nodes=nodes,
        gpus_per_node=gpus,
        micro_batch_size=micro_batch_size,
        precision=precision,
        device="cuda",
    )


def trial(name: str, throughput: float | None, state: str = "valid") -> Measurement:
    return Measurement(
        trial=name,
        repeat=1,
        attempt=1,
        state=state,
        throughput=throughput,
        problems=(),
    )


def results(values: Mapping[str, Sequence[float]], micro_batch_size: int = 256) -> list[Result]:
    """Return a result for each placement over these throughputs."""
    return [
        medians.result(
            case(placement, micro_batch_size=micro_batch_size),
            [trial(f"{placement}_{number}", value) for number, value in enumerate(throughputs, 1)],
        )
        for placement, throughputs in values.items()
    ]


def backed(name: str, *, digest: str = "", sha256: str = "") -> Measurement:
    """Return a trial with this evidence."""
    return replace(trial(name, 800.0), log=replace(LOG, sha256=sha256, digest=digest))


def seed_log(world_size: int) -> TrainingLog:
    """Return the listing with this world size in its header, read from iteration 3 to 12."""
    text = LISTING.replace("{world_size}", str(world_size))
    return ngc_pytorch_rn50.WORKLOAD.read([text.encode()], (3, 12))
