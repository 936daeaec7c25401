"""Reports of measured sweeps: JSON, CSV, and Markdown in the shape of DLPerf's reports."""

import csv
import io
import re
from collections.abc import Iterable, Sequence

from orchestrator.model.facts import JSON
from orchestrator.model.report import LoneLog, Report
from orchestrator.model.result import Measurement, Result, Statistics

SHARED_MACHINE = (
    "SHARED-MACHINE: nodes of this cluster are one machine. Speedup and efficiency here show that"
    " the tool works, not how anything scales."
)
UNLOCKED = "UNLOCKED: the image has no known digest."

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")

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
)


def document(report: Report) -> dict[str, JSON]:
    """results.json: every number unrounded, each with the bytes that it came from."""
    return {
        "version": 1,
        "source": report.source,
        "experiment": report.experiment,
        "workload": report.workload,
        "title": report.title,
        "unit": report.unit,
        "cluster": report.cluster,
        "shared_machine": report.shared_machine,
        "image": report.image,
        "image_digest": report.image_digest,
        "window": list(report.window),
        "method": report.method.model_dump(mode="json") if report.method else None,
        "environment": {name: dict(rows) for name, rows in report.environment.items()},
        "cases": [_case(report, result) for result in report.results],
        "logs": [_lone(lone) for lone in report.lone],
    }


def csv_text(report: Report) -> str:
    """results.csv: a row a case, or a row a log where there are no cases."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    if report.results:
        writer.writerow(CSV_COLUMNS)
        writer.writerows(_csv_row(result) for result in report.results)
    elif report.lone:
        writer.writerow(("log", "world_size", "micro_batch_size", "precision", "samples_per_s"))
        for lone in report.lone:
            config = lone.log.config
            keys = ("world_size", "micro_batch_size", "precision")
            values = (str(config.get(key, "")) for key in keys)
            writer.writerow((_cell(lone.path), *map(_cell, values), _or_empty(lone.throughput)))
    return out.getvalue()


def markdown(report: Report) -> str:
    """report.md in the seeds' shape: final result, all results, environment, method."""
    parts = [f"# {_escaped(report.title)}", *_warnings(report)]
    if report.results:
        parts += ["## Final Result", *(_final(report, group) for group in _groups(report))]
        parts += ["## All Results", _all_results(report)]
    if report.lone:
        parts += ["## Logs", _logs(report)]
    not_counted = list(_reasons(report))
    if not_counted:
        parts += ["## What does not count, and why", "\n".join(not_counted)]
    if report.environment:
        parts += ["## Environment", _environment(report)]
    parts += ["## Method", _method(report)]
    return "\n\n".join(parts) + "\n"


def counted(report: Report, result: Result) -> str:
    """How many trials a median stands on, such as ``median of 3/5``."""
    valid = result.statistics.n if result.statistics else 0
    return f"median of {valid}/{report.trials_planned or len(result.trials)}"


def interval_words(statistics: Statistics) -> str:
    """The interval and what it covers."""
    interval = statistics.interval
    return f"{interval.low:.2f} to {interval.high:.2f} ({interval.coverage:.2%})"


def _case(report: Report, result: Result) -> dict[str, JSON]:
    said = result.statistics
    numbers: dict[str, JSON] = {
        "median": said.median if said else None,
        "mean": said.mean if said else None,
        "min": said.low if said else None,
        "max": said.high if said else None,
        "spread": said.spread if said else None,
        "interval": {
            "low": said.interval.low,
            "high": said.interval.high,
            "coverage": said.interval.coverage,
        }
        if said
        else None,
    }
    return {
        "case": dict(result.case.document()),
        "trials_planned": report.trials_planned or len(result.trials),
        "trials_valid": said.n if said else 0,
        **numbers,
        "speedup": result.speedup,
        "efficiency": result.efficiency,
        "transport": _known(result.transport),
        "marks": [{"code": mark.code, "message": mark.message} for mark in result.marks],
        "trials": [_trial(trial) for trial in result.trials],
    }


