"""results.json: every number unrounded, with its evidence; results.csv: a row per case or log."""

import csv
import io
from dataclasses import asdict
from statistics import median

from orchestrator.model.case import AXES
from orchestrator.model.facts import JSON
from orchestrator.model.report import LoneLog, PublishedResult, Report
from orchestrator.model.result import Interval, Measurement, Result, Watched
from orchestrator.model.telemetry import MachineState
from orchestrator.report import verdict
from orchestrator.report.markup import clean
from orchestrator.report.upstream import exports

Cell = str | int | float


def document(report: Report) -> dict[str, JSON]:
    """Return results.json; unknown values are null, never 0."""
    return {
        "version": 1,
        "written": asdict(report.writer) if report.writer else None,
        "source": report.source,
        "experiment": report.experiment,
        "workload": report.workload,
        "title": report.title,
        "unit": report.unit,
        "cluster": report.cluster,
        "shared_machine": report.shared_machine,
        "image": report.image,
        "image_digest": report.image_digest,
        "window": list(report.window) if report.window else None,
        "rule": report.rule,
        "ran_s": report.ran_s,
        "method": report.method.model_dump(mode="json") if report.method else None,
        "gpus": list(report.gpus),
        "environment": {name: dict(rows) for name, rows in report.environment.items()},
        "topologies": dict(report.topologies),
        "exports": list(exports(report)),
        "verdict": verdict.document(report),
        "cases": [_case(report, result) for result in report.results],
        "canary": _watched(report.canary) if report.canary else None,
        "logs": [_lone(lone) for lone in report.lone],
        "node_speeds": [
            {"node": it.node, "trials": it.trials, "speed": it.speed} for it in report.node_speeds
        ],
        "marks": [asdict(mark) for mark in report.marks],
    }


