"""Logs as NVIDIA's PyTorch program writes them, and `collect` over folders of them."""

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from orchestrator import report
from orchestrator.collecting.folder import report_on
from orchestrator.collecting.logs import Reading
from orchestrator.model.log import Rule
from orchestrator.state.files import dumps
from tests import commands
from tests.reported import RN50_AMP

PROGRAM = str(Path(sys.executable).with_name("dlperf-orch"))

# What DLPerf's extract_pytorch_logs_time.py prints in seed 003 for each log, and its result file.
PUBLISHED = {
    "fp16_ngc/pytorch/1n1g": RN50_AMP["1x1"],
    "fp16_ngc/pytorch/1n4g": RN50_AMP["1x4"],
    "fp16_ngc/pytorch/1n8g": RN50_AMP["1x8"],
    "amp_ngc/pytorch/2n8g": RN50_AMP["2x8"],
    "amp_ngc/pytorch/4n8g": RN50_AMP["4x8"],
}

HEADER = (
    "data : /data/image  data_backend : dali-cpu  arch : resnet50  model_config : fanin"
    "  num_classes : 1000  workers : 8  epochs : 1  run_epochs : -1  batch_size : {batch}"
    "  optimizer_batch_size : -1  lr : 2.048  lr_schedule : cosine  warmup : 8  print_freq : 1"
    "  resume : None  pretrained_weights :   fp16 : False  static_loss_scale : 1"
    "  dynamic_loss_scale : {amp}  prof : {prof}  amp : {amp}  seed : None  training_only : True"
    "  memory_format : nchw  distributed : True  local_rank : 0  gpu : 8  world_size : {world} "
)


@dataclass(frozen=True)
class Run:
    """Describe a run of NVIDIA's program; its steps take 1.1 and 0.9 of the usual time in turn."""

    world_size: int
    rate: float
    began: datetime
    batch: int = 256
    amp: bool = True
    prof: int = 151

    def log(self) -> str:
        """Return its log; the first iteration takes 20 times as long as the others."""
        usual_s, clock_s = self.world_size * self.batch / self.rate, 0.0
        loss = 7 + self.began.timestamp() % 86400 / 1e5  # no two runs print the same
        header = HEADER.format(
            batch=self.batch, amp=self.amp, prof=self.prof, world=self.world_size
        )
        lines = [
            "=> creating model '('resnet50', 'fanin', 1000)'",
            f"DLL {self.began} - PARAMETER {header}",
            "RUNNING EPOCHS FROM 0 TO 1",
        ]
        for iteration in range(1, self.prof):
            step_s = usual_s * (20 if iteration == 1 else 1.1 if iteration % 2 else 0.9)
            clock_s += step_s
            printed = self.world_size * self.batch / step_s
            loss -= 1 / 1000
            lines.append(
                f"DLL {self.began + timedelta(seconds=clock_s)} - Epoch: 0 Iteration: {iteration}"
                f"  train.loss : {loss:.5f}  train.total_ips : {printed:.2f} img/s"
            )
        end = self.began + timedelta(seconds=clock_s + 1)
        lines += [f"DLL {end} - Summary: train.total_ips : {self.rate:.2f} img/s"]
        return "\n".join([*lines, "Experiment ended", ""])


def results(
    folder: Path,
    workload: str = "ngc_pytorch_rn50",
    *,
    window: tuple[int, int] | None = None,
    rule: Rule | None = None,
) -> Any:
    """Return the results.json of a folder of logs."""
    return json.loads(dumps(report.document(report_on(folder, Reading(workload, window, rule)))))


def collect(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run the command on a folder of logs."""
    return commands.run(
        [PROGRAM, "collect", "--logs", str(folder), "--workload", "ngc_pytorch_rn50", *words],
        env=commands.environment(),
        timeout_s=120,
    )


def run_of(token: str, repeat: int, rate: float, batch: int = 256) -> Run:
    """Return a run that has a place in the matrix, and a time of its own."""
    nodes, gpus = map(int, re.findall(r"\d+", token))
    began = datetime(2020, 9, 15, 14, 28, 53) + timedelta(hours=nodes * gpus, minutes=repeat)
    return Run(nodes * gpus, rate, began, batch)


def keep(folder: Path, series: str, rates: Mapping[int, float]) -> None:
    """Write the logs of a case, by repeat, to such as ``amp_ngc/pytorch/1n8g/r50_b256_amp``."""
    batch = int(re.findall(r"_b(\d+)_", series)[0])
    for repeat, rate in rates.items():
        path = folder / f"{series}_{repeat}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(run_of(path.parent.name, repeat, rate, batch).log())


def codes(found: Mapping[str, list[Mapping[str, str]]], key: str = "problems") -> list[str]:
    return [problem["code"] for problem in found[key]]
