"""results.json: every number unrounded, with path, lines and sha256 of its log."""

from dataclasses import asdict

from orchestrator.model.facts import JSON
from orchestrator.model.report import LoneLog, PublishedResult, Report
from orchestrator.model.result import Interval, Measurement, Result, Watched
from orchestrator.report import machines, verdict
from orchestrator.report.upstream import exports


def document(report: Report) -> dict[str, JSON]:
    """Return the whole document; unknown values are null, never 0."""
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
        "node_speeds": [asdict(speed) for speed in report.node_speeds.nodes],
        "marks": [asdict(mark) for mark in report.marks],
    }


def _case(report: Report, result: Result) -> dict[str, JSON]:
    statistics = result.statistics
    return {
        "case": dict(result.case.document()),
        "name": report.names.get(result.case) or None,
        "trials_planned": report.planned(result),
        "trials_valid": statistics.n if statistics else 0,
        "settled": result.settled,
        **_numbers(result),
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
        "transport": known_transport(result.transport),
        "marks": [asdict(mark) for mark in result.marks],
        "trials": [_trial(trial) for trial in result.trials],
    }


def _watched(watched: Watched) -> dict[str, JSON]:
    return {
        "case": dict(watched.case.document()),
        "drift": watched.drift,
        "bound": watched.bound,
        "marks": [asdict(mark) for mark in watched.marks],
        "trials": [
            {"place": place, **_trial(trial)}
            for place, trial in zip(watched.places, watched.trials, strict=True)
        ],
    }


def known_transport(transport: str) -> str | None:
    """Return the transport, or None if no log names it."""
    return None if transport == "-" else transport


def _numbers(result: Result) -> dict[str, JSON]:
    statistics = result.statistics
    if statistics is None:
        return dict.fromkeys(("median", "mean", "min", "max", "spread", "interval"))
    return {
        "median": statistics.median,
        "mean": statistics.mean,
        "min": statistics.low,
        "max": statistics.high,
        "spread": statistics.spread,
        "interval": _interval(statistics.interval),
    }


def _interval(interval: Interval | None) -> JSON:
    return asdict(interval) if interval else None


def _published(published: PublishedResult, result: Result) -> dict[str, JSON]:
    fields = {**asdict(published), "interconnect": published.interconnect or None}
    del fields["nodes"], fields["gpus_per_node"]  # those of the case
    return {**fields, "difference": published.difference(result)}


def _trial(trial: Measurement) -> dict[str, JSON]:
    evidence = trial.evidence
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
        "transport": known_transport(trial.transport),
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
        **machines.document(trial),
    }


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
        "transport": known_transport(log.fabric.label),
        "rate": {"count": rate.count, "mean": rate.mean, "median": rate.median} if rate else None,
        "lines": list(lines) if lines else None,
        "sha256": log.sha256,
        "problems": [asdict(problem) for problem in lone.problems],
    }
