"""The text of results.csv: a row per case, or per log where there are no cases."""

import csv
import io
from dataclasses import astuple
from statistics import median

from orchestrator.model.report import LoneLog, Report
from orchestrator.model.result import Result
from orchestrator.report.markup import shown
from orchestrator.report.results_json import known_transport

CSV_COLUMNS = (
    "node_num",
    "gpu_num_per_node",
    "batch_size_per_device",
    "precision",
    "device",
    "global_batch_size",
    "accumulation_steps",
    "tensor_parallel",
    "pipeline_parallel",
    "params",
    "median_samples_per_s",
    "mean_samples_per_s",
    "min_samples_per_s",
    "max_samples_per_s",
    "spread",
    "interval_low",
    "interval_high",
    "interval_coverage",
    "speedup",
    "efficiency",
    "trials_valid",
    "trials",
    "marks",
    "transport",
    "name",
    "latency_s",
    "memory_mib",
    "tflops_per_gpu",
    "published_samples_per_s",
    "published_framework",
    "published_source",
    "difference",
    "published_hardware",
    "energy_per_sample_j",
    "energy_source",
    "speedup_low",
    "speedup_high",
    "speedup_coverage",
    "others_cpus",
)
Cell = str | int | float


def csv_text(report: Report) -> str:
    """The whole table; unknown values are empty."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    if report.results:
        writer.writerow(CSV_COLUMNS)
        writer.writerows(_row(report, result) for result in report.results)
    elif report.lone:
        writer.writerow(("log", "world_size", "micro_batch_size", "precision", "samples_per_s"))
        writer.writerows(_lone(lone) for lone in report.lone)
    return out.getvalue()


def _row(report: Report, result: Result) -> tuple[Cell, ...]:
    return (
        *_settings(result),
        *_numbers(result),
        _or_empty(result.speedup),
        _or_empty(result.efficiency),
        result.statistics.n if result.statistics else 0,
        len(result.trials),
        _cell(" ".join(mark.code for mark in result.marks)),
        _cell(known_transport(result.transport) or ""),
        _cell(report.names.get(result.case, "")),
        _or_empty(result.latency_s),
        _or_empty(result.memory_mib),
        _or_empty(report.tflops_per_gpu(result)),
        *_published(report, result),
        _or_empty(result.energy_per_sample),
        result.energy_source or "",
        *_speedup(result),
        _others_cpus(result),
    )


def _others_cpus(result: Result) -> Cell:
    """The median over the valid trials and their nodes."""
    states = (state for trial in result.valid for state in trial.machines)
    known = [state.others_cpus for state in states if state.others_cpus is not None]
    return median(known) if known else "not observed"


def _speedup(result: Result) -> tuple[Cell, ...]:
    return astuple(result.speedup_interval) if result.speedup_interval else ("",) * 3


def _settings(result: Result) -> tuple[Cell, ...]:
    case = result.case
    return (
        case.nodes,
        case.gpus_per_node,
        case.micro_batch_size,
        case.precision,
        _cell(case.device),  # of a folder of logs, it is what a header says
        case.global_batch_size,
        case.accumulation_steps,
        case.tensor_parallel,
        case.pipeline_parallel,
        _cell(" ".join(f"{name}={value}" for name, value in case.params)),
    )


def _numbers(result: Result) -> tuple[Cell, ...]:
    statistics = result.statistics
    if statistics is None:
        return ("",) * 8
    numbers = (statistics.median, statistics.mean, statistics.low, statistics.high)
    if statistics.spread is None or statistics.interval is None:
        return (*numbers, "", "", "", "")
    return (*numbers, statistics.spread, *astuple(statistics.interval))


def _published(report: Report, result: Result) -> tuple[Cell, ...]:
    """The result to compare with first; results.json has all."""
    published = report.published_for(result)
    if not published:
        return ("",) * 5
    first = published[0]
    difference = _or_empty(first.difference(result))
    named = (_cell(first.framework), _cell(first.source))
    return (first.throughput, *named, difference, _cell(first.hardware))


def _lone(lone: LoneLog) -> tuple[Cell, ...]:
    config = lone.log.config
    values = (config.get(key, "") for key in ("world_size", "micro_batch_size", "precision"))
    return (_cell(lone.path), *(_cell(str(value)) for value in values), _or_empty(lone.throughput))


def _or_empty(value: float | None) -> Cell:
    return "" if value is None else value


def _cell(text: str) -> str:
    """One line of text that a spreadsheet does not take for a formula.

    Python's csv before 3.13 leaves a carriage return unquoted, and readers begin a row there.
    """
    line = shown(text)
    return f"'{line}" if line.lstrip()[:1] in ("=", "+", "-", "@") else line
