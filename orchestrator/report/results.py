"""results.json: every number unrounded, with its evidence; results.csv: a row per case or log.

And DLPerf's ``_result.json``: average, median and speedup by placement, for scripts that read it.
"""

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict
from statistics import median

from pydantic_core import to_jsonable_python

from orchestrator.model.case import distinctions
from orchestrator.model.facts import JSON
from orchestrator.model.report import LoneLog, PublishedResult, Report
from orchestrator.model.result import Interval, Measurement, Result, Watched
from orchestrator.model.telemetry import MachineState
from orchestrator.report import labels, verdict
from orchestrator.report.markup import clean

EXPORT = "_result.json"


def document(report: Report) -> dict[str, JSON]:
    """Return results.json; unknown values are null, never 0."""
    document: dict[str, JSON] = to_jsonable_python(
        {
            "version": 1,
            "written": report.writer,
            **_fields(report, "source", "experiment", "workload", "title", "unit", "cluster"),
            **_fields(report, "shared_machine", "image", "image_digest", "window", "rule", "ran_s"),
            "method": report.method,
            **_fields(report, "gpus", "environment", "topologies"),
            "exports": [*exports(report)],
            "verdict": verdict.document(report),
            "cases": [case_document(report, result) for result in report.results],
            "canary": _watched(report.canary) if report.canary else None,
            "logs": [_lone(lone) for lone in report.lone],
            "node_speeds": [_fields(it, "node", "trials", "speed") for it in report.node_speeds],
            "marks": report.marks,
        }
    )
    return document