def _trial(trial: Measurement) -> dict[str, JSON]:
    evidence = trial.evidence
    return {
        "trial": trial.trial,
        "repeat": trial.repeat,
        "attempt": trial.attempt,
        "state": trial.state,
        "throughput": trial.throughput,
        "rate_mean": trial.rate,
        "transport": _known(trial.transport),
        "problems": [{"code": each.code, "message": each.message} for each in trial.problems],
        "marks": [{"code": each.code, "message": each.message} for each in trial.marks],
        "log": evidence.log if evidence else None,
        "lines": list(evidence.lines) if evidence and evidence.lines else None,
        "sha256": evidence.sha256 if evidence else None,
        "provenance": dict(trial.provenance),
    }


def _lone(lone: LoneLog) -> dict[str, JSON]:
    log = lone.log
    return {
        "log": lone.path,
        "config": dict(log.config),
        "steps": log.steps,
        "first_iteration": log.first_iteration,
        "last_iteration": log.last_iteration,
        "throughput": lone.throughput,
        "transport": _known(log.fabric.label),
        "rate": {"count": log.rate.count, "mean": log.rate.mean, "median": log.rate.median}
        if log.rate
        else None,
        "lines": [log.start.line, log.end.line] if log.start and log.end else None,
        "sha256": log.sha256,
        "problems": [{"code": each.code, "message": each.message} for each in lone.problems],
    }


def _csv_row(result: Result) -> tuple[str | int | float, ...]:
    case, said = result.case, result.statistics
    numbers: tuple[str | float, ...] = ("",) * 8
    if said is not None:
        interval = said.interval
        numbers = (said.median, said.mean, said.low, said.high, said.spread)
        numbers += (interval.low, interval.high, interval.coverage)
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
        *numbers,
        _or_empty(result.speedup),
        _or_empty(result.efficiency),
        said.n if said else 0,
        len(result.trials),
        _cell(" ".join(mark.code for mark in result.marks)),
        _cell(_known(result.transport) or ""),
    )


def _known(transport: str) -> str | None:
    return None if transport == "-" else transport


def _or_empty(value: float | None) -> str | float:
    return "" if value is None else value


def _cell(text: str) -> str:
    """One line of text that a spreadsheet does not take for a formula.

    Python's csv before 3.13 leaves a carriage return unquoted, and readers begin a row there.
    """
    plain = _CONTROL.sub(" ", text)
    return f"'{plain}" if plain.lstrip()[:1] in ("=", "+", "-", "@") else plain


def _escaped(text: str) -> str:
    """Text that Markdown and HTML show as it is."""
    plain = _CONTROL.sub(" ", text).replace("&", "&amp;").replace("<", "&lt;")
    return re.sub(r"([\\`*_\[\]|])", r"\\\1", plain)


def _warnings(report: Report) -> Iterable[str]:
    if report.shared_machine:
        yield f"> **{SHARED_MACHINE}**"
    if report.image and not report.image_digest:
        yield f"> **{UNLOCKED}**"
    if report.incomplete:
        yield (
            f"> **INCOMPLETE: {report.incomplete} trial(s) or log(s) are missing or do not count;"
            " the reasons stand below.**"
        )


def _groups(report: Report) -> list[list[Result]]:
    groups: dict[tuple[object, ...], list[Result]] = {}
    for result in report.results:
        groups.setdefault(result.case.comparable, []).append(result)
    return list(groups.values())


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _final(report: Report, group: Sequence[Result]) -> str:
    case = group[0].case
    words = [case.precision.upper(), f"batch size {case.micro_batch_size}", f"on {case.device}"]
    words += [
        f"{field} {getattr(case, field)}"
        for field in ("accumulation_steps", "tensor_parallel", "pipeline_parallel")
        if getattr(case, field) != 1
    ]
    words += [f"{name} {value}" for name, value in case.params]
    head = ("node_num", "gpu_num_per_node", "batch_size_per_device", report.unit)
    rows = [
        (
            str(each.case.nodes),
            str(each.case.gpus_per_node),
            str(each.case.micro_batch_size),
            f"{each.statistics.median:.2f}" if each.statistics else "n/a",
            _speedup(each),
            f"{each.efficiency:.1%}" if each.efficiency is not None else "n/a",
            counted(report, each),
            f"{each.statistics.spread:.1%}" if each.statistics else "n/a",
            interval_words(each.statistics) if each.statistics else "n/a",
            _escaped(each.transport),
            " ".join(mark.code for mark in each.marks),
        )
        for each in group
    ]
    more = (
        "speedup",
        "efficiency",
        "trials",
        "spread",
        "interval (coverage)",
        "transport",
        "marks",
    )
    return f"### {_escaped(', '.join(words))}\n\n{_table((*head, *more), rows)}"


