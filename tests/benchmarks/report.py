"""How long a report of 20 cases with 7 trials each takes, and how large it is.

``python -m tests.benchmarks.report`` writes logs of 150 iterations as the program of ResNet-50
prints them, reads them once, puts the state of four nodes beside each trial, and then measures what
writing the report takes; aims: 2 s and 2 MB.
"""

import random
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from orchestrator.collecting import report_files
from orchestrator.collecting.folder import report_on
from orchestrator.collecting.logs import Reading
from orchestrator.model.problem import Problem
from orchestrator.model.report import Report
from tests.collecting.pytorch_logs import keep
from tests.report.throttled import throttled

PLACES = ("1n1g", "1n4g", "1n8g", "2n8g", "4n8g")
BATCHES = (64, 96, 128, 256)
TRIALS, TIMES = 7, 5


def lay(folder: Path) -> None:
    """Logs of every case, each trial within 1 % of its case's rate."""
    chance = random.Random(1)
    for place in PLACES:
        nodes, gpus = int(place[0]), int(place[2])
        for batch in BATCHES:
            whole = 800.0 * nodes * gpus * 0.97**nodes
            rates = {n: whole * chance.uniform(0.995, 1.005) for n in range(1, TRIALS + 1)}
            keep(folder, f"amp_{batch}/{place}/r50_b{batch}_amp", rates)


def with_machines(found: Report) -> Report:
    """Each trial beside four nodes of eight GPUs for a minute; two of each case are too hot."""
    nodes = tuple(throttled(f"vs00{number}", 60, range(20, 31)) for number in range(1, 5))
    mark = Problem("THROTTLED", "node vs001: the clocks of GPU 0 were held down")
    results = tuple(
        replace(
            result,
            trials=tuple(
                replace(trial, held=nodes, marks=(mark,) if trial.repeat < 3 else ())
                for trial in result.trials
            ),
        )
        for result in found.results
    )
    return replace(found, results=results)


def main() -> None:
    """Print seconds and bytes."""
    with tempfile.TemporaryDirectory() as place:
        logs, out = Path(place, "logs"), Path(place, "out")
        lay(logs)
        found = with_machines(report_on(logs, Reading("ngc_pytorch_rn50", None, None)))
        took = []
        for _ in range(TIMES):
            began = time.perf_counter()
            report_files.reports(out, found, "en", logs)
            took.append(time.perf_counter() - began)
        trials = sum(len(result.trials) for result in found.results)
        page = (out / report_files.html("en")).stat().st_size
        figures = sum(path.stat().st_size for path in out.glob("figures/*"))
        print(f"{len(found.results)} cases, {trials} trials, {found.incomplete} incomplete")
        print(f"all files of the report: {statistics.median(took):.2f} s (aim 2), of {TIMES} runs")
        print(f"report.html: {page / 1e6:.2f} MB (aim 2); figures: {figures / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