def csv_text(report: Report) -> str:
    """Return results.csv: a row per case, or per log if there are no cases; unknown is empty."""
    keys = ("world_size", "micro_batch_size", "precision")
    rows = [_case_cells(report, result) for result in report.results] or [
        {
            "log": it.path,
            **{key: str(it.log.config.get(key, "")) for key in keys},
            "samples_per_s": it.throughput,
        }
        for it in report.lone
    ]
    out = io.StringIO()
    if rows:
        writer = csv.DictWriter(out, [*rows[0]], lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
    return out.getvalue()


def case_document(report: Report, result: Result) -> dict[str, object]:
    """Return a case with its trials; values are not converted to JSON types yet."""
    found = result.statistics
    return {
        "case": result.case.document(),
        "name": report.names.get(result.case) or None,
        "trials_planned": report.planned(result),
        "trials_valid": found.n if found else 0,
        **_fields(result, "settled", "median"),
        **_fields(found, "mean"),
        "min": found.low if found else None,
        "max": found.high if found else None,
        **_fields(found, "spread", "interval"),
        **_fields(result, "speedup", "speedup_interval", "efficiency"),
        **_fields(result, "latency_s", "memory_mib", "peak_memory_mib"),
        "tflops_per_gpu": report.tflops_per_gpu(result),
        "energy_per_sample_j": result.energy_per_sample,
        "energy_source": result.energy_source,
        "published": [_published(published, result) for published in report.published_for(result)],
        "transport": _transport(result.transport),
        "marks": result.marks,
        "trials": [_trial(trial) for trial in result.trials],
    }


def _case_cells(report: Report, result: Result) -> dict[str, object]:
    case, document, found = result.case, case_document(report, result), result.statistics
    first = next(iter(report.published_for(result)), None)
    published = _fields(first, "throughput", "framework", "source", "hardware")
    states = (state for trial in result.valid for state in trial.machines)
    others_cpus = [state.others_cpus for state in states if state.others_cpus is not None]

    def same(*keys: str) -> dict[str, object]:
        return {key: document[key] for key in keys}

    return {
        "node_num": case.nodes,
        "gpu_num_per_node": case.gpus_per_node,
        "batch_size_per_device": case.micro_batch_size,
        "precision": case.precision,
        "device": case.device,  # for a folder of logs: from a header
        "global_batch_size": case.global_batch_size,
        **case.axes,
        "params": " ".join(f"{name}={value}" for name, value in case.params),
        **{f"{key}_samples_per_s": document[key] for key in ("median", "mean", "min", "max")},
        **same("spread"),
        **_interval_cells("interval", found.interval if found else None),
        **same("speedup", "efficiency", "trials_valid"),
        "trials": len(result.trials),
        "marks": " ".join(mark.code for mark in result.marks),
        **same("transport", "name", "latency_s", "memory_mib", "tflops_per_gpu"),
        "published_samples_per_s": published["throughput"],
        "published_framework": published["framework"],
        "published_source": published["source"],
        "difference": first and first.difference(result),
        "published_hardware": published["hardware"],
        **same("energy_per_sample_j", "energy_source"),
        **_interval_cells("speedup", result.speedup_interval),
        "others_cpus": median(others_cpus) if others_cpus else "not observed",
    }


def _interval_cells(name: str, interval: Interval | None) -> dict[str, float | None]:
    parts = ("low", "high", "coverage")
    return {f"{name}_{part}": getattr(interval, part, None) for part in parts}


def _published(published: PublishedResult, result: Result) -> dict[str, object]:
    fields = {**asdict(published), "interconnect": published.interconnect or None}
    del fields["nodes"], fields["gpus_per_node"]  # the case has them
    return {**fields, "difference": published.difference(result)}


def _transport(transport: str) -> str | None:
    """Return None for ``-``, the label of an unknown transport."""
    return None if transport == "-" else transport


def _watched(watched: Watched) -> dict[str, object]:
    pairs = zip(watched.places, watched.trials, strict=True)
    return {
        "case": watched.case.document(),
        **_fields(watched, "drift", "bound", "marks"),
        "trials": [{"place": place, **_trial(trial)} for place, trial in pairs],
    }


def _trial(trial: Measurement) -> dict[str, object]:
    energy, log = trial.energy, trial.log
    return {
        **_fields(trial, "trial", "repeat", "attempt", "state", "throughput"),
        "rate_mean": log.rate.mean if log and log.rate else None,
        **_fields(log, "measured_s", "latency_s", "memory_mib"),
        "transport": _transport(trial.transport),
        **_fields(trial, "nodes", "beside", "problems", "marks"),
        "log": trial.path or None,
        "lines": log.evidence if log else None,
        **_fields(log, "sha256", "rule", "window"),
        "provenance": trial.provenance,
        "machines": [_machine(state) for state in trial.machines],
        "energy_j": energy.joules if energy else None,
        "energy_per_sample_j": energy.per_sample if energy else None,
        "energy_source": energy.source if energy else None,
    }


def _machine(state: MachineState) -> dict[str, object]:
    values = asdict(state)
    unseen = [key for key, it in values.items() if it is None and key != "memory_peak_mib"]
    return {**values, "not_observed": unseen}  # memory_mib is there as soon as its peak is


def _lone(lone: LoneLog) -> dict[str, object]:
    log = lone.log
    return {
        "log": lone.path,
        **_fields(log, "config", "steps", "first_iteration", "last_iteration", "window", "rule"),
        "throughput": lone.throughput,
        **_fields(log, "latency_s", "memory_mib"),
        "transport": _transport(log.fabric.label),
        "rate": log.rate,
        "lines": log.evidence,
        "sha256": log.sha256,
        "problems": lone.problems,
    }


def _fields(value: object, *names: str) -> dict[str, object]:
    """Return attributes by name; None for each where there is no value."""
    return {name: None if value is None else getattr(value, name) for name in names}


def _cell(value: object) -> object:
    """Return a number as it is, and a text on one line and not as a formula.

    Python's csv before 3.13 leaves a carriage return unquoted, and readers begin a row there.
    """
    if not isinstance(value, str):
        return value
    line = clean(value)
    return f"'{line}" if line.lstrip()[:1] in ("=", "+", "-", "@") else line


def exports(report: Report) -> dict[str, JSON]:
    """Return documents by file name, in the form that DLPerf's extraction scripts write.

    Those put all precisions and batch sizes under one key. Here each has a file of its own, named
    such as ``fp32_b128_result.json``; ``_result.json`` is the name if there is only one. A case
    without a valid trial is left out, and a speedup without a 1n1g case is null, not 1.0. Cases
    with names of their own are listed by these names.

    Source: DLPerf, extract_pytorch_logs_time.py.
    """
    groups: Sequence[Sequence[Result]] = labels.series(report)
    own = report.names if report.layout.kind == "groups" else {}
    names = {own.get(result.case, "") for result in report.results} - {""}
    if names and len(names) == len(report.results):
        groups = [report.results]
    return {
        file: {
            report.log_prefix: {
                own.get(result.case) or result.case.token: {
                    "average_speed": round(result.statistics.mean, 2),
                    "batch_size_per_device": result.case.micro_batch_size,
                    "median_speed": round(result.statistics.median, 2),
                    "speedup": None if result.speedup is None else round(result.speedup, 2),
                }
                for result in group
                if result.statistics
            }
        }
        for file, group in zip(_files(groups), groups, strict=True)
    }


def _files(groups: Sequence[Sequence[Result]]) -> list[str]:
    """Return a file name for each group, by precision, batch and other settings that differ."""
    if len(groups) == 1:
        return [EXPORT]
    cases = [group[0].case for group in groups]
    names = [
        "_".join((case.precision, f"b{case.micro_batch_size}", *words))
        for case, words in zip(cases, distinctions(cases), strict=True)
    ]
    if len(set(names)) < len(names):  # two values may give one file name
        names = [f"{name}_{place}" for place, name in enumerate(names, 1)]
    return [f"{name}{EXPORT}" for name in names]