def _speedup(result: Result) -> str:
    if result.speedup is not None:
        return f"{result.speedup:.2f}"
    return "n/a (no valid 1n1g)" if result.statistics else "n/a"


def _all_results(report: Report) -> str:
    rows = [
        (
            result.case.token,
            f"b{result.case.micro_batch_size}",
            result.case.precision,
            str(trial.repeat),
            f"{trial.throughput:.2f}" if trial.throughput is not None else "n/a",
            trial.state,
            _escaped(trial.transport),
            _escaped(" ".join(each.code for each in (*trial.problems, *trial.marks))),
            _escaped(trial.evidence.log if trial.evidence else ""),
            trial.evidence.sha256[:12] if trial.evidence else "",
        )
        for result in report.results
        for trial in result.trials
    ]
    head = ("case", "batch", "precision", "trial", report.unit, "state", "transport", "codes")
    return _table((*head, "log", "sha256"), rows)


def _logs(report: Report) -> str:
    rows = [
        (
            str(lone.log.config.get("world_size", "?")),
            str(lone.log.config.get("micro_batch_size", "?")),
            _escaped(str(lone.log.config.get("precision", "?"))),
            f"{lone.throughput:.2f}" if lone.throughput is not None else "n/a",
            f"{lone.log.rate.mean:.2f}" if lone.log.rate else "n/a",
            _escaped(lone.log.fabric.label),
            " ".join(problem.code for problem in lone.problems),
            _escaped(lone.path),
        )
        for lone in report.lone
    ]
    head = ("world_size", "batch_size_per_device", "precision", report.unit, "mean of printed")
    return _table((*head, "transport", "problems", "log"), rows)


def _reasons(report: Report) -> Iterable[str]:
    planned = [
        trial.trial
        for result in report.results
        for trial in result.trials
        if trial.state == "planned"
    ]
    if planned:
        yield f"- not run: {_escaped(', '.join(planned))}"
    for result in report.results:
        for trial in result.trials:
            for problem in (*trial.problems, *trial.marks) if trial.state != "planned" else ():
                yield f"- {_escaped(trial.trial)}: {problem.code}: {_escaped(problem.message)}"
        for mark in result.marks:
            yield f"- {result.case.token}: {mark.code}: {_escaped(mark.message)}"
    for lone in report.lone:
        for problem in lone.problems:
            yield f"- {_escaped(lone.path)}: {problem.code}: {_escaped(problem.message)}"


def _environment(report: Report) -> str:
    names = list(report.environment)
    keys = dict.fromkeys(key for rows in report.environment.values() for key in rows)
    rows = [
        (key, *(_escaped(report.environment[name].get(key, "")) for name in names)) for key in keys
    ]
    return _table(("", *map(_escaped, names)), rows)


def _method(report: Report) -> str:
    first, last = report.window
    lines = [
        f"- Workload `{report.workload}`, measured from {_escaped(report.source)}.",
        f"- Throughput of a trial: global batch size x {last - first} / the time between the log"
        f" lines of iterations {first} and {last}, by the log's own numbers and clock.",
        "- Result: the median over the valid trials, rounded only when printed. The interval is"
        " made of order statistics and covers the true median with the probability given.",
        "- Speedup: the median over the median of the 1x1 case that is equal in everything but"
        " placement; efficiency: speedup / world size.",
    ]
    if report.method is not None:
        lines.insert(
            1,
            f"- {report.method.repeats} trials of each case, {report.method.iterations} iterations"
            " asked of the program; trials run repeat by repeat over all cases.",
        )
    if report.image:
        digest = report.image_digest or "digest unknown"
        lines.append(f"- Image `{report.image}`, {digest}; cluster `{report.cluster}`.")
    return "\n".join(lines)