def csv_text(report: Report) -> str:
    """Return results.csv: of cases, else of logs; unknown values are empty."""
    rows = [_case_cells(report, result) for result in report.results] or [
        _lone_cells(lone) for lone in report.lone
    ]
    out = io.StringIO()
    if rows:
        writer = csv.DictWriter(out, [*rows[0]], lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
    return out.getvalue()


def _case(report: Report, result: Result) -> dict[str, JSON]:
    found = result.statistics
    return {
        "case": dict(result.case.document()),
        "name": report.names.get(result.case) or None,
        "trials_planned": report.planned(result),
        "trials_valid": found.n if found else 0,
        "settled": result.settled,
        "median": result.median,
        "mean": found.mean if found else None,
        "min": found.low if found else None,
        "max": found.high if found else None,
        "spread": found.spread if found else None,
        "interval": _interval(found.interval if found else None),
        "speedup": result.speedup,
        "speedup_interval": _interval(result.speedup_interval),
        "efficiency": result.efficiency,
        "latency_s": result.latency_s,
        "memory_mib": result.memory_mib,
        "peak_memory_mib": result.peak_memory_mib,
        "tflops_per_gpu": report.tflops_per_gpu(result),
        "energy_per_sample_j": result.energy_per_sample,
        "energy_source": result.energy_source,
        "published": [_published(published, result) for published in report.published_for(result)],
        "transport": _transport(result.transport),
        "marks": [asdict(mark) for mark in result.marks],
        "trials": [_trial(trial) for trial in result.trials],
    }


def _case_cells(report: Report, result: Result) -> dict[str, Cell | None]:
    case, found = result.case, result.statistics
    first = next(iter(report.published_for(result)), None)
    states = (state for trial in result.valid for state in trial.machines)
    others_cpus = [state.others_cpus for state in states if state.others_cpus is not None]
    return {
        "node_num": case.nodes,
        "gpu_num_per_node": case.gpus_per_node,
        "batch_size_per_device": case.micro_batch_size,
        "precision": case.precision,
        "device": case.device,  # of a folder of logs, it is what a header says
        "global_batch_size": case.global_batch_size,
        **{axis.name: getattr(case, axis.name) for axis in AXES},
        "params": " ".join(f"{name}={value}" for name, value in case.params),
        "median_samples_per_s": result.median,
        "mean_samples_per_s": found.mean if found else None,
        "min_samples_per_s": found.low if found else None,
        "max_samples_per_s": found.high if found else None,
        "spread": found.spread if found else None,
        **_interval_cells("interval", found.interval if found else None),
        "speedup": result.speedup,
        "efficiency": result.efficiency,
        "trials_valid": found.n if found else 0,
        "trials": len(result.trials),
        "marks": " ".join(mark.code for mark in result.marks),
        "transport": _transport(result.transport),
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
        **_interval_cells("speedup", result.speedup_interval),
        "others_cpus": median(others_cpus) if others_cpus else "not observed",
    }


def _interval(interval: Interval | None) -> JSON:
    return asdict(interval) if interval else None


def _interval_cells(name: str, interval: Interval | None) -> dict[str, float | None]:
    parts = ("low", "high", "coverage")
    return {f"{name}_{part}": getattr(interval, part, None) for part in parts}


def _published(published: PublishedResult, result: Result) -> dict[str, JSON]:
    fields = {**asdict(published), "interconnect": published.interconnect or None}
    del fields["nodes"], fields["gpus_per_node"]  # those of the case
    return {**fields, "difference": published.difference(result)}


def _transport(transport: str) -> str | None:
    """Return None for the sign of logs that name none."""
    return None if transport == "-" else transport


def _watched(watched: Watched) -> dict[str, JSON]:
    pairs = zip(watched.places, watched.trials, strict=True)
    return {
        "case": dict(watched.case.document()),
        "drift": watched.drift,
        "bound": watched.bound,
        "marks": [asdict(mark) for mark in watched.marks],
        "trials": [{"place": place, **_trial(trial)} for place, trial in pairs],
    }


def _trial(trial: Measurement) -> dict[str, JSON]:
    evidence, energy = trial.evidence, trial.energy
    return {
        "trial": trial.trial,
        "repeat": trial.repeat,
        "attempt": trial.attempt,
        "state": trial.state,
        "throughput": trial.throughput,
        "rate_mean": trial.rate,
        "measured_s": trial.measured_s,
        "latency_s": trial.latency_s,
        "memory_mib": trial.memory_mib,
        "transport": _transport(trial.transport),
        "nodes": list(trial.nodes),
        "beside": list(trial.beside),
        "problems": [asdict(problem) for problem in trial.problems],
        "marks": [asdict(mark) for mark in trial.marks],
        "log": evidence.log if evidence else None,
        "lines": list(evidence.lines) if evidence and evidence.lines else None,
        "sha256": evidence.sha256 if evidence else None,
        "rule": trial.rule,
        "window": list(trial.window) if trial.window else None,
        "provenance": dict(trial.provenance),
        "machines": [_machine(state) for state in trial.machines],
        "energy_j": energy.joules if energy else None,
        "energy_per_sample_j": energy.per_sample if energy else None,
        "energy_source": energy.source if energy else None,
    }


def _machine(state: MachineState) -> dict[str, JSON]:
    limits = None if state.limits is None else list(state.limits)
    values = {**asdict(state), "limits": limits}
    unseen = [key for key, it in values.items() if it is None and key != "memory_peak_mib"]
    return {**values, "not_observed": unseen}  # memory_mib is there as soon as its peak is


def _lone(lone: LoneLog) -> dict[str, JSON]:
    log, rate, lines = lone.log, lone.log.rate, lone.log.evidence(lone.log.rule)
    return {
        "log": lone.path,
        "config": dict(log.config),
        "steps": log.steps,
        "first_iteration": log.first_iteration,
        "last_iteration": log.last_iteration,
        "window": list(log.window) if log.window else None,
        "rule": log.rule,
        "throughput": lone.throughput,
        "latency_s": log.latency_s,
        "memory_mib": log.memory_mib,
        "transport": _transport(log.fabric.label),
        "rate": {"count": rate.count, "mean": rate.mean, "median": rate.median} if rate else None,
        "lines": list(lines) if lines else None,
        "sha256": log.sha256,
        "problems": [asdict(problem) for problem in lone.problems],
    }


def _lone_cells(lone: LoneLog) -> dict[str, Cell | None]:
    keys = ("world_size", "micro_batch_size", "precision")
    settings = {key: str(lone.log.config.get(key, "")) for key in keys}
    return {"log": lone.path, **settings, "samples_per_s": lone.throughput}


def _cell(value: Cell | None) -> Cell:
    """Return a number as it is, a text on one line and not as a formula, nothing for None.

    Python's csv before 3.13 leaves a carriage return unquoted, and readers begin a row there.
    """
    if not isinstance(value, str):
        return "" if value is None else value
    line = clean(value)
    return f"'{line}" if line.lstrip()[:1] in ("=", "+", "-", "@") else line
