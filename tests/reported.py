"""Reports made of typed values, and how tests read what is written of them."""

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from orchestrator import report
from orchestrator.measuring import medians
from orchestrator.model.case import Case
from orchestrator.model.experiment import Method
from orchestrator.model.log import Fabric, Moment, Rate, TrainingLog
from orchestrator.model.problem import Problem
from orchestrator.model.report import LoneLog, PublishedResult, Report
from orchestrator.model.result import Measurement, Result

RN50_AMP = {
    "1x1": (803.69, 793.9, 803.66, 802.4, 802.9),
    "1x4": (3129.63, 3119.23, 3137.44, 3137.67, 3144.55),
    "1x8": (6135.08, 6130.69, 6154.66, 6173.05, 6160.56),
    "2x8": (12046.71, 11896.95, 11991.94, 11999.35, 11964.81),
    "4x8": (22364.13, 22551.16, 22978.13, 23049.75, 22053.98),
}
"""Seed 003, section 3: samples/s of each log, by placement and in the order of the logs' numbers,
as extract_pytorch_logs_time.py printed them for AMP with dynamic loss scale, batch 256."""

SHA256 = "0123456789abcdef" * 4
SEED_AMP = {placement: RN50_AMP[placement] for placement in ("1x1", "1x4", "4x8")}
LOG = TrainingLog(
    runs=1,
    steps=99,
    first_iteration=1,
    last_iteration=99,
    config={"world_size": 8, "micro_batch_size": 128, "precision": "amp"},
    start=Moment(20, 0, 40),
    end=Moment(60, 10_000_000_000, 80),
    rate=Rate(99, 6011.64, 6275.76),
    window_rate=6100.0,
    unit="images/s",
    reported={},
    digest="d",
    sha256=SHA256,
    fabric=Fabric(),
    problems=(),
    window=(20, 60),
    lines=(40, 80),
)
PUBLISHED = PublishedResult(
    suite="dlperf",
    framework="ngc-pytorch",
    model="resnet50v1.5",
    precision="amp-dynamic",
    batch="256",
    nodes=4,
    gpus_per_node=8,
    throughput=22551.16,
    unit="images/sec",
    source="DLPerf README",
    hardware="V100-SXM2-16GB",
)


def trial(case: Case, repeat: int, throughput: float | None) -> Measurement:
    """A valid trial, or with no number one that failed."""
    name = f"{case.token}-r50_b256_amp_{repeat}"
    log = f"logs/{case.token}/r50_b256_amp_{repeat}.log"
    failed = Problem("PROGRAM-FAILED", "node vs001, node_rank 0: exit status 1")
    return Measurement(
        trial=name,
        repeat=repeat,
        attempt=1,
        state="failed" if throughput is None else "valid",
        throughput=throughput,
        problems=(failed,) if throughput is None else (),
        provenance={"driver": "440.33.01"},
        path="" if throughput is None else log,
        log=None
        if throughput is None
        else replace(LOG, lines=(40, 140), window=None, rate=Rate(99, throughput, throughput)),
    )


def logged(found: Measurement, **fields: object) -> Measurement:
    """The trial with these values in its log, if it has one."""
    return replace(found, log=found.log and replace(found.log, **fields))  # type: ignore[arg-type] # passed on


def unrun(found: Measurement) -> Measurement:
    """The same trial, as it is before anything was started."""
    missing = (Problem("MISSING", "it has not been run"),)
    return replace(found, state="planned", throughput=None, problems=missing, path="", log=None)


def results(values: Mapping[str, Sequence[float | None]], **fields: object) -> tuple[Result, ...]:
    """Compared results of these placements; AMP, batch 256."""
    plain = {"micro_batch_size": 256, "precision": "amp", "device": "cuda"}
    found = []
    for placement, throughputs in values.items():
        nodes, gpus = map(int, placement.split("x"))
        case = Case(nodes=nodes, gpus_per_node=gpus, **{**plain, **fields})  # type: ignore[arg-type] # one field of each type
        found.append(
            medians.result(case, [trial(case, n, v) for n, v in enumerate(throughputs, 1)])
        )
    return medians.compared(found)


def sweep(found: tuple[Result, ...], **fields: object) -> Report:
    """The report of a sweep that measured these results."""
    plain = Report(
        source="20200915-rn50-amp",
        title="ResNet-50 v1.5",
        experiment="rn50-amp",
        workload="ngc_pytorch_rn50",
        unit="images/s",
        window=(25, 125),
        method=Method(repeats=5, iterations=151, window=(25, 125)),
        trials_planned=5,
        cluster="v100x4",
        image="ngc-pytorch-20.03",
        image_digest="sha256:5e",
        shared_machine=False,
        environment={"vs001": {"kernel": "Linux 4.4.0-116"}, "vs002": {"driver": "440.33.01"}},
        results=found,
        lone=(),
        rule="clock",
        log_prefix="r50",
    )
    return replace(plain, **fields)  # type: ignore[arg-type] # one field of each type


def folder(*lone: LoneLog, found: tuple[Result, ...] = ()) -> Report:
    """The report of a folder of logs, of which no method is known."""
    said = sweep(found, source="logs", experiment="", cluster="", image="", image_digest="")
    bare = replace(said, method=None, trials_planned=None, environment={})
    return replace(bare, rule=None, window=None, lone=lone)


def section(text: str, heading: str) -> str:
    """What stands below a heading of the second level."""
    _, _, below = text.partition(f"\n## {heading}\n")
    assert below, f"no section {heading!r}"
    return below.partition("\n## ")[0]


def tables(text: str) -> list[list[list[str]]]:
    """Rows of cells of every Markdown table, without the line under the head."""
    blocks = (
        [line for line in block.splitlines() if line[:2] == "| "] for block in text.split("\n\n")
    )
    return [
        [[cell.strip() for cell in line[1:-1].split(" | ")] for line in (lines[0], *lines[2:])]
        for lines in blocks
        if lines
    ]


def rows(text: str, heading: str) -> list[dict[str, str]]:
    """The rows of the only table of a section by the heads of their columns."""
    ((head, *cells),) = tables(section(text, heading))
    return [dict(zip(head, row, strict=True)) for row in cells]


def csv_rows(found: Report) -> list[dict[str, str]]:
    """The rows of results.csv by column, as any reader of CSV sees them."""
    return list(csv.DictReader(io.StringIO(report.csv_text(found))))


def first_lines(sweep: Path, said: str) -> tuple[str, str, str]:
    """The three beginnings, as words without tags.

    Args:
        said: standard output of `collect`.
    """
    text = (sweep / "report.md").read_text(encoding="utf-8").replace("\\", "").replace("**", "")
    page = (sweep / "report.html").read_text(encoding="utf-8")
    return (
        said.partition(f"\n{sweep.name}")[0],
        text.partition("\n| ")[0],
        re.sub("<[^>]*>", "", page.partition("</style>")[2].partition("<table")[0]),
    )
