"""The text of results.csv: a row per case, or per log where there are no cases."""

import csv
import io
from statistics import median

from orchestrator.model.case import AXES
from orchestrator.model.report import LoneLog, Report
from orchestrator.model.result import Interval, Result
from orchestrator.report.markup import clean
from orchestrator.report.results_json import known_transport

Cell = str | int | float


def csv_text(report: Report) -> str:
    """Return the whole table; unknown values are empty."""
    if report.results:
        rows = [_row(report, result) for result in report.results]
    else:
        rows = [_lone(lone) for lone in report.lone]
    out = io.StringIO()
    if rows:
        writer = csv.DictWriter(out, [*rows[0]], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return out.getvalue()


def _row(report: Report, result: Result) -> dict[str, Cell]:
    case, statistics = result.case, result.statistics
    interval = statistics.interval if statistics else None
    first = next(iter(report.published_for(result)), None)
    cells = {
        "node_num": case.nodes,
        "gpu_num_per_node": case.gpus_per_node,
        "batch_size_per_device": case.micro_batch_size,
        "precision": case.precision,
        "device": case.device,  # of a folder of logs, it is what a header says
        "global_batch_size": case.global_batch_size,
        **{axis.name: getattr(case, axis.name) for axis in AXES},
        "params": " ".join(f"{name}={value}" for name, value in case.params),
        "median_samples_per_s": result.median,
        "mean_samples_per_s": statistics.mean if statistics else None,
        "min_samples_per_s": statistics.low if statistics else None,
        "max_samples_per_s": statistics.high if statistics else None,
        "spread": statistics.spread if statistics else None,
        **_interval("interval", interval),
        "speedup": result.speedup,
        "efficiency": result.efficiency,
        "trials_valid": statistics.n if statistics else 0,
        "trials": len(result.trials),
        "marks": " ".join(mark.code for mark in result.marks),
        "transport": known_transport(result.transport),
        "name": report.names.get(case),
        "latency_s": result.latency_s,
        "memory_mib": result.memory_mib,
        "tflops_per_gpu": report.tflops_per_gpu(result),
        "published_samples_per_s": first.throughput if first else None,
        "published_framework": first.framework if first else None,
        "published_source": first.source if first else None,
        "difference": first.difference(result) if first else None,
        "published_hardware": first.hardware if first else None,
        "energy_per_sample_j": result.energy_per_sample,
        "energy_source": result.energy_source,
        **_interval("speedup", result.speedup_interval),
        "others_cpus": _others_cpus(result),
    }
    return {name: _cell(value) for name, value in cells.items()}


def _interval(name: str, interval: Interval | None) -> dict[str, float | None]:
    parts = ("low", "high", "coverage")
    return {f"{name}_{part}": getattr(interval, part, None) for part in parts}


def _others_cpus(result: Result) -> Cell:
    """Return the median over the valid trials and their nodes."""
    states = (state for trial in result.valid for state in trial.machines)
    known = [state.others_cpus for state in states if state.others_cpus is not None]
    return median(known) if known else "not observed"


def _lone(lone: LoneLog) -> dict[str, Cell]:
    values = {"log": lone.path}
    values |= {
        key: str(lone.log.config.get(key, ""))
        for key in ("world_size", "micro_batch_size", "precision")
    }
    cells = {**values, "samples_per_s": lone.throughput}
    return {name: _cell(value) for name, value in cells.items()}


def _cell(value: Cell | None) -> Cell:
    """Return a number as it is, a text on one line and not as a formula, nothing for None.

    Python's csv before 3.13 leaves a carriage return unquoted, and readers begin a row there.
    """
    if not isinstance(value, str):
        return "" if value is None else value
    line = clean(value)
    return f"'{line}" if line.lstrip()[:1] in ("=", "+", "-", "@") else line
